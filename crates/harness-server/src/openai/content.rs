//! Content of messages.

use harness::core::Json;
use harness::core::message::{
    AudioBlock, Block, FileBlock, ImageBlock, Message, SystemMessage, ToolCall, ToolResultMessage,
    UserMessage,
};
use serde_json::Value;

use crate::fault::Fault;

/// Messages of a request: the history of the thread, and the messages that start the run.
#[derive(Debug, Default)]
pub(crate) struct Said {
    pub(crate) history: Vec<Message>,
    pub(crate) prompt: Vec<Message>,
}

impl Said {
    /// Splits the messages of a new thread: the last ones of the user start the run.
    pub(crate) fn split(mut messages: Vec<Message>, field: &str) -> Result<Self, Fault> {
        let from_user = |message: &Message| matches!(message, Message::User(_));
        let history = messages.iter().rposition(|message| !from_user(message)).map_or(0, |last| last + 1);
        let prompt = messages.split_off(history);
        let blank = |message: &Message| matches!(message, Message::User(user) if user.is_blank());
        if prompt.iter().all(blank) {
            return Err(Fault::unreadable(format!(
                "the last entry of `{field}` is not a message of the user"
            ))
            .at(field)
            .hint("end with a message of the role `user` that has content"));
        }
        Ok(Self { history: messages, prompt })
    }
}

pub(crate) fn user(content: Vec<Block>, name: Option<String>) -> Message {
    let mut message = UserMessage::default();
    (message.content, message.name) = (content, name);
    message.from_origin("prompt").into()
}

pub(crate) fn system(content: Vec<Block>) -> Message {
    let mut message = SystemMessage::default();
    message.content = content;
    message.into()
}

pub(crate) fn call(id: &str, name: &str, arguments: &str, at: &str) -> Result<ToolCall, Fault> {
    let arguments = Json::parse(if arguments.trim().is_empty() { "{}" } else { arguments });
    let arguments = arguments.ok().filter(Json::is_object);
    let arguments =
        arguments.ok_or_else(|| Fault::unreadable("the arguments are not a JSON object").at(at))?;
    Ok(ToolCall::new(id, name, arguments))
}

pub(crate) fn result(call: &ToolCall, content: Vec<Block>, is_error: bool) -> Message {
    ToolResultMessage::new(call, content, is_error).into()
}

/// Blocks of a content: a text, or a list of parts.
pub(crate) fn blocks(content: &Value, at: &str) -> Result<Vec<Block>, Fault> {
    match content {
        Value::Null => Ok(Vec::new()),
        Value::String(text) => Ok(vec![Block::text(text.as_str())]),
        Value::Array(parts) => {
            parts.iter().enumerate().map(|(index, part)| block(part, &format!("{at}[{index}]"))).collect()
        }
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            Err(Fault::unreadable("expected a text or a list of parts").at(at))
        }
    }
}

fn block(part: &Value, at: &str) -> Result<Block, Fault> {
    let kind = text_of(part, "type", at)?;
    match kind {
        "text" | "input_text" | "output_text" => Ok(Block::text(text_of(part, "text", at)?)),
        "refusal" => Ok(Block::refusal(text_of(part, "refusal", at)?)),
        "image_url" => {
            let image = part.get("image_url").unwrap_or(&Value::Null);
            let at = format!("{at}.image_url");
            image_of(Some(text_of(image, "url", &at)?), image, &at)
        }
        "input_image" => image_of(optional(part, "image_url"), part, at),
        "input_audio" => {
            audio_of(part.get("input_audio").unwrap_or(&Value::Null), &format!("{at}.input_audio"))
        }
        "file" => file_of(part.get("file").unwrap_or(&Value::Null), &format!("{at}.file")),
        "input_file" => file_of(part, at),
        other => Err(Fault::unreadable(format!("unknown part `{other}`"))
            .at(format!("{at}.type"))
            .hint("use parts of text, images, files and audio")),
    }
}

fn image_of(url: Option<&str>, part: &Value, at: &str) -> Result<Block, Fault> {
    let mut image = ImageBlock::default();
    match url.map(data_of) {
        Some(Some((mime_type, data))) => {
            (image.mime_type, image.data) = (Some(mime_type.to_owned()), Some(data.to_owned()));
        }
        Some(None) => image.url = url.map(str::to_owned),
        None => image.file_id = Some(text_of(part, "file_id", at)?.to_owned()),
    }
    image.detail = optional(part, "detail").map(str::to_owned);
    Ok(Block::from(image))
}

fn audio_of(part: &Value, at: &str) -> Result<Block, Fault> {
    let mut audio = AudioBlock::default();
    let mime_type = match text_of(part, "format", at)? {
        "wav" => "audio/wav",
        "mp3" => "audio/mpeg",
        other => {
            let message = format!("unknown audio format `{other}`");
            return Err(Fault::unreadable(message).at(format!("{at}.format")).hint("use `wav` or `mp3`"));
        }
    };
    (audio.data, audio.mime_type) = (Some(text_of(part, "data", at)?.to_owned()), Some(mime_type.to_owned()));
    Ok(Block::from(audio))
}

fn file_of(part: &Value, at: &str) -> Result<Block, Fault> {
    let mut file = FileBlock::default();
    file.name = optional(part, "filename").map(str::to_owned);
    if let Some(data) = optional(part, "file_data") {
        let invalid = || Fault::unreadable("expected a data URL in base64").at(format!("{at}.file_data"));
        let (mime_type, data) = data_of(data).ok_or_else(invalid)?;
        (file.mime_type, file.data) = (Some(mime_type.to_owned()), Some(data.to_owned()));
    } else if let Some(url) = optional(part, "file_url") {
        file.url = Some(url.to_owned());
    } else {
        file.file_id = Some(text_of(part, "file_id", at)?.to_owned());
    }
    Ok(Block::from(file))
}

/// Media type and base64 data of a data URL; `None` for other URLs.
fn data_of(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,").filter(|(mime_type, _)| !mime_type.is_empty())
}

pub(crate) fn optional<'a>(part: &'a Value, name: &str) -> Option<&'a str> {
    part.get(name).and_then(Value::as_str)
}

pub(crate) fn text_of<'a>(part: &'a Value, name: &str, at: &str) -> Result<&'a str, Fault> {
    let missing = || Fault::unreadable(format!("missing field `{name}`, a text")).at(format!("{at}.{name}"));
    optional(part, name).ok_or_else(missing)
}
