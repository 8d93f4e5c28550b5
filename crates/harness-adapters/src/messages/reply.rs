//! From the events of a reply to the blocks of one answer; no I/O, no clock.

use std::collections::BTreeMap;

use harness_core::message::FinishReason;
use harness_core::port::DeltaPart as Delta;
use harness_core::{Json, ToolName};
use serde_json::value::RawValue;

use super::answer;
use super::wire::{BlockPart, Counts, DeltaPart, Ending, Event, Head, StopDetails};
use crate::AdapterError;
use crate::http::draft::{self, Asked, Draft};
use crate::http::exchange::{End, Reply};
use crate::http::lenient::{Raw, decode, id, label, list, number, piece, text};
use crate::http::names::call_id;
use crate::http::{ReplyLimits, ReportedError, Sink, Undecoded, bound, bound_call, reported_error};
use crate::seam::Seam;

/// An answer as far as it has arrived.
#[derive(Debug, Default)]
pub(super) struct MessagesReply {
    pub(super) head: draft::Head,
    blocks: BTreeMap<u64, Part>,
    pub(super) stop_reason: Option<String>,
    pub(super) stop_sequence: Option<String>,
    /// Human-readable reason of a refusal.
    pub(super) explanation: Option<String>,
    pub(super) counts: Counts,
    /// The first error that the endpoint reported inside the answer.
    pub(super) error: Option<ReportedError>,
    /// Whether the end was announced.
    pub(super) ended: bool,
    calls: u32,
}

/// A block as far as it has arrived.
#[derive(Debug)]
pub(super) enum Part {
    Text {
        text: String,
        seam: Seam,
        citations: Vec<Json>,
    },
    Thinking {
        text: String,
        seam: Seam,
        signature: Option<String>,
    },
    Redacted {
        data: String,
    },
    Call {
        number: u32,
        id: String,
        name: String,
        given: Option<Json>,
        arguments: String,
        seam: Seam,
    },
    /// A block of another kind: what a tool of the provider did.
    Other {
        id: String,
        name: String,
        raw: Json,
        input: String,
        seam: Seam,
    },
}

impl Reply for MessagesReply {
    fn event(&mut self, data: &str, limits: &ReplyLimits, parts: Sink<'_>) -> Result<(), AdapterError> {
        if self.ended || self.error.is_some() {
            return Ok(());
        }
        let Ok(event) = serde_json::from_str::<Event<'_>>(data) else {
            self.head.undecoded.note(data);
            return Ok(());
        };
        match text(event.kind).as_deref() {
            Some("message_start") => self.head(event.message),
            Some("content_block_start") => return self.start(&event, limits, parts),
            Some("content_block_delta") => return self.more(&event, limits, parts),
            Some("message_delta") => {
                self.ending(event.delta);
                self.counts.update(event.usage);
            }
            Some("message_stop") => self.ended = true,
            Some("message") => return self.whole(data, limits, parts),
            _ => self.error = reported_error(event.error),
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.ended || self.error.is_some()
    }

    fn error(&self) -> Option<&ReportedError> {
        self.error.as_ref()
    }

    fn undecoded(&self) -> &Undecoded {
        &self.head.undecoded
    }

    fn cached_for_an_hour(&self) -> u64 {
        self.counts.cache_write_long.unwrap_or(0)
    }

    fn end(&self) -> End {
        let Some(reason) = self.stop_reason.as_deref() else { return End::Cut };
        End::Stopped(match reason {
            "end_turn" | "stop_sequence" => FinishReason::Stop,
            "tool_use" => FinishReason::ToolUse,
            "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
            "pause_turn" => FinishReason::Paused,
            "refusal" => FinishReason::Refusal,
            other => FinishReason::Other(other.to_owned()),
        })
    }

    fn draft<'a>(&self, asked: Asked<'a>) -> Draft<'a> {
        answer::draft(self, asked)
    }
}

