//! From the events of a chat-completions reply to one [`Completion`]; no I/O, no clock.

use std::collections::BTreeMap;

use harness_core::port::DeltaPart;
use harness_core::{Json, ToolName};
use serde_json::value::RawValue;

use super::answer;
use super::completion::{Completion, CompletionCall};
use super::wire::{self, Body, CallPart, Choice, Chunk};
use crate::AdapterError;
use crate::http::draft::{Asked, Draft};
use crate::http::exchange::{End, Reply};
use crate::http::frames::Frames;
use crate::http::lenient::{self, Raw, Record};
use crate::http::names::call_id;
use crate::http::{
    ReplyLimits, ReportedError, ReportedUsage, Sink, Undecoded, bound, bound_call, reported_error,
};
use crate::seam::{Piece, Seam, piece_of};

/// The longest document that is kept beside what was read of it.
const MAX_DOCUMENT: usize = 64 << 10;

/// Puts a streamed answer together.
///
/// Feed it the bytes as they arrive, cut anywhere; the result does not depend on the cuts.
///
/// ```
/// use harness_adapters::chat::{Assembler, ReplyLimits, Verdict};
/// use harness_core::port::DeltaPart;
///
/// let mut assembler = Assembler::new(ReplyLimits::default());
/// let mut shown = String::new();
/// let stream = concat!(
///     "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hello\"},\"finish_reason\":\"stop\"}]}\n\n",
///     "data: [DONE]\n\n",
/// );
/// for bytes in stream.as_bytes().chunks(7) {
///     assembler.feed(bytes, &mut |part| {
///         if let DeltaPart::Text(text) = part {
///             shown.push_str(&text);
///         }
///     })?;
/// }
/// assert_eq!(shown, "Hello");
/// assert_eq!(assembler.finish().verdict(), Verdict::FinalAnswer { truncated: false });
/// # Ok::<(), harness_adapters::AdapterError>(())
/// ```
#[derive(Debug)]
pub struct Assembler {
    frames: Frames,
    reply: ChatReply,
    limits: ReplyLimits,
}

impl Assembler {
    /// Starts a stream.
    pub fn new(limits: ReplyLimits) -> Self {
        Self { frames: Frames::new(&limits), reply: ChatReply::default(), limits }
    }

    /// Reads bytes and passes the completed deltas to `parts`. After `[DONE]`, further bytes are
    /// ignored.
    ///
    /// # Errors
    /// [`AdapterError::TooLarge`] when a bound is passed; what was gathered before stays available
    /// through [`finish`](Self::finish).
    pub fn feed(&mut self, bytes: &[u8], parts: Sink<'_>) -> Result<(), AdapterError> {
        if self.is_done() {
            return Ok(());
        }
        self.frames.read(bytes, &mut self.reply, &self.limits, parts)
    }

    /// Whether `[DONE]` was seen; nothing of interest follows it.
    pub fn is_done(&self) -> bool {
        self.reply.completion.saw_done
    }

    /// Ends the stream. An unfinished last event is dropped.
    pub fn finish(mut self) -> Completion {
        self.reply.finish();
        self.reply.completion
    }
}

impl Completion {
    /// Reads a reply that is one JSON document instead of a stream.
    ///
    /// # Errors
    /// [`AdapterError::TooLarge`] when a bound is passed.
    pub fn from_document(body: &str, limits: ReplyLimits, parts: Sink<'_>) -> Result<Self, AdapterError> {
        bound(body.len(), limits.body, "reply", "bytes")?;
        let mut reply = ChatReply::default();
        reply.document(body, &limits, parts)?;
        reply.finish();
        Ok(reply.completion)
    }
}

/// A reply as far as it has arrived.
#[derive(Debug, Default)]
pub(super) struct ChatReply {
    pub(super) completion: Completion,
    calls: BTreeMap<u64, Calling>,
    details: Vec<Detail>,
    undecoded: Undecoded,
    seams: Seams,
}

/// Where the texts of the answer end.
#[derive(Debug, Default)]
struct Seams {
    content: Seam,
    reasoning: Seam,
    refusal: Seam,
}

/// A call as far as it has arrived.
#[derive(Debug, Default)]
struct Calling {
    call: CompletionCall,
    seam: Seam,
}

