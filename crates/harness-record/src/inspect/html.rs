//! A record as a page.

use std::fmt::Write as _;

use harness_core::message::Message;
use harness_core::{Json, Millis};

use super::page::Page;
use super::story::{CallStory, Mark, Step, Story, Tone, tokens, tone_of, why};
use super::write::{line, millis, pretty};
use crate::entries::ToolCallEntry;
use crate::run_record::RunRecord;

/// Characters of a question that head a page.
const TITLE: usize = 160;

/// The record as one HTML page: what happened, prompts, calls with arguments and results, decisions, usage
/// and cost, and why it ended.
///
/// The page is whole in itself: it loads nothing, runs nothing (it says so to the browser, too), follows
/// the reader's light or dark colours, and whatever a model or a tool said is text in it. A text of more
/// than 20,000 characters is cut, and says so.
pub fn render_html(record: &RunRecord) -> String {
    let story = Story::of(record);
    let mut page = Page::new(&format!("Run {}", line(&record.run_id)));
    head(&mut page, record);
    facts(&mut page, record);
    page.raw("<h2>What happened</h2>\n<ol class=\"story\">\n");
    prompt(&mut page, record, &story);
    for step in &story.steps {
        self::step(&mut page, record, step);
    }
    end(&mut page, record);
    page.raw("</ol>\n");
    candidate(&mut page, record);
    context(&mut page, record);
    requests(&mut page, record);
    page.finish()
}

fn head(page: &mut Page, record: &RunRecord) {
    page.raw("<div class=\"row\">");
    page.badge(tone_of(record), record.outcome.as_str());
    page.element("span", "soft small", &format!("{} · {}", record.run_id, record.started_at));
    page.raw("</div>\n");
    let question = if record.question.is_empty() { "(no question)" } else { &record.question };
    let title: String = question.chars().take(TITLE).collect();
    let more = if title.len() < question.len() { "…" } else { "" };
    page.element("h1", "text", &format!("{title}{more}"));
    let class = match tone_of(record) {
        Tone::Good | Tone::Plain => "why good",
        Tone::Warn => "why warn",
        Tone::Bad => "why bad",
    };
    page.element("div", class, &why(record));
    if let Some(response) = &record.response {
        page.element("div", "card answer text", response);
    }
    if let Some(failed) = &record.redaction.failed {
        let text = format!("Redaction failed ({failed}): the record holds no context and no messages.");
        page.element("div", "why bad", &text);
    }
}

fn facts(page: &mut Page, record: &RunRecord) {
    let usage = &record.usage;
    let count = |count: Option<u64>| count.map_or_else(|| "–".to_owned(), grouped);
    page.raw("<div class=\"facts\">\n");
    page.fact("duration", &Millis(record.elapsed_ms).to_string());
    page.fact("model calls", &usage.model_calls.to_string());
    page.fact("tool calls", &usage.tool_calls.to_string());
    page.fact("tokens in", &count(usage.input_tokens));
    page.fact("tokens out", &count(usage.output_tokens));
    page.fact("cost", &usage.cost.map_or_else(|| "–".to_owned(), |cost| cost.to_string()));
    page.fact("last agent", record.agent_name.as_str());
    if let Some(model) = &record.model {
        page.fact("last model", model.as_str());
    }
    page.raw("</div>\n");
}

/// A number with a thin space between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push('\u{2009}');
        }
        out.push(digit);
    }
    out
}

fn prompt(page: &mut Page, record: &RunRecord, story: &Story<'_>) {
    let earlier = record.earlier_item_count + record.unknown_item_count;
    page.raw("<li>");
    page.dot("dot", "?");
    page.raw("<div class=\"card\">");
    if earlier > 0 {
        let text = format!("Goes on with a conversation of {earlier} messages.");
        page.element("div", "soft small", &text);
    }
    for message in &story.prompt {
        said(page, message);
    }
    if story.prompt.is_empty() {
        page.element("div", "text", &record.question);
    }
    marks(page, &story.before);
    page.raw("</div></li>\n");
}

fn said(page: &mut Page, message: &Message) {
    page.element("div", "soft small", message.role());
    page.element("div", "text", &text_of(message));
}

/// The text of a message; what is no text is named.
fn text_of(message: &Message) -> String {
    let mut text = message.joined_text();
    let others =
        message.content().iter().filter(|block| block.as_text().is_none() && block.as_tool_call().is_none());
    let others = others.count();
    if others > 0 {
        let _ = write!(text, "\n[{others} further blocks]");
    }
    text
}