impl MessagesReply {
    /// The blocks in their order.
    pub(super) fn blocks(&self) -> impl Iterator<Item = &Part> {
        self.blocks.values()
    }

    fn head(&mut self, raw: Raw<'_>) {
        let head: Head<'_> = decode(raw).unwrap_or_default();
        self.head.id = id(head.id).or(self.head.id.take());
        self.head.model = label(head.model).or(self.head.model.take());
        self.counts.update(head.usage);
    }

    fn ending(&mut self, raw: Raw<'_>) {
        let end: Ending<'_> = decode(raw).unwrap_or_default();
        let details: StopDetails<'_> = decode(end.details).unwrap_or_default();
        self.stop_reason = label(end.reason).or(self.stop_reason.take());
        self.stop_sequence = text(end.sequence).or(self.stop_sequence.take());
        self.explanation = text(details.explanation).or(self.explanation.take());
    }

    /// A reply that is one document.
    fn whole(&mut self, data: &str, limits: &ReplyLimits, parts: Sink<'_>) -> Result<(), AdapterError> {
        let raw: Raw<'_> = serde_json::from_str(data).ok();
        self.head(raw);
        self.ending(raw);
        let head: Head<'_> = decode(raw).unwrap_or_default();
        let blocks: Vec<&RawValue> = decode(head.content).unwrap_or_default();
        for (index, block) in (0u64..).zip(blocks) {
            self.block(index, Some(block), limits, parts)?;
        }
        self.ended = true;
        Ok(())
    }

    fn start(
        &mut self,
        event: &Event<'_>,
        limits: &ReplyLimits,
        parts: Sink<'_>,
    ) -> Result<(), AdapterError> {
        let next = self.blocks.last_key_value().map_or(0, |(index, _)| index.saturating_add(1));
        self.block(number(event.index).unwrap_or(next), event.content_block, limits, parts)
    }