impl Reply for ChatReply {
    fn event(&mut self, data: &str, limits: &ReplyLimits, parts: Sink<'_>) -> Result<(), AdapterError> {
        if self.completion.saw_done {
            return Ok(());
        }
        if data.trim_ascii() == "[DONE]" {
            self.completion.saw_done = true;
            return Ok(());
        }
        let Ok(chunk) = serde_json::from_str::<Chunk<'_>>(data) else {
            self.undecoded.note(data);
            return Ok(());
        };
        let completion = &mut self.completion;
        if completion.id.is_none() {
            completion.id = lenient::id(chunk.id);
        }
        replace_label(&mut completion.model, chunk.model);
        replace_label(&mut completion.provider, chunk.provider);
        replace(&mut completion.usage, ReportedUsage::read(chunk.usage));
        self.note_error(chunk.error);
        for Record(choice) in &chunk.choices.0 {
            if lenient::number(choice.index).unwrap_or(0) == 0 {
                self.choice(choice, limits, parts)?;
            }
        }
        Ok(())
    }

    fn document(&mut self, text: &str, limits: &ReplyLimits, parts: Sink<'_>) -> Result<(), AdapterError> {
        self.event(text, limits, parts)?;
        self.completion.saw_done = true;
        self.completion.document = (text.len() <= MAX_DOCUMENT).then(|| text.to_owned());
        Ok(())
    }

    fn comment(&mut self) {
        if !self.completion.saw_done {
            self.completion.comments = self.completion.comments.saturating_add(1);
        }
    }

    fn is_over(&self) -> bool {
        self.completion.saw_done || self.completion.error.is_some()
    }

    fn is_whole(&self) -> bool {
        self.completion.finish_reason.is_some()
    }

    fn finish(&mut self) {
        let (seams, completion) = (std::mem::take(&mut self.seams), &mut self.completion);
        for (text, seam) in [
            (&mut completion.content, seams.content),
            (&mut completion.reasoning, seams.reasoning),
            (&mut completion.refusal, seams.refusal),
        ] {
            if !seam.end().is_empty() {
                text.get_or_insert_default().push_str(seam.end());
            }
        }
        let calls = std::mem::take(&mut self.calls).into_values().map(|Calling { mut call, seam }| {
            call.arguments.push_str(seam.end());
            call
        });
        completion.tool_calls.extend(calls);
        completion.reasoning_details = self.details.iter().map(Detail::to_json).collect();
        completion.malformed_events = self.undecoded.count;
        completion.malformed_event = self.undecoded.first().map(str::to_owned);
    }

    fn error(&self) -> Option<&ReportedError> {
        self.completion.error.as_ref()
    }

    fn undecoded(&self) -> &Undecoded {
        &self.undecoded
    }

    fn whole_document(&self) -> Option<&str> {
        self.completion.document.as_deref()
    }

    fn end(&self) -> End {
        answer::end(&self.completion)
    }

    fn draft<'a>(&self, asked: Asked<'a>) -> Draft<'a> {
        answer::draft(&self.completion, asked)
    }
}

impl ChatReply {
    fn say(&mut self, piece: Piece, parts: Sink<'_>) {
        let text = self.seams.content.join(piece);
        if !text.is_empty() {
            self.completion.content.get_or_insert_default().push_str(&text);
            parts(DeltaPart::Text(text));
        }
    }

    fn refuse(&mut self, piece: Piece, parts: Sink<'_>) {
        let text = self.seams.refusal.join(piece);
        if !text.is_empty() {
            self.completion.refusal.get_or_insert_default().push_str(&text);
            parts(DeltaPart::Text(text));
        }
    }

    fn think(&mut self, field: &'static str, piece: Piece, parts: Sink<'_>) {
        let text = self.seams.reasoning.join(piece);
        self.completion.reasoning.get_or_insert_default().push_str(&text);
        if !text.is_empty() {
            parts(DeltaPart::Thinking(text));
        }
        self.completion.reasoning_field.get_or_insert(field);
    }

    fn note_error(&mut self, raw: Raw<'_>) {
        if self.completion.error.is_none() {
            self.completion.error = reported_error(raw);
        }
    }

