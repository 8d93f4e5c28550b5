//! From the events of a reply to the items of one response; no I/O, no clock.

use std::collections::BTreeMap;

use harness_core::message::FinishReason;
use harness_core::port::DeltaPart as Delta;
use harness_core::{Json, ToolName};
use serde_json::value::RawValue;

use super::answer;
use super::wire::{ContentPart, Event, IncompleteDetails, ItemPart, Response};
use crate::AdapterError;
use crate::http::draft::{self, Asked, Draft};
use crate::http::exchange::{End, Reply};
use crate::http::lenient::{Raw, decode, id, label, list, number, piece, text};
use crate::http::names::call_id;
use crate::http::{
    ReplyLimits, ReportedError, ReportedUsage, Sink, Undecoded, bound, bound_call, reported_error,
};
use crate::label::bounded_label;
use crate::seam::Seam;

/// A response as far as it has arrived.
#[derive(Debug, Default)]
pub(super) struct ResponsesReply {
    pub(super) head: draft::Head,
    items: BTreeMap<u64, Item>,
    /// `completed`, `incomplete`, `failed`, `cancelled` or another word for the end; none before it.
    pub(super) status: Option<String>,
    /// Reason of an incomplete response.
    pub(super) incomplete: Option<String>,
    pub(super) usage: ReportedUsage,
    /// The first error that the endpoint reported inside the reply.
    pub(super) error: Option<ReportedError>,
    calls: u32,
}

/// An item as far as it has arrived.
#[derive(Debug, Default)]
pub(super) struct Item {
    pub(super) kind: String,
    pub(super) id: Option<String>,
    pub(super) status: Option<String>,
    pub(super) phase: Option<String>,
    pub(super) parts: BTreeMap<u64, Said>,
    pub(super) summary: Vec<String>,
    /// Reasoning text sent before its whole item arrived.
    pub(super) thought: String,
    thought_seam: Seam,
    pub(super) call_id: String,
    pub(super) name: String,
    pub(super) arguments: String,
    arguments_seam: Seam,
    /// The number of the call, once it was announced.
    call: Option<u32>,
    /// The whole item, which counts more than what was put together.
    pub(super) raw: Option<Json>,
}

/// A part of a message.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) text: String,
    pub(super) refusal: String,
    text_seam: Seam,
    refusal_seam: Seam,
    pub(super) annotations: Vec<Json>,
}

impl Reply for ResponsesReply {
    fn event(&mut self, data: &str, limits: &ReplyLimits, parts: Sink<'_>) -> Result<(), AdapterError> {
        if self.status.is_some() || self.error.is_some() || data.trim() == "[DONE]" {
            return Ok(());
        }
        let Ok(event) = serde_json::from_str::<Event<'_>>(data) else {
            self.head.undecoded.note(data);
            return Ok(());
        };
        let kind = text(event.kind).unwrap_or_default();
        match kind.as_str() {
            "response.created" | "response.in_progress" | "response.queued" => self.head(event.response),
            "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" => {
                self.ended(event.response, kind.trim_start_matches("response."), parts);
            }
            "response.output_item.added" => self.item(number(event.output_index), event.item, false, parts),
            "response.output_item.done" => self.item(number(event.output_index), event.item, true, parts),
            "error" => self.error = reported_error(event.error).or_else(|| reported_error(whole(data))),
            "" if text(event.object).as_deref() == Some("response") => {
                let status = decode::<Response<'_>>(whole(data)).and_then(|response| text(response.status));
                self.ended(whole(data), status.as_deref().unwrap_or("completed"), parts);
            }
            "" => self.error = reported_error(event.error),
            _ => self.more(&kind, &event, parts),
        }
        self.check(limits)
    }

    fn is_over(&self) -> bool {
        self.status.is_some() || self.error.is_some()
    }

    /// An incomplete or failed response is whole, too: nothing follows it.
    fn is_whole(&self) -> bool {
        self.status.is_some()
    }

    fn finish(&mut self) {
        for item in self.items.values_mut() {
            let Item { thought, thought_seam, arguments, arguments_seam, parts, .. } = item;
            let said = parts.values_mut().flat_map(|said| {
                [(&mut said.text, &mut said.text_seam), (&mut said.refusal, &mut said.refusal_seam)]
            });
            for (text, seam) in said.chain([(thought, thought_seam), (arguments, arguments_seam)]) {
                text.push_str(std::mem::take(seam).end());
            }
        }
    }

    fn error(&self) -> Option<&ReportedError> {
        self.error.as_ref()
    }

    fn undecoded(&self) -> &Undecoded {
        &self.head.undecoded
    }

    fn end(&self) -> End {
        let refuses = |item: &Item| item.parts.values().any(|part| !part.refusal.is_empty());
        let stop = match (self.status.as_deref(), self.incomplete.as_deref()) {
            (None, _) => return End::Cut,
            (Some("completed" | "incomplete"), _) if self.items().any(refuses) => FinishReason::Refusal,
            (Some("completed"), _) => FinishReason::Stop,
            (Some("incomplete"), Some("max_output_tokens" | "max_tokens")) => FinishReason::Length,
            (Some("incomplete"), Some("content_filter")) => FinishReason::ContentFilter,
            (Some("incomplete"), other) => FinishReason::Other(other.unwrap_or("incomplete").to_owned()),
            (Some(_), _) => return End::Failed,
        };
        End::Stopped(stop)
    }

    fn draft<'a>(&self, asked: Asked<'a>) -> Draft<'a> {
        answer::draft(self, asked)
    }
}