fn step(page: &mut Page, record: &RunRecord, step: &Step<'_>) {
    let call = step.call;
    page.raw("<li>");
    page.dot(if call.fault.is_some() { "dot bad" } else { "dot" }, &call.turn.to_string());
    page.raw("<div class=\"card\"><div class=\"row\"><b>");
    page.text(call.agent_name.as_str());
    page.raw("</b>");
    if let Some(model) = &call.model {
        page.element("span", "soft small", &format!("asks {model}"));
    }
    let tokens = tokens(call).map(|tokens| format!(" · {tokens}")).unwrap_or_default();
    let cost = call.usage.as_ref().and_then(harness_core::message::Usage::total_cost);
    let cost = cost.map(|cost| format!(" · cost {cost}")).unwrap_or_default();
    let spent = format!("{} · {}{tokens}{cost}", since(record, &call.timestamp), Millis(call.duration_ms));
    page.element("span", "soft small end", &spent);
    page.raw("</div>\n");
    waterfall(page, record, &call.timestamp, call.duration_ms);
    if let Some(text) = step.prompt.and_then(|prompt| prompt.prompt_text.as_deref()) {
        page.details(false, "Instructions", text);
    }
    if let Some(fault) = &call.fault {
        page.element("div", "why bad", &fault.to_string());
    }
    if let Some(answer) = step.answer {
        thoughts(page, answer);
        let text = answer.joined_text();
        if !text.is_empty() {
            page.raw("<p class=\"text\">");
            page.text(&text);
            page.raw("</p>\n");
        }
    }
    for call in &step.calls {
        called(page, call);
    }
    for entry in &step.bare_calls {
        bare(page, entry);
    }
    for message in &step.messages {
        page.raw("<div class=\"mark\">");
        said(page, message);
        page.raw("</div>");
    }
    marks(page, &step.marks);
    page.raw("</div></li>\n");
}

fn thoughts(page: &mut Page, answer: &harness_core::message::AssistantMessage) {
    use harness_core::message::Block;
    for block in &answer.content {
        if let Block::Thinking(thinking) = block {
            page.details(false, "Thinking", &thinking.thinking);
        }
    }
}

fn called(page: &mut Page, story: &CallStory<'_>) {
    let failed = story.result.is_some_and(|result| result.is_error);
    let ran = story.entry.is_some_and(|entry| entry.ran);
    page.raw(match (story.result.is_some(), failed, ran) {
        (true, false, _) => "<div class=\"call good\">",
        (true, true, true) => "<div class=\"call bad\">",
        (true, true, false) | (false, ..) => "<div class=\"call warn\">",
    });
    page.raw("<div class=\"row\"><b class=\"mono\">");
    page.text(story.call.name.as_str());
    page.raw("</b>");
    match story.entry {
        Some(entry) => status(page, entry),
        None => page.badge(Tone::Warn, "no result"),
    }
    decisions(page, story);
    page.raw("</div>\n");
    if story.call.arguments.text() != "{}" {
        page.details(true, "Arguments", &pretty(&story.call.arguments));
    }
    if let Some(result) = story.result.filter(|_| story.handoff.is_none()) {
        let text = match &result.structured {
            Some(value) => pretty(value),
            None => json_or_text(&text_of(&Message::ToolResult(result.clone()))),
        };
        page.details(true, if failed { "Error" } else { "Result" }, &text);
    }
    page.raw("</div>\n");
}

/// Text that is a JSON object or list, nicely; other text as it is.
fn json_or_text(text: &str) -> String {
    let is_value = text.trim_start().starts_with(['{', '[']);
    let value = if is_value { Json::parse(text).ok() } else { None };
    value.map_or_else(|| text.to_owned(), |value| pretty(&value))
}

fn status(page: &mut Page, entry: &ToolCallEntry) {
    let tone = if entry.status == "success" { Tone::Good } else { Tone::Bad };
    let code = entry.error_code.as_deref().map(|code| format!(" · {code}")).unwrap_or_default();
    page.badge(tone, &format!("{}{code}", entry.status));
    let retried = if entry.attempts > 1 { format!(" · {} attempts", entry.attempts) } else { String::new() };
    let spent = if entry.ran { Millis(entry.duration_ms).to_string() } else { "never ran".to_owned() };
    page.element("span", "soft small", &format!("{spent}{retried}"));
}

fn decisions(page: &mut Page, story: &CallStory<'_>) {
    for policy in &story.policies {
        let tone = match policy.decision.as_str() {
            "allow" => Tone::Good,
            "require_approval" => Tone::Warn,
            _ => Tone::Bad,
        };
        page.badge(tone, &format!("policy: {} · {}", policy.decision, policy.reason));
    }
    for gate in &story.gates {
        let tone = if gate.verdict == "deny" { Tone::Bad } else { Tone::Warn };
        let why = gate.reason.as_deref().map(|reason| format!(" · {reason}")).unwrap_or_default();
        page.badge(tone, &format!("{}: {}{why}", gate.gate, gate.verdict));
    }
    for approval in &story.approvals {
        let tone = match approval.decision.as_str() {
            "granted" | "edited" => Tone::Good,
            "later" => Tone::Warn,
            _ => Tone::Bad,
        };
        page.badge(tone, &format!("approval: {}", approval.decision));
    }
    if let Some(handoff) = story.handoff {
        page.element("span", "badge blue", &format!("{} hands over to {}", handoff.from, handoff.to));
    }
}