    fn choice(
        &mut self,
        choice: &Choice<'_>,
        limits: &ReplyLimits,
        parts: Sink<'_>,
    ) -> Result<(), AdapterError> {
        self.note_error(choice.error);
        replace(&mut self.completion.usage, ReportedUsage::read(choice.usage));
        replace(&mut self.completion.finish_reason, lenient::label(choice.finish_reason));
        replace(&mut self.completion.native_finish_reason, lenient::label(choice.native_finish_reason));
        let (shape, body) = match &choice.delta {
            Some(Record(delta)) => (Shape::Delta, delta),
            None => (Shape::Whole, &choice.message.0),
        };
        self.reasoning(body, shape, limits, parts)?;
        if let Some(piece) = wire::content(body.content) {
            self.say(piece, parts);
        }
        if let Some(piece) = lenient::piece(body.refusal) {
            self.refuse(piece, parts);
        }
        let calls: Vec<&RawValue> = lenient::decode(body.tool_calls).unwrap_or_default();
        for call in calls {
            self.call(call, shape, limits, parts)?;
        }
        Ok(())
    }

    fn reasoning(
        &mut self,
        body: &Body<'_>,
        shape: Shape,
        limits: &ReplyLimits,
        parts: Sink<'_>,
    ) -> Result<(), AdapterError> {
        let named = [("reasoning", body.reasoning), ("reasoning_content", body.reasoning_content)];
        let found = named.into_iter().find_map(|(field, raw)| Some((field, wire::content(raw)?)));
        if let Some((field, piece)) = found {
            self.think(field, piece, parts);
        }
        for detail in lenient::list(body.reasoning_details).iter().filter_map(Detail::new) {
            let known = self.details.iter_mut().rev().find(|known| known.continues_with(&detail));
            match known.filter(|_| shape == Shape::Delta) {
                Some(known) => known.merge(detail),
                None => self.details.push(detail.settled()),
            }
            bound(self.details.len(), limits.reasoning_items, "list of reasoning items", "items")?;
        }
        Ok(())
    }

    fn call(
        &mut self,
        raw: &RawValue,
        shape: Shape,
        limits: &ReplyLimits,
        parts: Sink<'_>,
    ) -> Result<(), AdapterError> {
        let Some(part) = lenient::decode::<CallPart<'_>>(Some(raw)) else {
            self.undecoded.note(raw.get());
            return Ok(());
        };
        let (id, name) = (lenient::text(part.id), lenient::text(part.function.0.name));
        let index = match (shape, lenient::number(part.index)) {
            (Shape::Delta, Some(index)) => index,
            (Shape::Delta, None) => self.index_of(id.as_deref(), name.is_some()),
            (Shape::Whole, _) => self.next_index(),
        };
        let piece = wire::arguments(part.function.0.arguments).unwrap_or_default();
        self.fragment(index, id, name, piece, parts)?;
        bound(self.calls.len(), limits.tool_calls, "list of tool calls", "calls")
    }

    /// Adds a fragment to the call with this index.
    fn fragment(
        &mut self,
        index: u64,
        id: Option<String>,
        name: Option<String>,
        piece: Piece,
        parts: Sink<'_>,
    ) -> Result<(), AdapterError> {
        bound_call(id.as_deref().unwrap_or_default(), name.as_deref().unwrap_or_default())?;
        let Calling { call, seam } = self.calls.entry(index).or_default();
        let piece = seam.join(piece);
        let was_named = !call.name.is_empty();
        replace_text(&mut call.id, id);
        replace_text(&mut call.name, name);
        call.arguments.push_str(&piece);
        announce(call, u32::try_from(index).unwrap_or(u32::MAX), was_named, piece, parts);
        Ok(())
    }

    /// The index of a fragment that came without one: that of the call with its id; a new one when the
    /// id, or failing that the name, starts a call; else that of the latest call.
    fn index_of(&self, id: Option<&str>, is_named: bool) -> u64 {
        let known = match id {
            Some(id) => self.calls.iter().find(|(_, calling)| calling.call.id == id).map(|(index, _)| *index),
            None if is_named => None,
            None => self.calls.last_key_value().map(|(index, _)| *index),
        };
        known.unwrap_or_else(|| self.next_index())
    }

    fn next_index(&self) -> u64 {
        self.calls.last_key_value().map_or(0, |(index, _)| index.saturating_add(1))
    }
}

/// Whether a choice carries a delta or a whole message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Delta,
    Whole,
}