impl ResponsesReply {
    /// The items in their order.
    pub(super) fn items(&self) -> impl Iterator<Item = &Item> {
        self.items.values()
    }

    fn head(&mut self, raw: Raw<'_>) {
        let response: Response<'_> = decode(raw).unwrap_or_default();
        self.head.id = id(response.id).or(self.head.id.take());
        self.head.model = label(response.model).or(self.head.model.take());
        self.usage = ReportedUsage::read(response.usage).unwrap_or_else(|| std::mem::take(&mut self.usage));
    }

    /// The end: what the response holds counts more than what was put together of it.
    fn ended(&mut self, raw: Raw<'_>, status: &str, parts: Sink<'_>) {
        self.head(raw);
        let response: Response<'_> = decode(raw).unwrap_or_default();
        let details: IncompleteDetails<'_> = decode(response.incomplete_details).unwrap_or_default();
        let output: Vec<&RawValue> = decode(response.output).unwrap_or_default();
        for (index, item) in (0u64..).zip(output) {
            self.item(Some(index), Some(item), true, parts);
        }
        self.incomplete = label(details.reason);
        self.error = reported_error(response.error);
        self.finish();
        self.status = Some(bounded_label(status.to_owned()));
    }

    fn item(&mut self, index: Option<u64>, raw: Raw<'_>, is_whole: bool, parts: Sink<'_>) {
        let next = self.items.last_key_value().map_or(0, |(index, _)| index.saturating_add(1));
        let Some(part) = decode::<ItemPart<'_>>(raw) else {
            self.head.undecoded.note(raw.map_or("an item without content", RawValue::get));
            return;
        };
        let item = self.items.entry(index.unwrap_or(next)).or_default();
        item.read(&part, parts);
        if is_whole {
            item.raw = raw.and_then(|raw| Json::parse(raw.get()).ok());
        }
        item.announce(&mut self.calls, parts);
    }

    /// Continues an item.
    fn more(&mut self, kind: &str, event: &Event<'_>, parts: Sink<'_>) {
        let index = number(event.output_index).unwrap_or(0);
        let part = number(event.content_index).unwrap_or(0);
        let Some(delta) = piece(event.delta).filter(|piece| !piece.is_empty()) else { return };
        match kind {
            "response.output_text.delta" | "response.content_part.delta" => {
                let said = self.begun(index, "message").parts.entry(part).or_default();
                let delta = said.text_seam.join(delta);
                said.text.push_str(&delta);
                pass(&delta, Delta::Text, parts);
            }
            "response.refusal.delta" => {
                let said = self.begun(index, "message").parts.entry(part).or_default();
                let delta = said.refusal_seam.join(delta);
                said.refusal.push_str(&delta);
                pass(&delta, Delta::Text, parts);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                let item = self.begun(index, "reasoning");
                let delta = item.thought_seam.join(delta);
                item.thought.push_str(&delta);
                pass(&delta, Delta::Thinking, parts);
            }
            "response.function_call_arguments.delta" => {
                let item = self.begun(index, "function_call");
                let delta = item.arguments_seam.join(delta);
                item.arguments.push_str(&delta);
                if let Some(index) = item.call {
                    pass(&delta, |text| Delta::CallArguments { index, text }, parts);
                }
            }
            _ => {}
        }
    }

    fn begun(&mut self, index: u64, kind: &str) -> &mut Item {
        let new = || Item { kind: kind.to_owned(), ..Item::default() };
        self.items.entry(index).or_insert_with(new)
    }

    fn check(&self, limits: &ReplyLimits) -> Result<(), AdapterError> {
        for item in self.items.values() {
            bound_call(&item.call_id, &item.name)?;
        }
        let calls = self.items.values().filter(|item| item.kind == "function_call").count();
        bound(calls, limits.tool_calls, "list of tool calls", "calls")?;
        bound(self.items.len().saturating_sub(calls), limits.reasoning_items, "list of items", "items")
    }
}

