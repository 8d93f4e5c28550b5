//! From a prepared conversation to the messages of a chat-completions request.

use std::borrow::Cow;

use harness_core::Json;
use harness_core::message::{AudioBlock, FileBlock, ImageBlock};
use serde::{Deserialize, Serialize};

use crate::history::{CallResult, Part, Said, SaidPart, Turn};
use crate::http::CacheControl;
use crate::http::names::{ToolNames, is_legal};

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

impl Content<'_> {
    /// Marks the last text, which must hold something.
    fn mark(&mut self, mark: CacheControl) {
        if let Self::Text(text) = self {
            *self = Self::Parts(vec![text_part(std::mem::take(text))]);
        }
        let Self::Parts(parts) = self else { return };
        let texts = parts.iter_mut().rev().filter_map(|part| match part {
            SentPart::Text { text, cache_control } if !text.is_empty() => Some(cache_control),
            SentPart::Text { .. }
            | SentPart::ImageUrl { .. }
            | SentPart::File { .. }
            | SentPart::InputAudio { .. } => None,
        });
        if let Some(slot) = texts.into_iter().next() {
            *slot = Some(mark);
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum SentPart<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    ImageUrl {
        image_url: ImageUrl<'a>,
    },
    File {
        file: SentFile<'a>,
    },
    InputAudio {
        input_audio: SentAudio<'a>,
    },
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

/// In place of an image that only names an uploaded file.
const UPLOADED_IMAGE: &str = "(image omitted: the endpoint takes no uploaded images)";

/// Writes a request's instructions and conversation.
pub(crate) fn convert<'a>(
    instructions: &'a str,
    turns: &'a [Turn<'a>],
    names: &'a ToolNames,
    mark: Option<CacheControl>,
) -> Vec<Sent<'a>> {
    let mut out = Vec::with_capacity(turns.len().saturating_add(1));
    if !instructions.is_empty() {
        out.push(Sent::new("system", Some(Content::Text(Cow::Borrowed(instructions)))));
    }
    for turn in turns {
        match turn {
            Turn::System(parts) => out.extend(plain("system", parts, None)),
            Turn::User { name, parts } => {
                out.extend(plain("user", parts, name.filter(|name| is_legal(name))));
            }
            Turn::Assistant(said) => out.extend(assistant(said, names)),
            Turn::Results(all) => results(all, &mut out),
        }
    }
    if let Some(mark) = mark {
        mark_stable(&mut out, mark);
    }
    out
}

/// Marks what the next request begins with, too: the first instructions, the end of the conversation, and
/// its end as the request before had it, where the provider finds what it kept then.
fn mark_stable(messages: &mut [Sent<'_>], mark: CacheControl) {
    let answer = messages.iter().rposition(|message| message.role == "assistant");
    let ends = [Some(messages.len()), answer].map(|end| end.and_then(|end| end.checked_sub(1)));
    let first = messages.first().and_then(|first| (first.role == "system").then_some(0));
    let mut places: Vec<usize> = [first].into_iter().chain(ends).flatten().collect();
    places.sort_unstable();
    places.dedup();
    for place in places {
        if let Some(content) = messages.get_mut(place).and_then(|message| message.content.as_mut()) {
            content.mark(mark);
        }
    }
}

fn plain<'a>(role: &'static str, parts: &'a [Part<'a>], name: Option<&'a str>) -> Option<Sent<'a>> {
    let content = if let [Part::Text(only)] = parts {
        Content::Text(Cow::Borrowed(only))
    } else {
        Content::Parts(parts.iter().filter_map(sent_part).collect())
    };
    let is_empty = matches!(&content, Content::Parts(parts) if parts.is_empty());
    (!is_empty).then(|| Sent { name, ..Sent::new(role, Some(content)) })
}

fn assistant<'a>(said: &'a Said<'a>, names: &'a ToolNames) -> Option<Sent<'a>> {
    let mut sent = Sent::new("assistant", assistant_text(said).map(Content::Text));
    for part in &said.parts {
        let SaidPart::Call(sent_call) = part else { continue };
        let function = SentFunction {
            name: names.to_wire(sent_call.call.name.as_str()),
            arguments: sent_call.argument_text(),
        };
        sent.tool_calls.push(SentCall { id: &sent_call.id, kind: "function", function });
    }
    if said.own {
        add_reasoning(&mut sent, said);
    }
    (sent.content.is_some() || sent.has_calls()).then_some(sent)
}

