//! Trace page of a record.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use harness_core::message::{AssistantMessage, Block, Message};
use harness_core::{Json, Millis};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};

use super::spans::{Span, SpanKind, model_anchor, since, spans, tool_anchor};
use super::timeline::{CallDetail, Mark, RunTimeline, Step, Tone, tokens, tone_of, why};
use super::write::{SafeText, line, pretty};
use crate::entries::{RequestFingerprint, ToolCallEntry};
use crate::run_record::RunRecord;

/// Maximum characters of a title.
const TITLE: usize = 160;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Renders a record as a trace page: one HTML document that works offline.
///
/// It shows a waterfall of model calls, tool calls and waits for approval; each request with its instructions, answer,
/// calls, decisions, usage and cost; and the reason of the end. Its own script adds search, collapsing, keyboard
/// control and a theme switch; without scripts the page is complete. A content security policy forbids everything else,
/// and untrusted text is escaped and cut at 20,000 characters.
pub fn render_html(record: &RunRecord) -> String {
    let timeline = RunTimeline::of(record);
    let script = STANDARD.encode(Sha256::digest(SCRIPT));
    let policy = format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{script}'; base-uri 'none'; form-action 'none'"
    );
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="referrer" content="no-referrer";
                title { "Run " (SafeText(&line(&record.run_id))) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    (head(record))
                    (facts(record))
                    (tools())
                    (waterfall(record))
                    h2 { "Steps" }
                    ol.story {
                        (prompt(record, &timeline))
                        @for step in &timeline.steps { (self::step(record, step)) }
                        (end(record))
                    }
                    (candidate(record))
                    (context(record))
                    (requests(record))
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "plain",
        Tone::Good => "good",
        Tone::Warn => "warn",
        Tone::Bad => "bad",
    }
}

fn badge(tone: Tone, text: &str) -> Markup {
    html! { span class={ "badge " (class(tone)) } { (SafeText(text)) } }
}

fn details(open: bool, summary: &str, text: &str) -> Markup {
    html! { details open[open] { summary { (summary) } pre { (SafeText(text)) } } }
}

fn head(record: &RunRecord) -> Markup {
    let question = if record.question.is_empty() { "(no question)" } else { &record.question };
    let title: String = question.chars().take(TITLE).collect();
    let more = if title.len() < question.len() { "…" } else { "" };
    html! {
        div.row {
            (badge(tone_of(record), record.outcome.as_str()))
            span.soft.small { (SafeText(&record.run_id)) " · " (SafeText(&record.started_at)) }
        }
        h1.text { (SafeText(&title)) (more) }
        div class={ "why " (class(tone_of(record))) } { (SafeText(&why(record))) }
        @if let Some(response) = &record.response { div.card.answer.text { (SafeText(response)) } }
        @if let Some(failed) = &record.redaction.failed {
            div.why.bad { "Redaction failed (" (SafeText(failed)) "): the record has no context and no messages." }
        }
    }
}

fn facts(record: &RunRecord) -> Markup {
    let usage = &record.usage;
    let count = |count: Option<u64>| count.map_or_else(|| "–".to_owned(), grouped);
    let facts = [
        ("duration", Millis(record.elapsed_ms).to_string()),
        ("model calls", usage.model_calls.to_string()),
        ("tool calls", usage.tool_calls.to_string()),
        ("tokens in", count(usage.input_tokens)),
        ("tokens out", count(usage.output_tokens)),
        ("cost", usage.cost.map_or_else(|| "–".to_owned(), |cost| cost.to_string())),
        ("last agent", record.agent_name.to_string()),
        ("last model", record.model.as_ref().map_or_else(|| "–".to_owned(), ToString::to_string)),
    ];
    html! {
        div.facts { @for (name, value) in &facts { div.fact { b { (SafeText(value)) } span { (name) } } } }
    }
}

/// Formats a number with thin spaces between thousands.
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

/// Toolbar of the script, hidden without it.
fn tools() -> Markup {
    let keys = [
        ("/", "search"),
        ("j k", "next and previous step"),
        ("e c", "expand and collapse all"),
        ("t", "switch the theme"),
        ("Esc", "clear the search"),
    ];
    html! {
        div #tools role="search" hidden {
            input #q type="search" placeholder="Search (press /)" aria-label="Search the run" autocomplete="off";
            span #hits.soft.small aria-live="polite" {}
            button #expand type="button" { "Expand all" }
            button #collapse type="button" { "Collapse all" }
            button #theme type="button" aria-label="Switch the theme" title="Switch the theme" { "◐" }
            details.keys {
                summary { "Keys" }
                dl { @for (key, action) in keys { dt { kbd { (key) } } dd { (action) } } }
            }
        }
    }
}

