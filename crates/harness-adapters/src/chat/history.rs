//! From harness messages to the messages of a chat-completions request.
//!
//! Nothing here is stored: the transcript stays as it is, and what a provider cannot take is left out
//! of the request only.

use std::borrow::Cow;
use std::sync::Arc;

use harness_core::Json;
use harness_core::message::{
    AssistantMessage, Block, FileBlock, FinishReason, ImageBlock, Message, ToolCall, ToolResultMessage,
};
use serde::{Deserialize, Serialize};

use crate::http::names::{ToolNames, is_legal};

/// Whom the messages are for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) provider: &'a str,
    pub(crate) model: &'a str,
    pub(crate) sees_images: bool,
}

impl Target<'_> {
    /// Whether `message` came from the very model that will read it: only then may signed or provider
    /// specific reasoning be sent back.
    fn wrote(&self, message: &AssistantMessage) -> bool {
        message.rare.provider.as_deref() == Some(self.provider)
            && message.rare.model.as_ref().is_some_and(|model| model.as_str() == self.model)
    }
}

/// One message as it is sent.
#[derive(Debug, Serialize)]
pub(crate) struct Sent<'a> {
    role: &'static str,
    content: Option<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<SentCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_details: Option<Json>,
}

impl<'a> Sent<'a> {
    fn new(role: &'static str, content: Option<Content<'a>>) -> Self {
        Self {
            role,
            content,
            name: None,
            tool_call_id: None,
            tool_calls: Vec::new(),
            reasoning: None,
            reasoning_content: None,
            reasoning_details: None,
        }
    }
}

impl Sent<'_> {
    pub(crate) fn has_calls(&self) -> bool {
        !self.tool_calls.is_empty()
    }
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<SentPart<'a>>),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum SentPart<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: ImageUrl<'a> },
    File { file: SentFile<'a> },
    InputAudio { input_audio: SentAudio<'a> },
}

#[derive(Debug, Serialize)]
struct ImageUrl<'a> {
    url: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct SentFile<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    filename: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_data: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_id: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct SentAudio<'a> {
    data: &'a str,
    format: &'a str,
}

#[derive(Debug, Serialize)]
struct SentCall<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: SentFunction<'a>,
}

#[derive(Debug, Serialize)]
struct SentFunction<'a> {
    name: Cow<'a, str>,
    arguments: &'a str,
}

/// The part of an assistant message's provider metadata that must be sent back.
#[derive(Debug, Default, Deserialize)]
struct Returned {
    #[serde(default)]
    reasoning_details: Option<Json>,
}

/// Converts a request's instructions and messages.
pub(crate) fn convert<'a>(
    instructions: &'a str,
    messages: &[&'a Arc<Message>],
    target: Target<'_>,
    names: &'a ToolNames,
) -> Vec<Sent<'a>> {
    let mut history = History { out: Vec::new(), open: Vec::new(), images: Vec::new(), target, names };
    if !instructions.is_empty() {
        history.out.push(Sent::new("system", Some(Content::Text(Cow::Borrowed(instructions)))));
    }
    for message in messages {
        history.message(message);
    }
    history.close();
    history.out
}

struct History<'a, 't> {
    out: Vec<Sent<'a>>,
    /// Calls of the last assistant message that have no result yet.
    open: Vec<&'a ToolCall>,
    /// Images of the results since then; a tool message cannot carry them.
    images: Vec<SentPart<'a>>,
    target: Target<'t>,
    names: &'a ToolNames,
}

