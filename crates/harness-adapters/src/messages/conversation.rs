//! From a prepared conversation to the `system` and the `messages` of a request.

use std::borrow::Cow;

use harness_core::Json;
use harness_core::message::{AudioBlock, FileBlock, FinishReason, ImageBlock, TextBlock, ThinkingBlock};
use serde::Serialize;

use crate::history::{CallResult, Part, Said, SaidPart, Turn};
use crate::http::CacheControl;
use crate::http::names::ToolNames;

/// Message after an answer that is followed by nothing.
const CONTINUE: &str = "Continue.";

/// Parts of a request that contain the conversation.
#[derive(Debug)]
pub(super) struct Conversation<'a> {
    pub(super) system: Vec<SentBlock<'a>>,
    pub(super) messages: Vec<SentMessage<'a>>,
    pub(super) has_calls: bool,
}

/// One message as it is sent.
#[derive(Debug, Serialize)]
pub(super) struct SentMessage<'a> {
    role: &'static str,
    content: Vec<SentBlock<'a>>,
}

/// One block as it is sent.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum SentBlock<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        citations: Option<&'a [Json]>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Image {
        source: Source<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Document {
        source: Source<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    ToolUse {
        id: &'a str,
        name: Cow<'a, str>,
        input: &'a Json,
    },
    ToolResult {
        tool_use_id: &'a str,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        content: Vec<SentBlock<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    /// A block that goes back as it came.
    #[serde(untagged)]
    Native(&'a Json),
}

/// Where the content of an image or document is.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Source<'a> {
    Base64 { media_type: &'a str, data: &'a str },
    Text { media_type: &'static str, data: String },
    Url { url: &'a str },
    File { file_id: &'a str },
}

/// Writes a request's instructions and conversation. With a mark, the end of the instructions, of the
/// conversation, and of the conversation as the request before had it, carry it.
pub(super) fn write<'a>(
    instructions: &'a str,
    turns: &'a [Turn<'a>],
    names: &'a ToolNames,
    mark: Option<CacheControl>,
) -> Conversation<'a> {
    let mut out = Conversation { system: Vec::new(), messages: Vec::new(), has_calls: false };
    out.system.extend(text(Cow::Borrowed(instructions)));
    for turn in turns {
        match turn {
            Turn::System(parts) if out.messages.is_empty() => {
                out.system.extend(parts.iter().filter_map(block));
            }
            Turn::System(parts) => out.say("user", parts.iter().filter_map(tagged)),
            Turn::User { parts, .. } => out.say("user", parts.iter().filter_map(block)),
            Turn::Assistant(said) => {
                out.has_calls |= said.parts.iter().any(|part| matches!(part, SaidPart::Call(_)));
                out.say("assistant", said.parts.iter().filter_map(|part| answer(part, said, names)));
            }
            Turn::Results(results) => out.say("user", results.iter().map(result)),
        }
    }
    let is_paused = |said: &Said<'_>| said.own && said.message.stop_reason == FinishReason::Paused;
    let paused = matches!(turns.last(), Some(Turn::Assistant(said)) if is_paused(said));
    if !paused && out.messages.last().is_some_and(|last| last.role == "assistant") {
        // The protocol reads an answer at the end as the beginning of the next one, and newer models refuse it.
        out.say("user", text(Cow::Borrowed(CONTINUE)).into_iter());
    }
    if let Some(mark) = mark {
        out.mark(mark);
    }
    out
}

impl<'a> Conversation<'a> {
    /// Adds blocks to the last message of that role, or to a new one: the results of calls and what a user
    /// says after them must be one message.
    fn say(&mut self, role: &'static str, blocks: impl Iterator<Item = SentBlock<'a>>) {
        let content: Vec<SentBlock<'a>> = blocks.collect();
        match self.messages.last_mut() {
            _ if content.is_empty() => {}
            Some(last) if last.role == role => last.content.extend(content),
            _ => self.messages.push(SentMessage { role, content }),
        }
    }

    fn mark(&mut self, mark: CacheControl) {
        let ends = self.messages.iter_mut().rev().filter(|message| message.role == "user").take(2);
        let ends = ends.filter_map(|message| message.content.last_mut());
        for end in self.system.last_mut().into_iter().chain(ends) {
            end.mark(mark);
        }
    }
}

impl SentBlock<'_> {
    fn mark(&mut self, mark: CacheControl) {
        match self {
            Self::Text { cache_control, .. }
            | Self::Image { cache_control, .. }
            | Self::Document { cache_control, .. }
            | Self::ToolResult { cache_control, .. } => *cache_control = Some(mark),
            Self::ToolUse { .. }
            | Self::Thinking { .. }
            | Self::RedactedThinking { .. }
            | Self::Native(_) => {}
        }
    }
}