fn waterfall(record: &RunRecord) -> Markup {
    let spans = spans(record);
    if spans.is_empty() {
        return html! {};
    }
    let total = |kind| -> u64 {
        let durations = spans.iter().filter(|span| span.kind == kind).map(|span| span.duration);
        durations.fold(0, u64::saturating_add)
    };
    let times = [
        (SpanKind::Model, "model", total(SpanKind::Model)),
        (SpanKind::Tool, "tools", total(SpanKind::Tool)),
        (SpanKind::Wait, "waiting for approval", total(SpanKind::Wait)),
    ];
    let whole = record.elapsed_ms.max(1);
    html! {
        h2 #timeline { "Timeline" }
        div.card.wf {
            div.legend.small {
                @for (kind, name, time) in times {
                    @if time > 0 { span { i class=(kind) {} " " (name) " " (Millis(time)) } }
                }
            }
            div.ticks.soft.small aria-hidden="true" {
                @for part in 0..=4_u64 { span { (Millis(whole / 4 * part)) } }
            }
            @for span in &spans { (row(span, whole)) }
        }
    }
}

fn row(span: &Span, whole: u64) -> Markup {
    let (left, width) = (share(span.start, whole), share(span.duration, whole));
    let place = format!("left:{}%;width:{}%", percent(left), percent(width.min(1_000 - left)));
    let time = Millis(span.duration).to_string();
    let tokens = span.tokens.as_deref().unwrap_or_default();
    let cost = span.cost.map(|cost| cost.to_string()).unwrap_or_default();
    html! {
        a class={ "span " (span.kind) } href={ "#" (span.anchor) } data-row {
            span.name { (SafeText(&span.label)) }
            span.track { i class=(class(span.tone)) style=(place) {} }
            span.num { (time) }
            span.num.wide { (tokens) }
            span.num.wide { (cost) }
        }
    }
}

/// Share of the whole in thousandths.
fn share(part: u64, whole: u64) -> u64 {
    part.min(whole).saturating_mul(1_000) / whole
}

fn percent(thousandths: u64) -> String {
    format!("{}.{}", thousandths / 10, thousandths % 10)
}

fn prompt(record: &RunRecord, timeline: &RunTimeline<'_>) -> Markup {
    let earlier = record.earlier_item_count.saturating_add(record.unknown_item_count);
    html! {
        li data-block {
            span.dot { "?" }
            div.card {
                @if earlier > 0 { div.soft.small { "Continues a thread of " (earlier) " messages." } }
                @for message in &timeline.prompt { (said(message)) }
                @if timeline.prompt.is_empty() { div.text { (SafeText(&record.question)) } }
                (marks(&timeline.before))
            }
        }
    }
}

fn said(message: &Message) -> Markup {
    html! { div.soft.small { (message.role()) } div.text { (SafeText(&text_of(message))) } }
}

/// Text of a message, with the number of other blocks.
fn text_of(message: &Message) -> String {
    let text = message.joined_text();
    let is_other = |block: &&Block| block.as_text().is_none() && block.as_tool_call().is_none();
    match message.content().iter().filter(is_other).count() {
        0 => text,
        others => format!("{text}\n[{others} further blocks]"),
    }
}

fn step(record: &RunRecord, step: &Step<'_>) -> Markup {
    let call = step.call;
    let anchor = model_anchor(call.turn);
    let cost = call.usage.as_ref().and_then(harness_core::message::Usage::total_cost);
    let spent = [
        Some(format!("+{}", Millis(since(record, &call.timestamp)))),
        Some(Millis(call.duration_ms).to_string()),
        tokens(call),
        cost.map(|cost| format!("cost {cost}")),
    ];
    let spent: Vec<_> = spent.into_iter().flatten().collect();
    html! {
        li id=(anchor) data-block tabindex="-1" {
            span class={ "dot" @if call.fault.is_some() { " bad" } } { (call.turn) }
            div.card {
                div.row {
                    b { (SafeText(call.agent_name.as_str())) }
                    @if let Some(model) = &call.model { span.soft.small { (SafeText(model.as_str())) } }
                    span.soft.small.end { (spent.join(" · ")) }
                    a.link href={ "#" (anchor) } aria-label={ "Link to request " (call.turn) } { "#" }
                }
                @if let Some(request) = step.request { (request_line(record, step, request)) }
                @if let Some(text) = step.prompt.and_then(|prompt| prompt.prompt_text.as_deref()) {
                    (details(false, "Instructions", text))
                }
                @if let Some(fault) = &call.fault { div.why.bad { (SafeText(&fault.to_string())) } }
                @if let Some(answer) = step.answer { (said_by_model(answer)) }
                @for call in &step.calls { (called(call)) }
                @for entry in &step.bare_calls { (bare(entry)) }
                @for message in &step.messages { div.mark { (said(message)) } }
                (marks(&step.marks))
            }
        }
    }
}

