//! From a prepared conversation to the `input` of a request.

use std::borrow::Cow;

use harness_core::Json;
use harness_core::message::{AudioBlock, FileBlock, ImageBlock, TextBlock, ThinkingBlock};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::history::{CallResult, Part, Said, SaidPart, Turn};
use crate::http::names::ToolNames;

/// One item as it is sent.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum SentItem<'a> {
    Message {
        role: &'static str,
        content: Vec<SentPart<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'a str>,
    },
    FunctionCall {
        call_id: &'a str,
        name: Cow<'a, str>,
        arguments: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<&'a str>,
    },
    FunctionCallOutput {
        call_id: &'a str,
        output: Output<'a>,
    },
    /// An item that goes back as it came.
    #[serde(untagged)]
    Native(&'a RawValue),
    /// Result of a provider's tool.
    #[serde(untagged)]
    Hosted(&'a Json),
}

impl SentItem<'_> {
    pub(super) fn is_call(&self) -> bool {
        matches!(self, Self::FunctionCall { .. })
    }
}

/// Output of a call: text, or parts.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Output<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<SentPart<'a>>),
}

/// One part as it is sent.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum SentPart<'a> {
    InputText {
        text: Cow<'a, str>,
    },
    InputImage {
        #[serde(skip_serializing_if = "Option::is_none")]
        image_url: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        file_id: Option<&'a str>,
        detail: &'a str,
    },
    InputFile {
        #[serde(skip_serializing_if = "Option::is_none")]
        filename: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        file_data: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        file_url: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        file_id: Option<&'a str>,
    },
    InputAudio {
        input_audio: SentAudio<'a>,
    },
    OutputText {
        text: Cow<'a, str>,
        annotations: &'a [Json],
    },
    Refusal {
        refusal: &'a str,
    },
}

#[derive(Debug, Serialize)]
pub(super) struct SentAudio<'a> {
    data: &'a str,
    format: &'a str,
}

/// Writes a conversation.
pub(super) fn write<'a>(turns: &'a [Turn<'a>], names: &'a ToolNames) -> Vec<SentItem<'a>> {
    let mut out = Vec::with_capacity(turns.len());
    for turn in turns {
        match turn {
            Turn::System(parts) => out.extend(message("developer", parts)),
            Turn::User { parts, .. } => out.extend(message("user", parts)),
            Turn::Assistant(said) => assistant(said, names, &mut out),
            Turn::Results(results) => out.extend(results.iter().map(result)),
        }
    }
    out
}

fn message<'a>(role: &'static str, parts: &'a [Part<'a>]) -> Option<SentItem<'a>> {
    let content: Vec<SentPart<'a>> = parts.iter().filter_map(part).collect();
    let has_content = !content.is_empty();
    has_content.then_some(SentItem::Message { role, content, id: None, status: None, phase: None })
}

/// The items of an answer in their order. Texts of one item become one message again; an id is made up
/// where there is none, because some endpoints demand it of an answer.
fn assistant<'a>(said: &'a Said<'a>, names: &'a ToolNames, out: &mut Vec<SentItem<'a>>) {
    let first = out.len();
    let mut last_item: Option<&str> = None;
    for part in &said.parts {
        let (content, item) = match part {
            SaidPart::Text(text) => (answer_text(text, said.own), Some(text)),
            SaidPart::Refusal(refusal) => (SentPart::Refusal { refusal }, None),
            SaidPart::ForeignThought(thought) => (plain_text(thought), None),
            SaidPart::Thought(thinking) => {
                out.extend(sent_thinking(thinking));
                continue;
            }
            SaidPart::Call(sent) => {
                let call = &sent.call;
                out.push(SentItem::FunctionCall {
                    call_id: &sent.id,
                    name: names.to_wire(sent.call.name.as_str()),
                    arguments: sent.argument_text(),
                    id: call.item_id.as_deref().filter(|_| said.own),
                    status: call.status.as_deref().filter(|_| said.own),
                });
                continue;
            }
            SaidPart::Native(raw) => {
                out.push(SentItem::Hosted(raw));
                continue;
            }
        };
        let item = item.filter(|_| said.own);
        let id = item.and_then(|text| text.item_id.as_deref());
        let continues = out.len() > first && id == last_item;
        last_item = id;
        let position = out.len();
        match out.last_mut() {
            Some(SentItem::Message { content: known, .. }) if continues => known.push(content),
            _ => out.push(SentItem::Message {
                role: "assistant",
                content: vec![content],
                id: Some(id.map_or_else(|| Cow::Owned(format!("msg_{position}")), Cow::Borrowed)),
                status: Some("completed"),
                phase: item.and_then(|text| text.phase.as_deref()),
            }),
        }
    }
}