/// One reasoning item under construction: its text fields grow, all else is replaced.
#[derive(Debug)]
struct Detail {
    fields: Vec<(String, Field)>,
}

#[derive(Debug)]
enum Field {
    /// Fragment without an item.
    Piece(Piece),
    Growing(String, Seam),
    Fixed(Json),
}

impl Field {
    /// The field of an item that begins with it.
    fn settled(self) -> Self {
        let Self::Piece(piece) = self else { return self };
        let mut seam = Seam::default();
        let text = seam.join(piece);
        Self::Growing(text, seam)
    }
}

impl Detail {
    fn new(object: &Json) -> Option<Self> {
        let fields = object.entries().ok()?.into_iter().map(|(key, value)| {
            let field = match piece_of(value.text()) {
                Some(piece) if matches!(key.as_str(), "text" | "summary" | "data") => Field::Piece(piece),
                _ => Field::Fixed(value),
            };
            (key, field)
        });
        Some(Self { fields: fields.collect() })
    }

    /// The item that begins with it.
    fn settled(self) -> Self {
        Self { fields: self.fields.into_iter().map(|(key, field)| (key, field.settled())).collect() }
    }

    fn fixed(&self, key: &str) -> Option<&Json> {
        self.fields.iter().find_map(|(name, field)| match field {
            Field::Fixed(value) if name == key && !value.is_null() => Some(value),
            Field::Fixed(_) | Field::Growing(..) | Field::Piece(_) => None,
        })
    }

    /// Items belong together when index and type agree. An item without an index has no identity,
    /// except for plain texts, which would otherwise fall into one item per token.
    fn continues_with(&self, next: &Self) -> bool {
        let (index, kind) = (next.fixed("index"), next.fixed("type"));
        let text = |json: &Json| matches!(json.text(), r#""reasoning.text""# | r#""reasoning.summary""#);
        let has_identity = index.is_some() || (kind.is_some_and(text) && next.fixed("id").is_none());
        has_identity && self.fixed("index") == index && self.fixed("type") == kind
    }

    /// Merges a chunk: text is appended, other fields take the last value, and null changes nothing.
    fn merge(&mut self, next: Self) {
        for (key, field) in next.fields {
            match (self.fields.iter_mut().find(|(name, _)| *name == key), field) {
                (Some((_, Field::Growing(text, seam))), Field::Piece(more)) => {
                    text.push_str(&seam.join(more));
                }
                (Some((_, Field::Growing(..))), Field::Fixed(_) | Field::Growing(..)) => {}
                (Some((_, known)), field) => {
                    if !matches!(&field, Field::Fixed(value) if value.is_null()) {
                        *known = field.settled();
                    }
                }
                (None, field) => self.fields.push((key, field.settled())),
            }
        }
    }

    fn to_json(&self) -> Json {
        let fields = self.fields.iter().map(|(key, field)| {
            let value = match field {
                Field::Growing(text, seam) => Json::string(&format!("{text}{}", seam.end())),
                Field::Piece(piece) => Json::string(&piece.clone().into_text()),
                Field::Fixed(value) => value.clone(),
            };
            (key, value)
        });
        Json::object(fields)
    }
}

/// Passes on a fragment of a call, which starts once its tool is known.
fn announce(call: &CompletionCall, index: u32, was_named: bool, piece: String, parts: Sink<'_>) {
    if call.name.is_empty() {
        return;
    }
    let mut text = piece;
    if !was_named {
        let id = call_id(&call.id);
        parts(DeltaPart::CallStarted { index, id, name: ToolName::from(call.name.as_str()) });
        text.clone_from(&call.arguments);
    }
    if !text.is_empty() {
        parts(DeltaPart::CallArguments { index, text });
    }
}

fn replace<T>(slot: &mut Option<T>, value: Option<T>) {
    if value.is_some() {
        *slot = value;
    }
}

/// Updates a label that nearly every chunk repeats.
fn replace_label(slot: &mut Option<String>, raw: Raw<'_>) {
    let known = slot.as_deref().is_some_and(|known| raw.is_some_and(|raw| lenient::is_text(raw, known)));
    if !known {
        replace(slot, lenient::label(raw));
    }
}

fn replace_text(slot: &mut String, value: Option<String>) {
    if let Some(value) = value {
        *slot = value;
    }
}
