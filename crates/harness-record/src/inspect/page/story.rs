//! Steps of a run in reading order.

use harness_core::message::{AssistantMessage, Block, Message, ToolResultMessage};
use harness_core::{Json, Millis};
use maud::{Markup, html};

use super::markdown::markdown;
use super::request::{Shown, role};
use super::spans::since;
use super::{RunPage, badge, class, decisions, details, ending};
use crate::entries::ToolCallEntry;
use crate::fold::RUNNING;
use crate::inspect::timeline::{
    CallDetail, Mark, RunTimeline, Step, Tone, first_token, is_running, tokens, tone_of,
};
use crate::inspect::write::{SafeText, pretty};

impl RunPage<'_> {
    /// Prompt, steps and end.
    pub(super) fn story(&self) -> Markup {
        let timeline = RunTimeline::of(self.record);
        let mut shown = Shown::default();
        html! {
            ol.story {
                (self.prompt(&timeline))
                @for step in &timeline.steps { (self.step(step, &mut shown)) }
                (self.end())
            }
        }
    }

    fn prompt(&self, timeline: &RunTimeline<'_>) -> Markup {
        let record = self.record;
        let earlier = record.earlier_item_count.saturating_add(record.unknown_item_count);
        html! {
            li data-block {
                span.dot { "?" }
                div.card {
                    @if earlier > 0 { div.soft.small { "Continues a thread of " (earlier) " messages." } }
                    @for message in &timeline.prompt { (said(message)) }
                    @if timeline.prompt.is_empty() { div.md { (markdown(&record.question)) } }
                    (marks(&timeline.before))
                }
            }
        }
    }

    /// One step: its request, answer and calls.
    pub(super) fn step<'a>(&self, step: &Step<'a>, shown: &mut Shown<'a>) -> Markup {
        let call = step.call;
        let anchor = self.anchor(call.seq);
        let cost = call.usage.as_ref().and_then(harness_core::message::Usage::total_cost);
        let spent = [
            Some(format!("+{}", Millis(since(self.record, &call.timestamp)))),
            Some(Millis(call.duration_ms).to_string()),
            first_token(call),
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
                    (self.request(step, shown))
                    @if let Some(fault) = &call.fault { div.why.bad { (SafeText(&fault.to_string())) } }
                    @if let Some(answer) = step.answer { (said_by_model(answer)) }
                    @for call in &step.calls { (self.called(call)) }
                    @for entry in &step.bare_calls { (self.bare(entry)) }
                    @for message in &step.messages { div.mark { (said(message)) } }
                    (marks(&step.marks))
                }
            }
        }
    }

    fn called(&self, detail: &CallDetail<'_>) -> Markup {
        let failed = detail.result.is_some_and(|result| result.is_error);
        let ran = detail.entry.is_some_and(|entry| entry.ran);
        let runs = detail.entry.is_some_and(|entry| entry.status == RUNNING);
        let tone = match (detail.result.is_some(), failed, ran) {
            _ if runs => Tone::Plain,
            (true, false, _) => Tone::Good,
            (true, true, true) => Tone::Bad,
            (true, true, false) | (false, ..) => Tone::Warn,
        };
        let output = detail.result.filter(|_| detail.handoff.is_none()).map(pretty_result);
        let anchor = detail.entry.map(|entry| self.anchor(entry.seq));
        html! {
            div class={ "call " (class(tone)) } id=[anchor.as_ref()] {
                div.row {
                    b.mono { (SafeText(detail.call.name.as_str())) }
                    @match detail.entry { Some(entry) => (status(entry)), None => (badge(Tone::Warn, "no result")) }
                    (decisions::decisions(detail))
                    @if let Some(anchor) = &anchor {
                        a.link.end href={ "#" (anchor) } aria-label="Link to this call" { "#" }
                    }
                }
                @if detail.call.arguments.text() != "{}" {
                    (details(true, "Arguments", &pretty(&detail.call.arguments)))
                }
                @if let Some(output) = output { (details(true, if failed { "Error" } else { "Result" }, &output)) }
                (decisions::facts(detail))
                @for (at, record) in &detail.subagents { (self.subagent(*at, record).nested()) }
            }
        }
    }

    /// The run of a sub-agent inside the call that started it.
    fn nested(&self) -> Markup {
        let record = self.record;
        let usage = &record.usage;
        let spent = [
            Some(Millis(record.elapsed_ms).to_string()),
            Some(format!("{} + {} calls", usage.model_calls, usage.tool_calls)),
            usage
                .input_tokens
                .zip(usage.output_tokens)
                .map(|(input, output)| format!("{input} + {output} tokens")),
            usage.cost.map(|cost| format!("cost {cost}")),
        ];
        let spent: Vec<_> = spent.into_iter().flatten().collect();
        html! {
            details.run id={ (self.prefix) "top" } {
                summary {
                    (ending(record))
                    " " b { "sub-agent " (SafeText(record.agent_name.as_str())) }
                    " " span.soft.small { (spent.join(" · ")) }
                }
                (self.story())
            }
        }
    }

    fn bare(&self, entry: &ToolCallEntry) -> Markup {
        html! {
            div.call.plain id=(self.anchor(entry.seq)) {
                div.row {
                    b.mono { (SafeText(entry.name.as_str())) }
                    (status(entry))
                    span.soft.small { "not in the record" }
                }
            }
        }
    }

    fn end(&self) -> Markup {
        let record = self.record;
        let tone = tone_of(record);
        let sign = match tone {
            Tone::Plain => "…",
            Tone::Good => "✓",
            Tone::Warn => "…",
            Tone::Bad => "!",
        };
        html! {
            li id={ (self.prefix) "end" } data-block tabindex="-1" {
                span class={ "dot " (class(tone)) } { (sign) }
                div.card {
                    div.row {
                        (ending(record))
                        @if !is_running(record) { span.soft.small { (record.stop_reason.as_str()) } }
                        span.soft.small.end { "+" (Millis(since(record, &record.completed_at))) }
                    }
                    @if let Some(message) = &record.error_message { div.text.soft { (SafeText(message)) } }
                    @if record.evidence.text() != "\"none\"" {
                        (details(false, "Evidence", &pretty(&record.evidence)))
                    }
                }
            }
        }
    }
}