/// Text, unless it is blank, which the protocol refuses.
fn text(text: Cow<'_, str>) -> Option<SentBlock<'_>> {
    let is_blank = text.trim().is_empty();
    (!is_blank).then_some(SentBlock::Text { text, citations: None, cache_control: None })
}

fn block<'a>(part: &'a Part<'a>) -> Option<SentBlock<'a>> {
    match part {
        Part::Text(said) => text(Cow::Borrowed(said)),
        Part::Image(image) => Some(sent_image(image)),
        Part::File(file) => Some(sent_file(file)),
        Part::Audio(audio) => text(heard(audio)),
    }
}

/// A later instruction, which the protocol has no place for, as a user's text that shows what it is.
fn tagged<'a>(part: &'a Part<'a>) -> Option<SentBlock<'a>> {
    match part {
        Part::Text(said) => text(Cow::Owned(format!("<system>\n{said}\n</system>"))),
        Part::Image(_) | Part::File(_) | Part::Audio(_) => block(part),
    }
}

fn answer<'a>(part: &'a SaidPart<'a>, said: &Said<'_>, names: &'a ToolNames) -> Option<SentBlock<'a>> {
    match part {
        SaidPart::Text(said_text) => answer_text(said_text, said.own),
        SaidPart::Refusal(said) => text(Cow::Borrowed(*said)),
        SaidPart::ForeignThought(thought) => text(Cow::Borrowed(*thought)),
        SaidPart::Thought(thinking) => sent_thinking(thinking),
        SaidPart::Call(sent) => Some(SentBlock::ToolUse {
            id: &sent.id,
            name: names.to_wire(sent.call.name.as_str()),
            input: &sent.call.arguments,
        }),
        SaidPart::Native(raw) => Some(SentBlock::Native(raw)),
    }
}

fn answer_text(said: &TextBlock, own: bool) -> Option<SentBlock<'_>> {
    let mut block = text(Cow::Borrowed(said.text.as_str()))?;
    if let SentBlock::Text { citations, .. } = &mut block {
        *citations = said.annotations.as_deref().filter(|_| own);
    }
    Some(block)
}

/// Reasoning without a signature is refused by the protocol; as text it is not lost.
fn sent_thinking(thinking: &ThinkingBlock) -> Option<SentBlock<'_>> {
    match (thinking.thinking_signature.as_deref(), thinking.redacted) {
        (Some(data), Some(true)) => Some(SentBlock::RedactedThinking { data }),
        (Some(signature), _) => Some(SentBlock::Thinking { thinking: &thinking.thinking, signature }),
        (None, _) => text(Cow::Borrowed(thinking.thinking.as_str())),
    }
}

fn result<'a>(result: &'a CallResult<'a>) -> SentBlock<'a> {
    SentBlock::ToolResult {
        tool_use_id: &result.call.id,
        content: result.parts.iter().filter_map(block).collect(),
        is_error: result.is_error,
        cache_control: None,
    }
}

fn sent_image(image: &ImageBlock) -> SentBlock<'_> {
    let source = match (&image.data, &image.url, &image.file_id) {
        (Some(data), _, _) => {
            Source::Base64 { media_type: image.mime_type.as_deref().unwrap_or("image/png"), data }
        }
        (None, Some(url), _) => match data_url(url) {
            Some((media_type, data)) => Source::Base64 { media_type, data },
            None => Source::Url { url },
        },
        (None, None, id) => Source::File { file_id: id.as_deref().unwrap_or_default() },
    };
    SentBlock::Image { source, cache_control: None }
}

/// Media type and base64 data of a `data:` URL.
fn data_url(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}

/// A file as a document, which is a PDF or plain text; any other is only named.
fn sent_file(file: &FileBlock) -> SentBlock<'_> {
    let inline = match (&file.data, file.url.as_deref().and_then(data_url)) {
        (Some(data), _) => Some((file.mime_type.as_deref().unwrap_or("application/pdf"), data.as_str())),
        (None, inline) => inline,
    };
    let source = match (inline, &file.url, &file.file_id) {
        (Some((media_type @ "application/pdf", data)), _, _) => Source::Base64 { media_type, data },
        (Some((media_type, data)), _, _) => match decoded(media_type, data) {
            Some(data) => Source::Text { media_type: "text/plain", data },
            None => return omitted(file, media_type),
        },
        (None, _, Some(file_id)) => Source::File { file_id },
        (None, Some(url), None) => Source::Url { url },
        (None, None, None) => return omitted(file, "content"),
    };
    SentBlock::Document { source, title: file.name.as_deref(), cache_control: None }
}

/// The text of an inline text file.
fn decoded(media_type: &str, data: &str) -> Option<String> {
    use base64::Engine as _;
    let is_text = media_type.starts_with("text/") || media_type.starts_with("application/json");
    let bytes = base64::engine::general_purpose::STANDARD.decode(data).ok().filter(|_| is_text)?;
    String::from_utf8(bytes).ok()
}

fn omitted<'a>(file: &FileBlock, what: &str) -> SentBlock<'a> {
    let name = file.name.as_deref().unwrap_or("without a name");
    let note = format!("(file {name} omitted: model does not support {what})");
    SentBlock::Text { text: Cow::Owned(note), citations: None, cache_control: None }
}

/// Text in place of audio, which the protocol does not support.
fn heard(audio: &AudioBlock) -> Cow<'_, str> {
    let said = audio.transcript.as_deref();
    said.map_or(Cow::Borrowed("(audio omitted: model does not support audio)"), Cow::Borrowed)
}
