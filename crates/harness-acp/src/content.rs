//! Blocks of a prompt and of a transcript, from one vocabulary into the other.

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    ContentBlock, EmbeddedResource, EmbeddedResourceResource, ImageContent, ResourceLink, TextContent,
    ToolCallContent,
};
use harness::core::Json;
use harness::core::message::{Block, ImageBlock, UserMessage};
use harness::runtime::ThreadConfig;
use harness::runtime::template::expand_command;
use serde_json::json;

/// Converts a prompt to one message.
///
/// Text and images become blocks. A resource becomes a text with its URI, and a link a Markdown
/// link, so that every model can read them. A prompt whose only text is `/name …` or `/skill:name
/// …` is expanded.
pub(crate) fn prompt_message(prompt: Vec<ContentBlock>, config: &ThreadConfig) -> Result<UserMessage, Error> {
    let mut content = Vec::with_capacity(prompt.len());
    let mut origin = "prompt";
    for (at, block) in prompt.into_iter().enumerate() {
        let block = match block {
            ContentBlock::Text(TextContent { text, .. }) if at == 0 => {
                let expanded = expand_command(&text, &config.templates, &config.skills);
                if expanded.is_some() {
                    origin = if text.starts_with("/skill:") { "skill" } else { "template" };
                }
                Block::text(expanded.unwrap_or(text))
            }
            ContentBlock::Text(TextContent { text, .. }) => Block::text(text),
            ContentBlock::Image(ImageContent { data, mime_type, uri, .. }) => image(data, mime_type, uri),
            ContentBlock::ResourceLink(link) => Block::text(link_text(&link)),
            ContentBlock::Resource(resource) => resource_block(resource)?,
            ContentBlock::Audio(_) | _ => return Err(cannot_be_read(at)),
        };
        content.push(block);
    }
    if content.is_empty() {
        return Err(Error::invalid_params().data("a prompt needs at least one block"));
    }
    let mut message = UserMessage::text("").from_origin(origin);
    message.content = content;
    Ok(message)
}

fn cannot_be_read(at: usize) -> Error {
    Error::invalid_params().data(json!({
        "message": format!("block {at} of the prompt is of a kind that is not read here"),
        "hint": "send text, images, resources and links to resources",
    }))
}

/// An image by value; by its address when the client sends no data.
fn image(data: String, mime_type: String, uri: Option<String>) -> Block {
    if uri.is_none() || !data.is_empty() {
        return Block::image(data, mime_type);
    }
    let mut image = ImageBlock::default();
    (image.url, image.mime_type) = (uri, Some(mime_type));
    image.into()
}

fn link_text(link: &ResourceLink) -> String {
    let name = link.title.as_deref().unwrap_or(&link.name);
    match &link.description {
        Some(description) => format!("[{name}]({}): {description}", link.uri),
        None => format!("[{name}]({})", link.uri),
    }
}

fn resource_block(resource: EmbeddedResource) -> Result<Block, Error> {
    match resource.resource {
        EmbeddedResourceResource::TextResourceContents(text) => {
            Ok(Block::text(format!("<resource uri=\"{}\">\n{}\n</resource>", text.uri, text.text)))
        }
        EmbeddedResourceResource::BlobResourceContents(blob) => {
            match blob.mime_type.filter(|kind| kind.starts_with("image/")) {
                Some(kind) => Ok(Block::image(blob.blob, kind)),
                None => Err(Error::invalid_params().data(json!({
                    "message": format!("the resource `{}` is neither text nor an image", blob.uri),
                    "hint": "link to it instead of embedding it",
                }))),
            }
        }
        _ => Err(Error::invalid_params().data("a resource is of an unknown kind")),
    }
}

/// A block of a transcript, for the person in front of the editor. What cannot be shown is named.
pub(crate) fn shown(block: &Block) -> Option<ContentBlock> {
    match block {
        Block::Text(text) => filled(&text.text),
        Block::Refusal(refusal) => filled(&refusal.text),
        Block::Error(error) => filled(&error.message),
        Block::Image(image) => match (&image.data, &image.mime_type, &image.url) {
            (Some(data), Some(kind), _) => {
                Some(ContentBlock::Image(ImageContent::new(data.clone(), kind.clone())))
            }
            (_, _, Some(url)) => Some(ContentBlock::ResourceLink(ResourceLink::new("image", url.clone()))),
            (_, _, None) => filled("[image]"),
        },
        Block::File(file) => {
            let name = file.name.as_deref().unwrap_or("file");
            match &file.url {
                Some(url) => Some(ContentBlock::ResourceLink(ResourceLink::new(name, url.clone()))),
                None => filled(&format!("[file: {name}]")),
            }
        }
        Block::Audio(audio) => filled(audio.transcript.as_deref().unwrap_or("[sound]")),
        Block::Thinking(_)
        | Block::ToolCall(_)
        | Block::Approval(_)
        | Block::Extension(_)
        | Block::Unknown(_)
        | _ => None,
    }
}

fn filled(text: &str) -> Option<ContentBlock> {
    (!text.is_empty()).then(|| ContentBlock::from(text.to_owned()))
}

/// Result of a call for display in the editor.
pub(crate) fn shown_result(content: &[Block]) -> Vec<ToolCallContent> {
    content.iter().filter_map(shown).map(ToolCallContent::from).collect()
}

/// The value in the protocol's vocabulary. Numbers that are neither a 64-bit integer nor a 64-bit float are
/// rounded to the latter; the transcript keeps them exact.
pub(crate) fn value(json: &Json) -> Option<serde_json::Value> {
    json.to().ok()
}