/// Line about the content of a request: the whole transcript, or a planned view of it.
fn request_line(record: &RunRecord, step: &Step<'_>, request: &RequestFingerprint) -> Markup {
    let known = step.call.item.map(|item| item.saturating_add(record.unknown_item_count));
    let view = match known {
        Some(known) if known == request.message_count => "the whole transcript".to_owned(),
        Some(known) => format!("a planned view of {known} messages in the transcript"),
        None => "view".to_owned(),
    };
    html! {
        div.soft.small {
            "Request: " (request.message_count) " messages (" (view) "), " (request.tool_count) " tools"
        }
    }
}

fn said_by_model(answer: &AssistantMessage) -> Markup {
    let text = answer.joined_text();
    html! {
        @for block in &answer.content {
            @if let Block::Thinking(thinking) = block { (details(false, "Thinking", &thinking.thinking)) }
        }
        @if !text.is_empty() { p.text { (SafeText(&text)) } }
    }
}

fn called(detail: &CallDetail<'_>) -> Markup {
    let failed = detail.result.is_some_and(|result| result.is_error);
    let ran = detail.entry.is_some_and(|entry| entry.ran);
    let tone = match (detail.result.is_some(), failed, ran) {
        (true, false, _) => Tone::Good,
        (true, true, true) => Tone::Bad,
        (true, true, false) | (false, ..) => Tone::Warn,
    };
    let output = detail.result.filter(|_| detail.handoff.is_none()).map(|result| match &result.structured {
        Some(value) => pretty(value),
        None => json_or_text(&text_of(&Message::ToolResult(result.clone()))),
    });
    html! {
        div class={ "call " (class(tone)) } id=[detail.entry.map(tool_anchor)] {
            div.row {
                b.mono { (SafeText(detail.call.name.as_str())) }
                @match detail.entry { Some(entry) => (status(entry)), None => (badge(Tone::Warn, "no result")) }
                (decisions(detail))
                @if let Some(entry) = detail.entry {
                    a.link.end href={ "#" (tool_anchor(entry)) } aria-label="Link to this call" { "#" }
                }
            }
            @if detail.call.arguments.text() != "{}" {
                (details(true, "Arguments", &pretty(&detail.call.arguments)))
            }
            @if let Some(output) = output { (details(true, if failed { "Error" } else { "Result" }, &output)) }
        }
    }
}

/// Formats a text that is a JSON object or list.
fn json_or_text(text: &str) -> String {
    let is_value = text.trim_start().starts_with(['{', '[']);
    let value = if is_value { Json::parse(text).ok() } else { None };
    value.map_or_else(|| text.to_owned(), |value| pretty(&value))
}

fn status(entry: &ToolCallEntry) -> Markup {
    let tone = if entry.status == "success" { Tone::Good } else { Tone::Bad };
    let code = entry.error_code.as_deref().map(|code| format!(" · {code}")).unwrap_or_default();
    let spent = if entry.ran { Millis(entry.duration_ms).to_string() } else { "never ran".to_owned() };
    html! {
        (badge(tone, &format!("{}{code}", entry.status)))
        span.soft.small { (spent) @if entry.attempts > 1 { " · " (entry.attempts) " attempts" } }
    }
}

