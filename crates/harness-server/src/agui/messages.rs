//! Messages of AG-UI clients.

use std::collections::{HashMap, HashSet};

use harness::core::message::{
    AssistantMessage, AudioBlock, Block, FileBlock, ImageBlock, Message, ToolCall, UserMessage,
};
use harness::core::transcript::Prefix;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::request::CONTEXT;
use crate::fault::Fault;
use crate::openai::content::{self, Said};

/// A message of a conversation.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgUiMessage {
    /// Id of the message, by which the thread knows those of the user.
    #[schema(example = "message-1")]
    id: String,
    /// `user`, `assistant`, `tool`, `system` or `developer`; `reasoning` and `activity` are skipped.
    #[schema(example = "user")]
    role: String,
    /// A text, or a list of parts: `text`, `image`, `audio`, `document`.
    #[schema(value_type = Option<AgUiContent>, example = "Where is my order 1042?")]
    content: Option<Value>,
    /// Name of the sender.
    name: Option<String>,
    /// Calls of the assistant.
    tool_calls: Option<Vec<AgUiToolCall>>,
    /// Call whose result this is.
    tool_call_id: Option<String>,
    /// Error of the call.
    error: Option<String>,
}

/// A text, or a list of parts.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum AgUiContent {
    Text(String),
    Parts(Vec<AgUiPart>),
}

/// Part of a message, tagged by `type`.
#[derive(Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
#[expect(dead_code, reason = "only its schema is used")]
enum AgUiPart {
    Text {
        text: String,
    },
    Image {
        source: AgUiSource,
    },
    Audio {
        source: AgUiSource,
    },
    Document {
        source: AgUiSource,
    },
    /// The parts of earlier versions of the protocol.
    Binary(AgUiBinary),
}

/// Place of the bytes of a part.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AgUiSource {
    /// `data` for Base64, `url`, or `file` for a file uploaded to the provider.
    r#type: String,
    value: String,
    /// Media type; required for `data`.
    mime_type: Option<String>,
}

/// Bytes with their media type.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AgUiBinary {
    mime_type: String,
    /// Base64.
    data: Option<String>,
    url: Option<String>,
    /// File uploaded to the provider.
    id: Option<String>,
    filename: Option<String>,
}

/// A call in a history.
#[derive(Debug, Deserialize, ToSchema)]
struct AgUiToolCall {
    id: String,
    function: AgUiFunction,
}

/// The called function.
#[derive(Debug, Deserialize, ToSchema)]
struct AgUiFunction {
    name: String,
    /// Arguments as JSON text.
    #[serde(default)]
    arguments: String,
}

/// Reads messages, with the ids of the client.
pub(super) fn read(given: Vec<AgUiMessage>) -> Result<Vec<(String, Message)>, Fault> {
    let (mut calls, mut messages) = (HashMap::new(), Vec::new());
    for (index, message) in given.into_iter().enumerate() {
        let id = message.id.clone();
        if let Some(message) = read_message(message, &format!("messages[{index}]"), &mut calls)? {
            messages.push((id, message));
        }
    }
    Ok(messages)
}

fn read_message(
    message: AgUiMessage,
    at: &str,
    calls: &mut HashMap<String, ToolCall>,
) -> Result<Option<Message>, Fault> {
    let AgUiMessage { id, role, content, name, tool_calls, tool_call_id, error } = message;
    let content = content.unwrap_or_default();
    let blocks = || blocks(&content, &format!("{at}.content"));
    let message = match role.as_str() {
        "user" => {
            let mut message = UserMessage::default();
            (message.content, message.name, message.id) = (blocks()?, name, Some(id));
            message.from_origin("prompt").into()
        }
        "system" | "developer" => content::system(blocks()?),
        "assistant" => {
            let mut answer = AssistantMessage::default();
            answer.content = blocks()?;
            for (index, given) in tool_calls.unwrap_or_default().into_iter().enumerate() {
                let at = format!("{at}.toolCalls[{index}].function.arguments");
                let call = content::call(&given.id, &given.function.name, &given.function.arguments, &at)?;
                calls.insert(given.id, call.clone());
                answer.content.push(Block::from(call));
            }
            answer.into()
        }
        "tool" => {
            let call = tool_call_id.and_then(|id| calls.get(&id));
            let missing = || {
                Fault::unreadable("`toolCallId` does not name an earlier call").at(format!("{at}.toolCallId"))
            };
            content::result(call.ok_or_else(missing)?, blocks()?, error.is_some())
        }
        "reasoning" | "activity" => return Ok(None),
        other => {
            return Err(Fault::unreadable(format!("unknown role `{other}`"))
                .at(format!("{at}.role"))
                .hint("use `system`, `developer`, `user`, `assistant` or `tool`"));
        }
    };
    Ok(Some(message))
}

/// Splits the messages of a thread without messages into its history and the prompt.
pub(super) fn first(messages: Vec<(String, Message)>, context: Option<String>) -> Result<Said, Fault> {
    let mut said = Said::split(messages.into_iter().map(|(_, message)| message).collect(), "messages")?;
    said.history.extend(context.map(context_message));
    Ok(said)
}