fn bare(page: &mut Page, entry: &ToolCallEntry) {
    page.raw("<div class=\"call\"><div class=\"row\"><b class=\"mono\">");
    page.text(entry.name.as_str());
    page.raw("</b>");
    status(page, entry);
    page.raw("<span class=\"soft small\">not in the record</span></div></div>\n");
}

fn marks(page: &mut Page, marks: &[Mark]) {
    for mark in marks {
        page.raw("<div class=\"mark small\">");
        page.badge(mark.tone, mark.word);
        page.raw(" ");
        page.text(&mark.text);
        page.raw("</div>\n");
    }
}

fn end(page: &mut Page, record: &RunRecord) {
    page.raw("<li>");
    match tone_of(record) {
        Tone::Good | Tone::Plain => page.dot("dot good", "✓"),
        Tone::Warn => page.dot("dot warn", "…"),
        Tone::Bad => page.dot("dot bad", "!"),
    }
    page.raw("<div class=\"card\"><div class=\"row\">");
    page.badge(tone_of(record), record.outcome.as_str());
    page.element("span", "soft small", record.stop_reason.as_str());
    page.element("span", "soft small end", &since(record, &record.completed_at));
    page.raw("</div>\n");
    if let Some(message) = &record.error_message {
        page.element("div", "text soft", message);
    }
    if record.evidence.text() != "\"none\"" {
        page.details(false, "Evidence", &pretty(&record.evidence));
    }
    page.raw("</div></li>\n");
}

fn candidate(page: &mut Page, record: &RunRecord) {
    let candidate = &record.candidate;
    page.raw("<h2>What was run</h2>\n<div class=\"card scroll\"><table>\n");
    page.pair("candidate", &candidate.digest);
    for (name, value) in [
        ("descriptor", &candidate.descriptor_hash),
        ("registry", &candidate.registry_version),
        ("provider", &candidate.provider),
        ("model", &candidate.model),
        ("policy", &candidate.policy_version),
        ("package", &candidate.package_version),
    ] {
        page.pair(name, value.as_deref().unwrap_or("–"));
    }
    page.raw("</table></div>\n");
}

fn context(page: &mut Page, record: &RunRecord) {
    if record.context_snapshot.is_none() && record.limits.is_none() && record.metadata.is_none() {
        return;
    }
    page.raw("<h2>Context and settings</h2>\n<div class=\"card\">\n");
    if let Some(context) = &record.context_snapshot {
        let title = if record.context_redacted { "Context (redacted)" } else { "Context" };
        page.details(true, title, &pretty(context));
    }
    if let Some(limits) = &record.limits {
        page.details(false, "Limits", &pretty(limits));
    }
    if let Some(metadata) = &record.metadata {
        page.details(false, "Metadata", &pretty(metadata));
    }
    page.raw("</div>\n");
}

fn requests(page: &mut Page, record: &RunRecord) {
    if record.request_fingerprints.is_empty() {
        return;
    }
    page.raw("<h2>Requests</h2>\n<div class=\"card scroll\"><table>\n<tr><th>#</th><th>agent</th><th>messages</th>");
    page.raw("<th>tools</th><th>request</th><th>prompt</th><th>messages</th></tr>\n");
    for request in &record.request_fingerprints {
        let short = |hash: &String| hash.get(..10).unwrap_or_default().to_owned();
        page.raw("<tr>");
        for cell in [
            request.turn.to_string(),
            request.agent_name.to_string(),
            request.message_count.to_string(),
            request.tool_count.to_string(),
            short(&request.request_hash),
            short(&request.system_prompt_hash),
            short(&request.messages_hash),
        ] {
            page.element("td", "mono", &cell);
        }
        page.raw("</tr>\n");
    }
    page.raw("</table></div>\n");
}

/// Time since the start of the run.
fn since(record: &RunRecord, at: &str) -> String {
    match (millis(&record.started_at), millis(at)) {
        (Some(from), Some(at)) => format!("+{}", Millis(u64::try_from(at - from).unwrap_or_default())),
        _ => at.to_owned(),
    }
}

fn waterfall(page: &mut Page, record: &RunRecord, at: &str, duration_ms: u64) {
    let (Some(from), Some(at)) = (millis(&record.started_at), millis(at)) else { return };
    let whole = record.elapsed_ms.max(1);
    let share = |part: u64| u32::try_from(part.min(whole).saturating_mul(1_000) / whole).unwrap_or(1_000);
    let from = share(u64::try_from(at - from).unwrap_or_default());
    page.bar(from, share(duration_ms).min(1_000 - from));
}