impl<'a> History<'a, '_> {
    fn message(&mut self, message: &'a Message) {
        match message {
            Message::System(system) => self.plain("system", &system.content, None),
            Message::User(user) => {
                let name = user.name.as_deref().filter(|name| is_legal(name));
                self.plain("user", &user.content, name);
            }
            Message::Assistant(assistant) => self.assistant(assistant),
            Message::ToolResult(result) => self.result(result),
            Message::Custom(custom) if custom.to_model => {
                self.plain("user", custom.content.as_deref().unwrap_or_default(), None);
            }
            Message::Custom(_) | _ => {}
        }
    }

    fn plain(&mut self, role: &'static str, blocks: &'a [Block], name: Option<&'a str>) {
        self.close();
        if let Some(content) = self.content(blocks) {
            self.out.push(Sent { name, ..Sent::new(role, Some(content)) });
        }
    }

    fn content(&self, blocks: &'a [Block]) -> Option<Content<'a>> {
        if let [Block::Text(only)] = blocks {
            return Some(Content::Text(Cow::Borrowed(&only.text)));
        }
        let mut parts: Vec<SentPart<'a>> = Vec::new();
        for part in blocks.iter().filter_map(|block| self.part(block)) {
            if !(is_omission(&part) && parts.last().is_some_and(is_omission)) {
                parts.push(part);
            }
        }
        (!parts.is_empty()).then_some(Content::Parts(parts))
    }

    fn part(&self, block: &'a Block) -> Option<SentPart<'a>> {
        match block {
            Block::Text(text) => Some(SentPart::Text { text: Cow::Borrowed(&text.text) }),
            Block::Image(image) => Some(self.image(image)),
            Block::File(file) => Some(SentPart::File { file: sent_file(file) }),
            Block::Audio(audio) => {
                let format = audio.mime_type.as_deref().and_then(|mime| mime.rsplit('/').next());
                let data = audio.data.as_deref();
                let sent = data.zip(format).map(|(data, format)| SentAudio { data, format });
                sent.map(|input_audio| SentPart::InputAudio { input_audio })
            }
            Block::Thinking(_)
            | Block::ToolCall(_)
            | Block::Refusal(_)
            | Block::Error(_)
            | Block::Approval(_)
            | Block::Extension(_)
            | Block::Unknown(_)
            | _ => None,
        }
    }

    fn image(&self, image: &'a ImageBlock) -> SentPart<'a> {
        let url = match (&image.url, &image.data) {
            (Some(url), _) => Cow::Borrowed(url.as_str()),
            (None, Some(data)) => {
                let mime = image.mime_type.as_deref().unwrap_or("image/png");
                Cow::Owned(format!("data:{mime};base64,{data}"))
            }
            (None, None) => return SentPart::Text { text: Cow::Borrowed(OMITTED) },
        };
        if !self.target.sees_images {
            return SentPart::Text { text: Cow::Borrowed(OMITTED) };
        }
        SentPart::ImageUrl { image_url: ImageUrl { url, detail: image.detail.as_deref() } }
    }

    /// A failed or cut answer is not sent: the provider never finished it, and its calls never ran.
    fn assistant(&mut self, message: &'a AssistantMessage) {
        if matches!(message.stop_reason, FinishReason::Error | FinishReason::Aborted) {
            return;
        }
        self.close();
        let own = self.target.wrote(message);
        let text = assistant_text(message, own);
        let mut sent = Sent::new("assistant", text.map(Content::Text));
        for call in message.tool_calls() {
            sent.tool_calls.push(SentCall {
                id: call.id.as_str(),
                kind: "function",
                function: SentFunction {
                    name: self.names.to_wire(call.name.as_str()),
                    arguments: argument_text(call),
                },
            });
            self.open.push(call);
        }
        if own {
            add_reasoning(&mut sent, message);
        }
        if sent.content.is_some() || !sent.tool_calls.is_empty() {
            self.out.push(sent);
        }
    }

    fn result(&mut self, result: &'a ToolResultMessage) {
        let Some(at) = self.open.iter().position(|call| call.id == result.tool_call_id) else { return };
        self.open.remove(at);
        let texts: Vec<&str> = result.content.iter().filter_map(Block::as_text).collect();
        let images: Vec<SentPart<'a>> = result
            .content
            .iter()
            .filter(|block| block.as_text().is_none())
            .filter_map(|block| self.part(block))
            .collect();
        let text = match (texts.as_slice(), &result.structured) {
            ([], _) if !images.is_empty() => Cow::Borrowed("(see the attached content below)"),
            ([], Some(structured)) => Cow::Borrowed(structured.text()),
            ([only], _) => Cow::Borrowed(*only),
            (several, _) => Cow::Owned(several.join("\n")),
        };
        self.images.extend(images);
        self.out.push(Sent {
            tool_call_id: Some(result.tool_call_id.as_str()),
            ..Sent::new("tool", Some(Content::Text(text)))
        });
    }

    /// Ends the results of the last assistant message: each call has one, and their images follow.
    fn close(&mut self) {
        for call in self.open.drain(..) {
            self.out.push(Sent {
                tool_call_id: Some(call.id.as_str()),
                ..Sent::new("tool", Some(Content::Text(Cow::Borrowed("No result provided"))))
            });
        }
        if !self.images.is_empty() {
            let mut parts =
                vec![SentPart::Text { text: Cow::Borrowed("Attached content of the tool results above:") }];
            parts.append(&mut self.images);
            self.out.push(Sent::new("user", Some(Content::Parts(parts))));
        }
    }
}

const OMITTED: &str = "(image omitted: model does not support images)";

fn is_omission(part: &SentPart<'_>) -> bool {
    matches!(part, SentPart::Text { text } if text == OMITTED)
}

fn sent_file(file: &FileBlock) -> SentFile<'_> {
    let mime = file.mime_type.as_deref().unwrap_or("application/octet-stream");
    let data = file.data.as_ref().map(|data| Cow::Owned(format!("data:{mime};base64,{data}")));
    SentFile {
        filename: file.name.as_deref(),
        file_data: data.or_else(|| file.url.as_deref().map(Cow::Borrowed)),
        file_id: file.file_id.as_deref(),
    }
}

/// The arguments as the provider wrote them, where that text is usable, since a signature or a cache
/// may cover it.
fn argument_text(call: &ToolCall) -> &str {
    let raw = call.rare.raw_arguments.as_deref();
    raw.filter(|raw| Json::parse(raw).is_ok_and(|json| json.is_object())).unwrap_or(call.arguments.text())
}

/// Text and refusals of an answer. Reasoning of another model goes along as text, since it cannot be
/// sent back in the form in which it came.
fn assistant_text(message: &AssistantMessage, own: bool) -> Option<Cow<'_, str>> {
    let mut pieces = message.content.iter().filter_map(|block| match block {
        Block::Text(text) => Some(Cow::Borrowed(text.text.as_str())),
        Block::Refusal(refusal) => Some(Cow::Borrowed(refusal.text.as_str())),
        Block::Thinking(thinking)
            if !own && thinking.redacted != Some(true) && !thinking.thinking.is_empty() =>
        {
            Some(Cow::Owned(format!("{}\n\n", thinking.thinking)))
        }
        Block::Thinking(_)
        | Block::ToolCall(_)
        | Block::Image(_)
        | Block::File(_)
        | Block::Audio(_)
        | Block::Error(_)
        | Block::Approval(_)
        | Block::Extension(_)
        | Block::Unknown(_)
        | _ => None,
    });
    let first = pieces.next()?;
    let text = pieces.fold(first, |joined, piece| joined + piece);
    (!text.is_empty()).then_some(text)
}

fn add_reasoning(sent: &mut Sent<'_>, message: &AssistantMessage) {
    let returned =
        message.rare.provider_metadata.as_ref().and_then(|metadata| metadata.to::<Returned>().ok());
    sent.reasoning_details = returned.and_then(|returned| returned.reasoning_details);
    if sent.reasoning_details.is_some() {
        return;
    }
    for block in &message.content {
        let Block::Thinking(thinking) = block else { continue };
        let slot = match thinking.field.as_deref() {
            Some("reasoning") => &mut sent.reasoning,
            Some("reasoning_content") => &mut sent.reasoning_content,
            _ => continue,
        };
        slot.get_or_insert_default().push_str(&thinking.thinking);
    }
}