/// Appends the results, each with its texts. Other content follows in a separate message, because a
/// tool message carries only text.
fn results<'a>(all: &'a [CallResult<'a>], out: &mut Vec<Sent<'a>>) {
    let mut attached: Vec<SentPart<'a>> = Vec::new();
    for result in all {
        let texts: Vec<&str> = result.parts.iter().filter_map(text_of).collect();
        let others = result.parts.iter().filter(|part| text_of(part).is_none()).filter_map(sent_part);
        let known = attached.len();
        attached.extend(others);
        let text = match texts.as_slice() {
            [] if attached.len() > known => Cow::Borrowed("(see the attached content below)"),
            [only] => Cow::Borrowed(*only),
            several => Cow::Owned(several.join("\n")),
        };
        out.push(Sent {
            tool_call_id: Some(&result.call.id),
            ..Sent::new("tool", Some(Content::Text(text)))
        });
    }
    if !attached.is_empty() {
        let notice = "Attached content of the tool results above:";
        attached.insert(0, text_part(Cow::Borrowed(notice)));
        out.push(Sent::new("user", Some(Content::Parts(attached))));
    }
}

fn text_part(text: Cow<'_, str>) -> SentPart<'_> {
    SentPart::Text { text, cache_control: None }
}

fn text_of<'a>(part: &'a Part<'_>) -> Option<&'a str> {
    if let Part::Text(text) = part { Some(text) } else { None }
}

fn sent_part<'a>(part: &'a Part<'a>) -> Option<SentPart<'a>> {
    match part {
        Part::Text(text) => Some(text_part(Cow::Borrowed(text))),
        Part::Image(image) => Some(sent_image(image)),
        Part::File(file) => Some(SentPart::File { file: sent_file(file) }),
        Part::Audio(audio) => sent_audio(audio),
    }
}

fn sent_image(image: &ImageBlock) -> SentPart<'_> {
    let url = match (&image.url, &image.data) {
        (Some(url), _) => Cow::Borrowed(url.as_str()),
        (None, Some(data)) => {
            let mime = image.mime_type.as_deref().unwrap_or("image/png");
            Cow::Owned(format!("data:{mime};base64,{data}"))
        }
        (None, None) => return text_part(Cow::Borrowed(UPLOADED_IMAGE)),
    };
    SentPart::ImageUrl { image_url: ImageUrl { url, detail: image.detail.as_deref() } }
}

fn sent_audio(audio: &AudioBlock) -> Option<SentPart<'_>> {
    let format = audio.mime_type.as_deref().and_then(|mime| mime.rsplit('/').next())?;
    Some(SentPart::InputAudio { input_audio: SentAudio { data: audio.data.as_deref()?, format } })
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

/// Text and refusals of an answer. Reasoning of another model goes along as text, since it cannot be
/// sent back in the form in which it came.
fn assistant_text<'a>(said: &'a Said<'a>) -> Option<Cow<'a, str>> {
    let mut pieces = said.parts.iter().filter_map(|part| match part {
        SaidPart::Text(text) => Some(Cow::Borrowed(text.text.as_str())),
        SaidPart::Refusal(text) => Some(Cow::Borrowed(*text)),
        SaidPart::ForeignThought(text) => Some(Cow::Owned(format!("{text}\n\n"))),
        SaidPart::Thought(_) | SaidPart::Call(_) | SaidPart::Native(_) => None,
    });
    let first = pieces.next()?;
    Some(pieces.fold(first, |joined, piece| joined + piece))
}

fn add_reasoning(sent: &mut Sent<'_>, said: &Said<'_>) {
    let metadata = said.message.provider_metadata.as_ref();
    let returned = metadata.and_then(|metadata| metadata.to::<Returned>().ok());
    sent.reasoning_details = returned.and_then(|returned| returned.reasoning_details);
    if sent.reasoning_details.is_some() {
        return;
    }
    for part in &said.parts {
        let SaidPart::Thought(thinking) = part else { continue };
        let slot = match thinking.field.as_deref() {
            Some("reasoning") => &mut sent.reasoning,
            Some("reasoning_content") => &mut sent.reasoning_content,
            _ => continue,
        };
        slot.get_or_insert_default().push_str(&thinking.thinking);
    }
}