fn answer_text(text: &TextBlock, own: bool) -> SentPart<'_> {
    let annotations = text.annotations.as_deref().filter(|_| own).unwrap_or_default();
    SentPart::OutputText { text: Cow::Borrowed(&text.text), annotations }
}

fn plain_text(text: &str) -> SentPart<'_> {
    SentPart::OutputText { text: Cow::Borrowed(text), annotations: &[] }
}

/// The whole item that reasoning was kept with. Reasoning that came without one cannot go back.
fn sent_thinking(thinking: &ThinkingBlock) -> Option<SentItem<'_>> {
    let item = thinking.thinking_signature.as_deref().filter(|item| item.starts_with('{'))?;
    serde_json::from_str(item).ok().map(SentItem::Native)
}

/// The output of a call, which may be empty.
fn result<'a>(result: &'a CallResult<'a>) -> SentItem<'a> {
    let texts: Option<Vec<&str>> = result
        .parts
        .iter()
        .map(|part| if let Part::Text(text) = part { Some(&**text) } else { None })
        .collect();
    let output = match texts.as_deref() {
        Some([only]) => Output::Text(Cow::Borrowed(*only)),
        Some(texts) => Output::Text(Cow::Owned(texts.join("\n"))),
        None => Output::Parts(result.parts.iter().filter_map(part).collect()),
    };
    SentItem::FunctionCallOutput { call_id: &result.call.id, output }
}

fn part<'a>(part: &'a Part<'a>) -> Option<SentPart<'a>> {
    match part {
        Part::Text(text) => (!text.is_empty()).then(|| SentPart::InputText { text: Cow::Borrowed(text) }),
        Part::Image(image) => Some(sent_image(image)),
        Part::File(file) => Some(sent_file(file)),
        Part::Audio(audio) => Some(sent_audio(audio)),
    }
}

fn sent_image(image: &ImageBlock) -> SentPart<'_> {
    let inline = image.data.as_ref().map(|data| {
        let mime = image.mime_type.as_deref().unwrap_or("image/png");
        Cow::Owned(format!("data:{mime};base64,{data}"))
    });
    SentPart::InputImage {
        image_url: image.url.as_deref().map(Cow::Borrowed).or(inline),
        file_id: image.file_id.as_deref(),
        detail: image.detail.as_deref().unwrap_or("auto"),
    }
}

fn sent_file(file: &FileBlock) -> SentPart<'_> {
    let mime = file.mime_type.as_deref().unwrap_or("application/octet-stream");
    SentPart::InputFile {
        filename: file.name.as_deref(),
        file_data: file.data.as_ref().map(|data| format!("data:{mime};base64,{data}")),
        file_url: file.url.as_deref(),
        file_id: file.file_id.as_deref(),
    }
}

/// Sound by value; what was said in it, or a note, where it cannot be sent.
fn sent_audio(audio: &AudioBlock) -> SentPart<'_> {
    let format = audio.mime_type.as_deref().and_then(|mime| mime.rsplit('/').next());
    if let (Some(data), Some(format)) = (audio.data.as_deref(), format) {
        return SentPart::InputAudio { input_audio: SentAudio { data, format } };
    }
    let said = audio.transcript.as_deref().unwrap_or("(audio omitted: it cannot be sent by reference)");
    SentPart::InputText { text: Cow::Borrowed(said) }
}
