//! From the bytes of a chat-completions stream to one [`Completion`]; no I/O, no clock.

use std::collections::BTreeMap;

use harness_core::port::DeltaPart;
use harness_core::{Json, ToolName};
use serde_json::value::RawValue;

use super::common::{self, Pattern};
use super::completion::{Completion, CompletionCall};
use super::wire::{self, Body, CallPart, Choice, Chunk, FunctionPart};
use crate::AdapterError;
use crate::http::exchange::Answer;
use crate::http::frames::Frames;
use crate::http::lenient::{self, Raw};
use crate::http::names::call_id;
use crate::http::sse::Item;
use crate::http::{ReplyLimits, Sink, Undecoded, bound, bound_call, reported_error};
use crate::label::{MAX_LABEL_BYTES, bounded_label};
use crate::raw::Object;
use crate::seam::{Piece, Seam};

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
    answer: Gathered,
}

impl Assembler {
    /// Starts a stream.
    pub fn new(limits: ReplyLimits) -> Self {
        Self { frames: Frames::new(&limits), answer: Gathered::new(limits) }
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
        let answer = &mut self.answer;
        self.frames.feed(bytes, &mut |item| answer.item(item, parts))
    }

    /// Whether `[DONE]` was seen; nothing of interest follows it.
    pub fn is_done(&self) -> bool {
        self.answer.completion.saw_done
    }

    /// Ends the stream. An unfinished last event is dropped.
    pub fn finish(self) -> Completion {
        self.answer.finish()
    }
}

impl Answer for Assembler {
    fn feed(&mut self, bytes: &[u8], parts: Sink<'_>) -> Result<(), AdapterError> {
        Self::feed(self, bytes, parts)
    }

    fn document(&mut self, text: &str, parts: Sink<'_>) -> Result<(), AdapterError> {
        self.answer.chunk(text, parts)?;
        self.answer.completion.saw_done = true;
        self.answer.completion.document = (text.len() <= MAX_DOCUMENT).then(|| text.to_owned());
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.is_done() || self.answer.completion.error.is_some()
    }

    fn is_whole(&self) -> bool {
        self.answer.completion.finish_reason.is_some()
    }
}

impl Completion {
    /// Reads a reply that is one JSON document instead of a stream.
    ///
    /// # Errors
    /// [`AdapterError::TooLarge`] when a bound is passed.
    pub fn from_document(body: &str, limits: ReplyLimits, parts: Sink<'_>) -> Result<Self, AdapterError> {
        bound(body.len(), limits.body, "reply", "bytes")?;
        let mut answer = Gathered::new(limits);
        answer.chunk(body, parts)?;
        answer.completion.saw_done = true;
        Ok(answer.finish())
    }
}

/// State of the answer so far.
#[derive(Debug)]
struct Gathered {
    completion: Completion,
    calls: BTreeMap<u64, Calling>,
    details: Vec<Detail>,
    undecoded: Undecoded,
    seams: Seams,
    pattern: Pattern,
    limits: ReplyLimits,
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

impl Gathered {
    fn new(limits: ReplyLimits) -> Self {
        Self {
            completion: Completion::default(),
            calls: BTreeMap::new(),
            details: Vec::new(),
            undecoded: Undecoded::default(),
            seams: Seams::default(),
            pattern: Pattern::default(),
            limits,
        }
    }

    fn item(&mut self, item: Item<'_>, parts: Sink<'_>) -> Result<(), AdapterError> {
        match item {
            _ if self.completion.saw_done => Ok(()),
            Item::Comment => {
                self.completion.comments = self.completion.comments.saturating_add(1);
                Ok(())
            }
            Item::Data(data) if data.trim() == "[DONE]" => {
                self.completion.saw_done = true;
                Ok(())
            }
            // An event without data keeps the connection alive.
            Item::Data(data) if data.trim().is_empty() => Ok(()),
            Item::Data(data) => self.chunk(data, parts),
        }
    }