fn decisions(detail: &CallDetail<'_>) -> Markup {
    let policies = detail.policies.iter().map(|policy| {
        let tone = match policy.decision.as_str() {
            "allow" => Tone::Good,
            "require_approval" => Tone::Warn,
            _ => Tone::Bad,
        };
        (tone, format!("policy: {} · {}", policy.decision, policy.reason))
    });
    let gates = detail.gates.iter().map(|gate| {
        let tone = if gate.verdict == "deny" { Tone::Bad } else { Tone::Warn };
        let why = gate.reason.as_deref().map(|reason| format!(" · {reason}")).unwrap_or_default();
        (tone, format!("{}: {}{why}", gate.gate, gate.verdict))
    });
    let approvals = detail.approvals.iter().map(|approval| {
        let tone = match approval.decision.as_str() {
            "granted" | "edited" => Tone::Good,
            "later" => Tone::Warn,
            _ => Tone::Bad,
        };
        (tone, format!("approval: {}", approval.decision))
    });
    html! {
        @for (tone, text) in policies.chain(gates).chain(approvals) { (badge(tone, &text)) }
        @if let Some(handoff) = detail.handoff {
            span.badge.blue { "handoff: " (SafeText(handoff.from.as_str())) " → " (SafeText(handoff.to.as_str())) }
        }
    }
}

fn bare(entry: &ToolCallEntry) -> Markup {
    html! {
        div.call.plain id=(tool_anchor(entry)) {
            div.row {
                b.mono { (SafeText(entry.name.as_str())) }
                (status(entry))
                span.soft.small { "not in the record" }
            }
        }
    }
}

fn marks(marks: &[Mark]) -> Markup {
    html! {
        @for mark in marks { div.mark.small { (badge(mark.tone, mark.word)) " " (SafeText(&mark.text)) } }
    }
}

fn end(record: &RunRecord) -> Markup {
    let tone = tone_of(record);
    let sign = match tone {
        Tone::Good | Tone::Plain => "✓",
        Tone::Warn => "…",
        Tone::Bad => "!",
    };
    html! {
        li #end data-block tabindex="-1" {
            span class={ "dot " (class(tone)) } { (sign) }
            div.card {
                div.row {
                    (badge(tone, record.outcome.as_str()))
                    span.soft.small { (record.stop_reason.as_str()) }
                    span.soft.small.end { "+" (Millis(since(record, &record.completed_at))) }
                }
                @if let Some(message) = &record.error_message { div.text.soft { (SafeText(message)) } }
                @if record.evidence.text() != "\"none\"" { (details(false, "Evidence", &pretty(&record.evidence))) }
            }
        }
    }
}

fn candidate(record: &RunRecord) -> Markup {
    let candidate = &record.candidate;
    let rows = [
        ("candidate", Some(&candidate.digest)),
        ("descriptor", candidate.descriptor_hash.as_ref()),
        ("registry", candidate.registry_version.as_ref()),
        ("provider", candidate.provider.as_ref()),
        ("model", candidate.model.as_ref()),
        ("policy", candidate.policy_version.as_ref()),
        ("package", candidate.package_version.as_ref()),
    ];
    html! {
        h2 { "Configuration" }
        div.card.scroll {
            table {
                @for (name, value) in rows {
                    tr { th { (name) } td.text { (SafeText(value.map_or("–", String::as_str))) } }
                }
            }
        }
    }
}

fn context(record: &RunRecord) -> Markup {
    if record.context_snapshot.is_none() && record.limits.is_none() && record.metadata.is_none() {
        return html! {};
    }
    let title = if record.context_redacted { "Context (redacted)" } else { "Context" };
    html! {
        h2 { "Context and settings" }
        div.card {
            @if let Some(context) = &record.context_snapshot { (details(true, title, &pretty(context))) }
            @if let Some(limits) = &record.limits { (details(false, "Limits", &pretty(limits))) }
            @if let Some(metadata) = &record.metadata { (details(false, "Metadata", &pretty(metadata))) }
        }
    }
}

fn requests(record: &RunRecord) -> Markup {
    if record.request_fingerprints.is_empty() {
        return html! {};
    }
    let columns = ["#", "agent", "messages", "tools", "request", "prompt", "messages"];
    html! {
        h2 { "Request hashes" }
        div.card.scroll {
            table {
                tr { @for column in columns { th { (column) } } }
                @for request in &record.request_fingerprints {
                    tr { @for cell in cells(request) { td.mono { (SafeText(&cell)) } } }
                }
            }
        }
    }
}

fn cells(request: &RequestFingerprint) -> [String; 7] {
    let short = |hash: &String| hash.get(..10).unwrap_or_default().to_owned();
    [
        request.turn.to_string(),
        request.agent_name.to_string(),
        request.message_count.to_string(),
        request.tool_count.to_string(),
        short(&request.request_hash),
        short(&request.system_prompt_hash),
        short(&request.messages_hash),
    ]
}