    fn block(
        &mut self,
        index: u64,
        raw: Raw<'_>,
        limits: &ReplyLimits,
        parts: Sink<'_>,
    ) -> Result<(), AdapterError> {
        let Some(part) = decode::<BlockPart<'_>>(raw) else {
            self.head.undecoded.note(raw.map_or("a block without content", RawValue::get));
            return Ok(());
        };
        let kind = text(part.kind).unwrap_or_default();
        let block = match kind.as_str() {
            "text" => {
                let mut seam = Seam::default();
                let text = said(part.text, &mut seam, Delta::Text, parts);
                Part::Text { text, seam, citations: list(part.citations) }
            }
            "thinking" => {
                let mut seam = Seam::default();
                let thought = said(part.thinking, &mut seam, Delta::Thinking, parts);
                Part::Thinking { text: thought, seam, signature: text(part.signature) }
            }
            "redacted_thinking" => Part::Redacted { data: text(part.data).unwrap_or_default() },
            "tool_use" => self.call(index, &part, parts)?,
            _ => Part::Other {
                id: text(part.id).or_else(|| text(part.tool_use_id)).unwrap_or_default(),
                name: text(part.name).unwrap_or(kind),
                raw: raw.and_then(|raw| Json::parse(raw.get()).ok()).unwrap_or_default(),
                input: String::new(),
                seam: Seam::default(),
            },
        };
        if let Part::Other { id, name, .. } = &block {
            bound_call(id, name)?;
        }
        self.blocks.insert(index, block);
        self.check(limits)
    }

    /// Start of a call. Arguments that arrived earlier, out of order, are kept; without them the
    /// call would look complete.
    fn call(&mut self, index: u64, part: &BlockPart<'_>, parts: Sink<'_>) -> Result<Part, AdapterError> {
        let (id, name) = (text(part.id).unwrap_or_default(), text(part.name).unwrap_or_default());
        bound_call(&id, &name)?;
        let (number, arguments, seam) = match self.blocks.remove(&index) {
            Some(Part::Call { number, arguments, seam, .. }) => (number, arguments, seam),
            _ => (self.next_call(), String::new(), Seam::default()),
        };
        let (call, tool) = (call_id(&id), ToolName::from(name.as_str()));
        parts(Delta::CallStarted { index: number, id: call, name: tool });
        let given = part.input.and_then(|input| Json::parse(input.get()).ok());
        let given = given.filter(|input| input.text() != "{}" && !input.is_null());
        if let Some(input) = &given {
            parts(Delta::CallArguments { index: number, text: input.text().to_owned() });
        }
        Ok(Part::Call { number, id, name, given, arguments, seam })
    }

    fn next_call(&mut self) -> u32 {
        let number = self.calls;
        self.calls = self.calls.saturating_add(1);
        number
    }

    fn more(&mut self, event: &Event<'_>, limits: &ReplyLimits, parts: Sink<'_>) -> Result<(), AdapterError> {
        let index = number(event.index).unwrap_or(0);
        let Some(delta) = decode::<DeltaPart<'_>>(event.delta) else {
            self.head.undecoded.note(event.delta.map_or("a delta without content", RawValue::get));
            return Ok(());
        };
        let block = match self.blocks.get_mut(&index) {
            Some(block) => block,
            // Some servers leave out the start of a block.
            None => match text(delta.kind).as_deref() {
                Some("text_delta") => self.blocks.entry(index).or_insert_with(Part::empty_text),
                Some("thinking_delta") => self.blocks.entry(index).or_insert_with(Part::empty_thinking),
                Some("input_json_delta") => {
                    let number = self.next_call();
                    self.blocks.entry(index).or_insert(Part::Call {
                        number,
                        id: String::new(),
                        name: String::new(),
                        given: None,
                        arguments: String::new(),
                        seam: Seam::default(),
                    })
                }
                _ => {
                    self.head.undecoded.note(event.delta.map_or("a delta without content", RawValue::get));
                    return Ok(());
                }
            },
        };
        block.grow(&delta, parts);
        self.check(limits)
    }

    fn check(&self, limits: &ReplyLimits) -> Result<(), AdapterError> {
        let calls = usize::try_from(self.calls).unwrap_or(usize::MAX);
        bound(calls, limits.tool_calls, "list of tool calls", "calls")?;
        let others = self.blocks.len().saturating_sub(calls);
        bound(others, limits.reasoning_items, "list of blocks", "blocks")
    }
}

impl Part {
    fn empty_text() -> Self {
        Self::Text { text: String::new(), seam: Seam::default(), citations: Vec::new() }
    }

    fn empty_thinking() -> Self {
        Self::Thinking { text: String::new(), seam: Seam::default(), signature: None }
    }

    fn grow(&mut self, delta: &DeltaPart<'_>, parts: Sink<'_>) {
        match self {
            Self::Text { text: known, seam, citations } => {
                known.push_str(&said(delta.text, seam, Delta::Text, parts));
                citations.extend(delta.citation.and_then(|raw| Json::parse(raw.get()).ok()));
            }
            Self::Thinking { text: known, seam, signature } => {
                known.push_str(&said(delta.thinking, seam, Delta::Thinking, parts));
                *signature = text(delta.signature).or(signature.take());
            }
            Self::Call { number, arguments, seam, .. } => {
                let index = *number;
                let start = |text| Delta::CallArguments { index, text };
                arguments.push_str(&said(delta.partial_json, seam, start, parts));
            }
            Self::Other { input, seam, .. } => {
                input.push_str(&seam.join(piece(delta.partial_json).unwrap_or_default()));
            }
            Self::Redacted { .. } => {}
        }
    }
}

/// Text of a field, forwarded as a delta if not empty.
fn said(raw: Raw<'_>, seam: &mut Seam, delta: impl FnOnce(String) -> Delta, parts: Sink<'_>) -> String {
    let text = seam.join(piece(raw).unwrap_or_default());
    if !text.is_empty() {
        parts(delta(text.clone()));
    }
    text
}