    fn chunk(&mut self, data: &str, parts: Sink<'_>) -> Result<(), AdapterError> {
        if let Some(text) = self.pattern.text(data) {
            self.say(text.to_owned().into(), parts);
            return Ok(());
        }
        if let Some(chunk) = common::Chunk::read(data) {
            return self.common(data, chunk, parts);
        }
        self.pattern.forget();
        let Ok(chunk) = serde_json::from_str::<Chunk<'_>>(data) else {
            self.undecoded.note(data);
            return Ok(());
        };
        if self.completion.id.is_none() {
            self.completion.id = lenient::id(chunk.id);
        }
        replace(&mut self.completion.model, lenient::label(chunk.model));
        replace(&mut self.completion.provider, lenient::label(chunk.provider));
        replace(&mut self.completion.usage, wire::usage(chunk.usage));
        self.error(chunk.error);
        let choices: Vec<Choice<'_>> = lenient::decode(chunk.choices).unwrap_or_default();
        for choice in choices {
            if lenient::number(choice.index).unwrap_or(0) == 0 {
                self.choice(&choice, parts)?;
            }
        }
        Ok(())
    }

    fn common(&mut self, data: &str, chunk: common::Chunk<'_>, parts: Sink<'_>) -> Result<(), AdapterError> {
        if self.completion.id.is_none() {
            let id = chunk.id.as_str().filter(|id| id.len() <= MAX_LABEL_BYTES);
            self.completion.id = id.map(str::to_owned);
        }
        let other_model = renew(&mut self.completion.model, chunk.model.as_str());
        let other_provider = renew(&mut self.completion.provider, chunk.provider.as_str());
        match chunk.delta().only_text() {
            Some(text) => self.pattern.learn(data, text),
            None if other_model || other_provider => self.pattern.forget(),
            None => {}
        }
        let mut delta = chunk.into_delta();
        let call = delta.take_call();
        let reasoning = delta.reasoning.into_string().map(|piece| ("reasoning", piece));
        let other = || delta.reasoning_content.into_string().map(|piece| ("reasoning_content", piece));
        if let Some((field, piece)) = reasoning.or_else(other) {
            self.think(field, piece.into(), parts);
        }
        if let Some(piece) = delta.content.into_string() {
            self.say(piece.into(), parts);
        }
        let Some(call) = call else { return Ok(()) };
        let piece = call.function.arguments.into_string().unwrap_or_default().into();
        self.fragment(call.index, call.id.into_string(), call.function.name.into_string(), piece, parts)
    }

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

    fn error(&mut self, raw: Raw<'_>) {
        if self.completion.error.is_none() {
            self.completion.error = reported_error(raw);
        }
    }

    fn choice(&mut self, choice: &Choice<'_>, parts: Sink<'_>) -> Result<(), AdapterError> {
        self.error(choice.error);
        replace(&mut self.completion.usage, wire::usage(choice.usage));
        replace(&mut self.completion.finish_reason, lenient::label(choice.finish_reason));
        replace(&mut self.completion.native_finish_reason, lenient::label(choice.native_finish_reason));
        let shape = if choice.delta.is_some() { Shape::Delta } else { Shape::Whole };
        let body: Body<'_> = lenient::decode(choice.delta.or(choice.message)).unwrap_or_default();
        self.reasoning(&body, shape, parts)?;
        if let Some(piece) = wire::content(body.content) {
            self.say(piece, parts);
        }
        if let Some(piece) = lenient::piece(body.refusal) {
            self.refuse(piece, parts);
        }
        let calls: Vec<&RawValue> = lenient::decode(body.tool_calls).unwrap_or_default();
        for call in calls {
            self.call(call, shape, parts)?;
        }
        Ok(())
    }

