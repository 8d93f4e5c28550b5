//! A conversation made ready for one model, the same way for every protocol.
//!
//! Nothing here is stored: the transcript stays as it is, and what a model cannot take is changed or left
//! out in the request only. The rules:
//!
//! 1. Images are replaced by a note for a model that sees none, a run of them by one.
//! 2. Reasoning goes back as it came to the very model that wrote it (provider, protocol and name agree).
//!    For any other model it becomes text, and what is withheld or signed is left out.
//! 3. Answers that failed or were cut off are left out, and the results of their calls with them.
//! 4. Every call has exactly one result, in call order; a missing one is made up as an error.
//! 5. Ids of calls are unique and legal in the protocol, in the calls and in their results.

mod ids;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;

use harness_core::Json;
use harness_core::message::{
    AssistantMessage, AudioBlock, Block, FileBlock, FinishReason, ImageBlock, Message, TextBlock,
    ThinkingBlock, ToolCall, ToolResultMessage,
};

pub(crate) use ids::IdRule;
use ids::SentIds;

const IMAGE_OMITTED: &str = "(image omitted: model does not support images)";
const TOOL_IMAGE_OMITTED: &str = "(tool image omitted: model does not support images)";
const NO_RESULT: &str = "No result provided";

/// Recipient of a conversation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'a> {
    /// Value of `protocol` in messages.
    pub(crate) protocol: &'static str,
    pub(crate) provider: &'a str,
    pub(crate) model: &'a str,
    pub(crate) sees_images: bool,
    pub(crate) ids: IdRule,
}

impl Target<'_> {
    /// Whether `message` came from the very model that will read it: only then may signed or provider
    /// specific reasoning be sent back.
    fn wrote(&self, message: &AssistantMessage) -> bool {
        message.provider.as_deref() == Some(self.provider)
            && message.protocol.as_deref() == Some(self.protocol)
            && message.model.as_ref().is_some_and(|model| model.as_str() == self.model)
    }
}

