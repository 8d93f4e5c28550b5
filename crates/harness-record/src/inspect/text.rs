//! Text of a record.

use std::fmt::Write as _;

use harness_core::message::Message;
use harness_core::{Millis, display};

use super::timeline::{CallDetail, Mark, RunTimeline, Step, first_token, outcome_of, tokens, why};
use super::write::{harmless, line};
use crate::run_record::RunRecord;

/// Maximum characters of arguments and results.
const SHORT: usize = 160;

/// Renders a record as plain text, in order of events.
pub fn render_text(record: &RunRecord) -> String {
    let mut out = String::new();
    let timeline = RunTimeline::of(record);
    head(&mut out, record);
    for message in &timeline.prompt {
        said(&mut out, message);
    }
    marks(&mut out, &timeline.before);
    let mut instructions = None;
    for step in &timeline.steps {
        self::step(&mut out, step, &mut instructions);
    }
    let _ = writeln!(out, "\nended: {}", line(&why(record)));
    if let Some(response) = &record.response {
        let _ = writeln!(out, "\n{}", harmless(response));
    }
    out
}

fn head(out: &mut String, record: &RunRecord) {
    let elapsed = Millis(record.elapsed_ms);
    let _ = writeln!(out, "run {} · {} · {elapsed}", line(&record.run_id), line(&record.started_at));
    let _ = writeln!(out, "{}", figures(record));
    let candidate = &record.candidate;
    let hash = candidate.descriptor_hash.as_deref().unwrap_or("-");
    let _ = writeln!(
        out,
        "descriptor {} · candidate {}",
        line(hash),
        candidate.digest.get(..12).unwrap_or_default()
    );
    if let Some(failed) = &record.redaction.failed {
        let _ =
            writeln!(out, "redaction failed, the record has no context and no messages: {}", line(failed));
    }
    if record.earlier_item_count + record.unknown_item_count > 0 {
        let earlier = record.earlier_item_count + record.unknown_item_count;
        let _ = writeln!(out, "continues a thread of {earlier} messages");
    }
    out.push('\n');
}

/// Calls, tokens and cost.
fn figures(record: &RunRecord) -> String {
    let usage = &record.usage;
    let count = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), |count| count.to_string());
    let cost = usage.cost.map(|cost| format!(" · cost {cost}")).unwrap_or_default();
    format!(
        "{} · {} · {} + {} tokens{cost}",
        counted(usage.model_calls, "model call"),
        counted(usage.tool_calls, "tool call"),
        count(usage.input_tokens),
        count(usage.output_tokens)
    )
}

/// Number with its noun.
fn counted(number: u32, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

fn said(out: &mut String, message: &Message) {
    let _ = writeln!(out, "{}: {}", message.role(), harmless(&message.joined_text()));
}

/// Writes a step. `known` are the instructions of the step before, which are not repeated.
fn step<'a>(out: &mut String, step: &Step<'a>, known: &mut Option<&'a str>) {
    let call = step.call;
    let model = call.model.as_ref().map(|model| format!(" asks {model}")).unwrap_or_default();
    let rest = [first_token(call), tokens(call)].into_iter().flatten();
    let rest = rest.fold(String::new(), |text, part| text + " · " + &part);
    let who = line(&format!("{}{model}", call.agent_name));
    let _ = writeln!(out, "\n{}. {who} · {}{rest}", call.turn, Millis(call.duration_ms));
    let instructions = step.instructions.filter(|text| !text.is_empty());
    if let Some(text) = instructions.filter(|text| *known != Some(*text)) {
        let _ = writeln!(out, "   instructions: {}", short(text));
    }
    *known = instructions;
    if let Some(fault) = &call.fault {
        let _ = writeln!(out, "   ! {}", line(&fault.to_string()));
    }
    if let Some(text) =
        step.answer.map(harness_core::message::AssistantMessage::joined_text).filter(|text| !text.is_empty())
    {
        let _ = writeln!(out, "   {}", harmless(&text).replace('\n', "\n   "));
    }
    for call in &step.calls {
        called(out, call);
    }
    for entry in &step.bare_calls {
        let _ =
            writeln!(out, "   → {} (not in the record) {}", line(entry.name.as_str()), line(&entry.status));
    }
    for message in &step.messages {
        out.push_str("   ");
        said(out, message);
    }
    marks(out, &step.marks);
}

fn called(out: &mut String, detail: &CallDetail<'_>) {
    let call = detail.call;
    let _ = writeln!(out, "   → {} {}", line(call.name.as_str()), short(call.arguments.text()));
    for policy in &detail.policies {
        let _ = writeln!(out, "     policy: {} ({})", line(&policy.decision), line(&policy.reason));
    }
    for gate in &detail.gates {
        let why = gate.reason.as_deref().map(|reason| format!(" ({})", line(reason))).unwrap_or_default();
        let _ = writeln!(out, "     gate {}: {}{why}", line(gate.gate.as_str()), line(&gate.verdict));
    }
    for approval in &detail.approvals {
        let _ = writeln!(out, "     approval: {}", line(&approval.decision));
    }
    if let Some(handoff) = detail.handoff {
        let _ =
            writeln!(out, "     handoff: {} → {}", line(handoff.from.as_str()), line(handoff.to.as_str()));
    }
    let how = match detail.entry {
        Some(entry) if entry.ran => format!("{} in {}", entry.status, Millis(entry.duration_ms)),
        Some(entry) => format!("{}, never ran", entry.status),
        None => "no result".to_owned(),
    };
    let output = detail.result.map(|result| match &result.structured {
        Some(value) => short(value.text()),
        None => short(&Message::ToolResult(result.clone()).joined_text()),
    });
    let _ = writeln!(out, "   ← {}: {}", line(&how), output.unwrap_or_default());
    for (_, record) in &detail.subagents {
        subagent(out, record);
    }
}

/// Writes the run of a sub-agent, indented.
fn subagent(out: &mut String, record: &RunRecord) {
    let name = line(record.agent_name.as_str());
    let mut text = format!("sub-agent {name} · {} · {}", outcome_of(record), Millis(record.elapsed_ms));
    let _ = writeln!(text, " · {}", figures(record));
    let mut instructions = None;
    for step in &RunTimeline::of(record).steps {
        self::step(&mut text, step, &mut instructions);
    }
    for line in text.lines() {
        let _ = writeln!(out, "{}", format!("     {line}").trim_end());
    }
}

fn marks(out: &mut String, marks: &[Mark]) {
    for mark in marks {
        let _ = writeln!(out, "   · {}: {}", mark.word, line(&mark.text));
    }
}

fn short(text: &str) -> String {
    display::shortened(&line(text), SHORT)
}