    fn reasoning(&mut self, body: &Body<'_>, shape: Shape, parts: Sink<'_>) -> Result<(), AdapterError> {
        let named = [("reasoning", body.reasoning), ("reasoning_content", body.reasoning_content)];
        let found = named.into_iter().find_map(|(field, raw)| Some((field, wire::content(raw)?)));
        if let Some((field, piece)) = found {
            self.think(field, piece, parts);
        }
        let details: Vec<Object<'_>> = lenient::decode(body.reasoning_details).unwrap_or_default();
        for detail in details {
            let detail = Detail::new(detail);
            let known = self.details.iter_mut().rev().find(|known| known.continues_with(&detail));
            match known.filter(|_| shape == Shape::Delta) {
                Some(known) => known.merge(detail),
                None => self.details.push(detail.settled()),
            }
            bound(self.details.len(), self.limits.reasoning_items, "list of reasoning items", "items")?;
        }
        Ok(())
    }

    fn call(&mut self, raw: &RawValue, shape: Shape, parts: Sink<'_>) -> Result<(), AdapterError> {
        let Some(part) = lenient::decode::<CallPart<'_>>(Some(raw)) else {
            self.undecoded.note(raw.get());
            return Ok(());
        };
        let id = lenient::text(part.id);
        let function: FunctionPart<'_> = lenient::decode(part.function).unwrap_or_default();
        let name = lenient::text(function.name);
        let index = match (shape, lenient::number(part.index)) {
            (Shape::Delta, Some(index)) => index,
            (Shape::Delta, None) => self.index_of(id.as_deref(), name.is_some()),
            (Shape::Whole, _) => self.next_index(),
        };
        let piece = wire::arguments(function.arguments).unwrap_or_default();
        self.fragment(index, id, name, piece, parts)
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
        bound(self.calls.len(), self.limits.tool_calls, "list of tool calls", "calls")
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

    fn finish(mut self) -> Completion {
        let (seams, completion) = (&self.seams, &mut self.completion);
        for (text, seam) in [
            (&mut completion.content, seams.content),
            (&mut completion.reasoning, seams.reasoning),
            (&mut completion.refusal, seams.refusal),
        ] {
            if !seam.end().is_empty() {
                text.get_or_insert_default().push_str(seam.end());
            }
        }
        let calls = self.calls.into_values().map(|Calling { mut call, seam }| {
            call.arguments.push_str(seam.end());
            call
        });
        Completion {
            reasoning_details: self.details.iter().filter_map(Detail::to_json).collect(),
            tool_calls: calls.collect(),
            malformed_events: self.undecoded.count,
            malformed_event: self.undecoded.first().map(str::to_owned),
            ..self.completion
        }
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
    fn new(object: Object<'_>) -> Self {
        let fields = object.0.into_iter().filter_map(|(key, raw)| {
            let field = match lenient::piece(Some(raw)) {
                Some(piece) if matches!(key.as_str(), "text" | "summary" | "data") => Field::Piece(piece),
                _ => Field::Fixed(Json::parse(raw.get()).ok()?),
            };
            Some((key, field))
        });
        Self { fields: fields.collect() }
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

    /// Merges a chunk: text is appended, other fields take the last value, and null is no value.
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

    fn to_json(&self) -> Option<Json> {
        let fields: Vec<String> = self
            .fields
            .iter()
            .map(|(key, field)| {
                let value = match field {
                    Field::Growing(text, seam) => Json::string(&format!("{text}{}", seam.end())),
                    Field::Piece(piece) => Json::string(&piece.clone().into_text()),
                    Field::Fixed(value) => value.clone(),
                };
                format!("{}:{value}", Json::string(key))
            })
            .collect();
        Json::parse(&format!("{{{}}}", fields.join(","))).ok()
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

/// Updates a text that rarely changes; returns whether it changed.
fn renew(slot: &mut Option<String>, text: Option<&str>) -> bool {
    let other = text.is_some() && slot.as_deref() != text;
    if other {
        *slot = text.map(|text| bounded_label(text.to_owned()));
    }
    other
}

fn replace_text(slot: &mut String, value: Option<String>) {
    if let Some(value) = value {
        *slot = value;
    }
}