/// Returns the messages that a thread does not have, which start its next run.
pub(super) fn next(
    mut messages: Vec<(String, Message)>,
    context: Option<String>,
    known: &Prefix,
    has_decisions: bool,
) -> Result<Vec<Message>, Fault> {
    let ids: HashSet<&str> = known.iter().filter_map(|message| user_id(message)).collect();
    let is_known = |(id, message): &(String, Message)| match message {
        Message::User(_) => ids.contains(id.as_str()),
        Message::System(_) => false,
        Message::Assistant(_) | Message::ToolResult(_) | Message::Custom(_) | _ => true,
    };
    let start = messages.iter().rposition(is_known).map_or(0, |last| last + 1);
    let has_system = |text: &str| {
        known.iter().any(|message| matches!(&**message, Message::System(_)) && message.joined_text() == text)
    };
    let is_new =
        |message: &Message| !matches!(message, Message::System(_)) || !has_system(&message.joined_text());
    let mut prompt: Vec<Message> =
        messages.split_off(start).into_iter().map(|(_, message)| message).filter(is_new).collect();
    let is_said = |message: &Message| matches!(message, Message::User(user) if !user.is_blank());
    if prompt.iter().any(is_said) {
        let texts = known.iter().filter(|message| matches!(&***message, Message::System(_)));
        let last = texts.map(|message| message.joined_text()).rfind(|text| text.starts_with(CONTEXT));
        let changed = context.filter(|text| last.as_ref() != Some(text));
        prompt.splice(0..0, changed.map(context_message));
        return Ok(prompt);
    }
    if has_decisions {
        return Ok(Vec::new());
    }
    Err(Fault::unreadable("`messages` has no new message of the user")
        .at("messages")
        .hint("add one with an `id` that the thread does not have"))
}

fn user_id(message: &Message) -> Option<&str> {
    if let Message::User(user) = message { user.id.as_deref() } else { None }
}

fn context_message(text: String) -> Message {
    content::system(vec![Block::text(text)])
}

/// Blocks of a content: a text, or a list of parts.
fn blocks(content: &Value, at: &str) -> Result<Vec<Block>, Fault> {
    let Value::Array(parts) = content else { return content::blocks(content, at) };
    parts.iter().enumerate().map(|(index, part)| block(part, &format!("{at}[{index}]"))).collect()
}

fn block(part: &Value, at: &str) -> Result<Block, Fault> {
    let kind = content::text_of(part, "type", at)?;
    match kind {
        "text" => Ok(Block::text(content::text_of(part, "text", at)?)),
        "image" | "audio" | "document" => source_of(part, at)?.block(kind, None, at),
        // The parts of earlier versions of the protocol.
        "binary" => {
            let text = |name: &str| content::optional(part, name).map(str::to_owned);
            let mime_type = content::text_of(part, "mimeType", at)?;
            let kind = match mime_type.split_once('/') {
                Some((kind @ ("image" | "audio"), _)) => kind,
                _ => "document",
            };
            let source = Source {
                data: text("data"),
                url: text("url"),
                file_id: text("id"),
                mime_type: Some(mime_type.to_owned()),
            };
            source.block(kind, text("filename"), at)
        }
        other => Err(Fault::unreadable(format!("unknown part `{other}`"))
            .at(format!("{at}.type"))
            .hint("use parts of text, images, audio and documents")),
    }
}

/// Place of the bytes of a part.
#[derive(Debug, Default)]
struct Source {
    data: Option<String>,
    url: Option<String>,
    file_id: Option<String>,
    mime_type: Option<String>,
}

fn source_of(part: &Value, at: &str) -> Result<Source, Fault> {
    let source = part.get("source").unwrap_or(&Value::Null);
    let at = format!("{at}.source");
    let value = Some(content::text_of(source, "value", &at)?.to_owned());
    let mime_type = content::optional(source, "mimeType").map(str::to_owned);
    match content::text_of(source, "type", &at)? {
        "data" => {
            let mime_type = Some(content::text_of(source, "mimeType", &at)?.to_owned());
            Ok(Source { data: value, mime_type, ..Source::default() })
        }
        "url" => Ok(Source { url: value, mime_type, ..Source::default() }),
        "file" => Ok(Source { file_id: value, mime_type, ..Source::default() }),
        other => Err(Fault::unreadable(format!("unknown source `{other}`"))
            .at(format!("{at}.type"))
            .hint("use `data`, `url` or `file`")),
    }
}

impl Source {
    fn block(self, kind: &str, name: Option<String>, at: &str) -> Result<Block, Fault> {
        let Self { data, url, file_id, mime_type } = self;
        match kind {
            "image" => {
                let mut image = ImageBlock::default();
                (image.data, image.url, image.file_id, image.mime_type) = (data, url, file_id, mime_type);
                Ok(image.into())
            }
            "audio" if data.is_some() || url.is_some() => {
                let mut audio = AudioBlock::default();
                (audio.data, audio.url, audio.mime_type) = (data, url, mime_type);
                Ok(audio.into())
            }
            "audio" => Err(Fault::unreadable("audio of a provider's file is not supported")
                .at(at)
                .hint("send its data or its URL")),
            _ => {
                let mut file = FileBlock::default();
                (file.data, file.url, file.file_id) = (data, url, file_id);
                (file.mime_type, file.name) = (mime_type, name);
                Ok(file.into())
            }
        }
    }
}