fn said(message: &Message) -> Markup {
    html! { div.role { (role(message)) } div.md { (markdown(&text_of(message))) } }
}

/// Text of a message, with the number of other blocks.
pub(super) fn text_of(message: &Message) -> String {
    let text = message.joined_text();
    let is_other = |block: &&Block| {
        block.as_text().is_none() && block.as_tool_call().is_none() && !matches!(block, Block::Thinking(_))
    };
    match message.content().iter().filter(is_other).count() {
        0 => text,
        1 => format!("{text}\n[1 other block]"),
        others => format!("{text}\n[{others} other blocks]"),
    }
}

fn said_by_model(answer: &AssistantMessage) -> Markup {
    let text = answer.joined_text();
    html! {
        @for block in &answer.content {
            @if let Block::Thinking(thinking) = block { (details(false, "Thinking", &thinking.thinking)) }
        }
        @if !text.is_empty() { div.md { (markdown(&text)) } }
    }
}

/// Result of a call: its data, or its text.
pub(super) fn pretty_result(result: &ToolResultMessage) -> String {
    match &result.structured {
        Some(value) => pretty(value),
        None => json_or_text(&text_of(&Message::ToolResult(result.clone()))),
    }
}

/// Formats a text that is a JSON object or list.
fn json_or_text(text: &str) -> String {
    let is_value = text.trim_start().starts_with(['{', '[']);
    let value = if is_value { Json::parse(text).ok() } else { None };
    value.map_or_else(|| text.to_owned(), |value| pretty(&value))
}

fn status(entry: &ToolCallEntry) -> Markup {
    let tone = match &*entry.status {
        "success" => Tone::Good,
        RUNNING => Tone::Plain,
        _ => Tone::Bad,
    };
    let code = entry.error_code.as_deref().map(|code| format!(" · {code}")).unwrap_or_default();
    let spent = if entry.ran { Millis(entry.duration_ms).to_string() } else { "never ran".to_owned() };
    html! {
        (badge(tone, &format!("{}{code}", entry.status)))
        span.soft.small { (spent) @if entry.attempts > 1 { " · " (entry.attempts) " attempts" } }
    }
}

fn marks(marks: &[Mark]) -> Markup {
    html! {
        @for mark in marks { div.mark.small { (badge(mark.tone, mark.word)) " " (SafeText(&mark.text)) } }
    }
}