impl Item {
    /// Reads an item. Content that the stream already sent as deltas is forwarded only as far as it
    /// is new.
    fn read(&mut self, item: &ItemPart<'_>, parts: Sink<'_>) {
        replace(&mut self.kind, label(item.kind));
        self.id = id(item.id).or(self.id.take());
        self.status = label(item.status).or(self.status.take());
        self.phase = label(item.phase).or(self.phase.take());
        replace(&mut self.call_id, text(item.call_id));
        replace(&mut self.name, text(item.name));
        if let Some(arguments) = text(item.arguments) {
            if let (Some(index), Some(rest)) = (self.call, arguments.strip_prefix(self.arguments.as_str())) {
                pass(rest, |text| Delta::CallArguments { index, text }, parts);
            }
            (self.arguments, self.arguments_seam) = (arguments, Seam::default());
        }
        let content: Vec<ContentPart<'_>> = decode(item.content).unwrap_or_default();
        if self.kind == "reasoning" {
            self.reasoning(item.summary, &content, parts);
            return;
        }
        for (index, part) in (0u64..).zip(content) {
            let said = self.parts.entry(index).or_default();
            for (known, seam, now) in [
                (&mut said.text, &mut said.text_seam, text(part.text)),
                (&mut said.refusal, &mut said.refusal_seam, text(part.refusal)),
            ] {
                let Some(now) = now else { continue };
                pass(now.strip_prefix(known.as_str()).unwrap_or_default(), Delta::Text, parts);
                (*known, *seam) = (now, Seam::default());
            }
            let annotations = list(part.annotations);
            if !annotations.is_empty() {
                said.annotations = annotations;
            }
        }
    }

    fn reasoning(&mut self, summary: Raw<'_>, content: &[ContentPart<'_>], parts: Sink<'_>) {
        let summary: Vec<ContentPart<'_>> = decode(summary).unwrap_or_default();
        let texts = |parts: &[ContentPart<'_>]| parts.iter().filter_map(|part| text(part.text)).collect();
        self.summary = texts(&summary);
        let open: Vec<String> = texts(content);
        let told = if open.is_empty() { self.summary.join("\n\n") } else { open.join("\n\n") };
        if told.is_empty() {
            return;
        }
        if self.thought.is_empty() {
            pass(&told, Delta::Thinking, parts);
        }
        (self.thought, self.thought_seam) = (told, Seam::default());
    }

    /// Announces a call once its tool is known.
    fn announce(&mut self, calls: &mut u32, parts: Sink<'_>) {
        if self.kind != "function_call" || self.call.is_some() || self.name.is_empty() {
            return;
        }
        let index = *calls;
        *calls = calls.saturating_add(1);
        self.call = Some(index);
        let id = call_id(&self.call_id);
        parts(Delta::CallStarted { index, id, name: ToolName::from(self.name.as_str()) });
        pass(&self.arguments, |text| Delta::CallArguments { index, text }, parts);
    }
}

/// The document itself as a raw value.
fn whole(data: &str) -> Raw<'_> {
    serde_json::from_str(data).ok()
}

fn pass(text: &str, piece: impl FnOnce(String) -> Delta, parts: Sink<'_>) {
    if !text.is_empty() {
        parts(piece(text.to_owned()));
    }
}

fn replace(slot: &mut String, value: Option<String>) {
    if let Some(value) = value {
        *slot = value;
    }
}