/// One step of a conversation that is ready to be sent.
#[derive(Debug)]
pub(crate) enum Turn<'a> {
    /// Instructions in their own place.
    System(Vec<Part<'a>>),
    /// User content, never empty.
    User { name: Option<&'a str>, parts: Vec<Part<'a>> },
    /// Model content, never empty.
    Assistant(Said<'a>),
    /// The results of the calls of the answer before, one for each and in their order.
    Results(Vec<CallResult<'a>>),
}

/// Part of the input for a model.
#[derive(Debug)]
pub(crate) enum Part<'a> {
    Text(Cow<'a, str>),
    Image(&'a ImageBlock),
    File(&'a FileBlock),
    Audio(&'a AudioBlock),
}

/// An earlier answer.
#[derive(Debug)]
pub(crate) struct Said<'a> {
    pub(crate) message: &'a AssistantMessage,
    /// Whether the model that will read it wrote it.
    pub(crate) own: bool,
    pub(crate) parts: Vec<SaidPart<'a>>,
}

/// Part of an earlier answer.
#[derive(Debug)]
pub(crate) enum SaidPart<'a> {
    Text(&'a TextBlock),
    Refusal(&'a str),
    /// Reasoning to be sent back as it came.
    Thought(&'a ThinkingBlock),
    /// Reasoning of another model, as plain text.
    ForeignThought(&'a str),
    Call(SentCall<'a>),
    /// Call of a provider's tool, returned unchanged.
    Native(&'a Json),
}

/// A call with the id under which it is sent.
#[derive(Debug, Clone)]
pub(crate) struct SentCall<'a> {
    pub(crate) id: Arc<str>,
    pub(crate) call: &'a ToolCall,
}

impl<'a> SentCall<'a> {
    /// The arguments as the provider wrote them, where that text is usable, since a signature or a cache
    /// may cover it.
    pub(crate) fn argument_text(&self) -> &'a str {
        let raw = self.call.raw_arguments.as_deref();
        raw.filter(|raw| Json::parse(raw).is_ok_and(|json| json.is_object()))
            .unwrap_or(self.call.arguments.text())
    }
}

/// Result of a call.
#[derive(Debug)]
pub(crate) struct CallResult<'a> {
    pub(crate) call: SentCall<'a>,
    pub(crate) parts: Vec<Part<'a>>,
    pub(crate) is_error: bool,
}

/// Makes `messages` ready for `target`.
pub(crate) fn prepare<'a>(messages: impl Iterator<Item = &'a Message>, target: Target<'_>) -> Vec<Turn<'a>> {
    let mut history = History { out: Vec::new(), open: Vec::new(), ids: SentIds::new(target.ids), target };
    for message in messages {
        history.message(message);
    }
    history.close();
    history.out
}

struct History<'a, 't> {
    out: Vec<Turn<'a>>,
    /// The calls of the last answer, each with its result once that was seen.
    open: Vec<(SentCall<'a>, Option<&'a ToolResultMessage>)>,
    ids: SentIds,
    target: Target<'t>,
}

impl<'a> History<'a, '_> {
    fn message(&mut self, message: &'a Message) {
        match message {
            Message::System(system) => {
                self.close();
                let parts = self.parts(&system.content, IMAGE_OMITTED);
                self.out.extend((!parts.is_empty()).then_some(Turn::System(parts)));
            }
            Message::User(user) => self.user(&user.content, user.name.as_deref()),
            Message::Assistant(assistant) => self.assistant(assistant),
            Message::ToolResult(result) => {
                let mut open = self.open.iter_mut();
                let call = open.find(|(sent, known)| known.is_none() && sent.call.id == result.tool_call_id);
                if let Some((_, slot)) = call {
                    *slot = Some(result);
                }
            }
            Message::Custom(custom) if custom.to_model => {
                self.user(custom.content.as_deref().unwrap_or_default(), None);
            }
            Message::Custom(_) | _ => {}
        }
    }

    fn user(&mut self, blocks: &'a [Block], name: Option<&'a str>) {
        self.close();
        let parts = self.parts(blocks, IMAGE_OMITTED);
        if !parts.is_empty() {
            self.out.push(Turn::User { name, parts });
        }
    }

    fn parts(&self, blocks: &'a [Block], omitted: &'static str) -> Vec<Part<'a>> {
        let mut parts: Vec<Part<'a>> = Vec::with_capacity(blocks.len());
        for part in blocks.iter().filter_map(|block| self.part(block, omitted)) {
            let is_note = |part: &Part<'_>| matches!(part, Part::Text(text) if text == omitted);
            if !(is_note(&part) && parts.last().is_some_and(is_note)) {
                parts.push(part);
            }
        }
        parts
    }

    fn part(&self, block: &'a Block, omitted: &'static str) -> Option<Part<'a>> {
        match block {
            Block::Text(text) => Some(Part::Text(Cow::Borrowed(&text.text))),
            Block::Image(image) => {
                let has_content = image.url.is_some() || image.data.is_some() || image.file_id.is_some();
                let sent = has_content && self.target.sees_images;
                Some(if sent { Part::Image(image) } else { Part::Text(Cow::Borrowed(omitted)) })
            }
            Block::File(file) => Some(Part::File(file)),
            Block::Audio(audio) => Some(Part::Audio(audio)),
            Block::Error(error) => Some(Part::Text(Cow::Borrowed(&error.message))),
            Block::Thinking(_)
            | Block::ToolCall(_)
            | Block::Refusal(_)
            | Block::Approval(_)
            | Block::Extension(_)
            | Block::Unknown(_)
            | _ => None,
        }
    }

    /// A failed or cut answer is not sent: the provider never finished it, and its calls never ran.
    fn assistant(&mut self, message: &'a AssistantMessage) {
        self.close();
        if matches!(message.stop_reason, FinishReason::Error | FinishReason::Aborted) {
            return;
        }
        let own = self.target.wrote(message);
        let parts: Vec<SaidPart<'a>> =
            message.content.iter().filter_map(|block| self.said(block, own)).collect();
        if !parts.is_empty() {
            self.out.push(Turn::Assistant(Said { message, own, parts }));
        }
    }

    fn said(&mut self, block: &'a Block, own: bool) -> Option<SaidPart<'a>> {
        match block {
            Block::Text(text) => (!text.text.is_empty()).then_some(SaidPart::Text(text)),
            Block::Refusal(refusal) => (!refusal.text.is_empty()).then_some(SaidPart::Refusal(&refusal.text)),
            Block::Thinking(thinking) if own => {
                let is_empty = thinking.thinking.is_empty() && thinking.thinking_signature.is_none();
                let has_id = thinking.id.is_some();
                (!is_empty || has_id).then_some(SaidPart::Thought(thinking))
            }
            Block::Thinking(thinking) => {
                let is_open = thinking.redacted != Some(true) && !thinking.thinking.is_empty();
                is_open.then_some(SaidPart::ForeignThought(&thinking.thinking))
            }
            Block::ToolCall(call) if call.hosted.is_none() => {
                let sent = SentCall { id: self.ids.next(call.id.as_str()), call };
                self.open.push((sent.clone(), None));
                Some(SaidPart::Call(sent))
            }
            Block::ToolCall(call) => call.hosted.as_ref().filter(|_| own).map(SaidPart::Native),
            Block::Image(_)
            | Block::File(_)
            | Block::Audio(_)
            | Block::Error(_)
            | Block::Approval(_)
            | Block::Extension(_)
            | Block::Unknown(_)
            | _ => None,
        }
    }

    /// Ends the results of the last answer.
    fn close(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let open = std::mem::take(&mut self.open);
        let results = open.into_iter().map(|(call, result)| self.result(call, result)).collect();
        self.out.push(Turn::Results(results));
    }

    fn result(&self, call: SentCall<'a>, result: Option<&'a ToolResultMessage>) -> CallResult<'a> {
        let Some(result) = result else {
            return CallResult { call, parts: vec![Part::Text(Cow::Borrowed(NO_RESULT))], is_error: true };
        };
        let mut parts = self.parts(&result.content, TOOL_IMAGE_OMITTED);
        if let (true, Some(structured)) = (parts.is_empty(), &result.structured) {
            parts.push(Part::Text(Cow::Borrowed(structured.text())));
        }
        CallResult { call, parts, is_error: result.is_error }
    }
}
