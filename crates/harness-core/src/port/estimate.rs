//! Estimated tokens, for calls whose provider reports none.

use super::PreparedAgent;
use crate::message::{AssistantMessage, Block, Message};
use crate::transcript::View;

/// Bytes of text per token: what most encodings need for English prose.
const BYTES: u64 = 4;
/// Tokens that the form of a message takes beside its text.
const FORM: u64 = 4;
/// Tokens of an image, whatever its size.
const IMAGE: u64 = 1_000;

/// Tokens of a request.
pub(crate) fn request_tokens(view: &View, prepared: &PreparedAgent, with_tools: bool) -> u64 {
    let mut tokens = prepared_tokens(prepared, with_tools);
    view.for_each(|message| tokens = tokens.saturating_add(message_tokens(message)));
    tokens
}

/// Tokens of a request beside its messages.
pub(crate) fn prepared_tokens(prepared: &PreparedAgent, with_tools: bool) -> u64 {
    let tools = if with_tools { &*prepared.tools } else { &[] };
    let tools = tools.iter().map(|def| {
        let schema = def.input_schema.as_ref().map_or(0, |schema| schema.text().len());
        FORM.saturating_add(text(def.name.as_str().len() + def.description.len() + schema))
    });
    tools.fold(text(prepared.instructions.len()), u64::saturating_add)
}

/// Tokens of an answer.
pub(crate) fn answer_tokens(answer: &AssistantMessage) -> u64 {
    answer.content.iter().map(block_tokens).fold(0, u64::saturating_add)
}

/// Tokens of a message.
pub(crate) fn message_tokens(message: &Message) -> u64 {
    message.content().iter().map(block_tokens).fold(FORM, u64::saturating_add)
}

fn block_tokens(block: &Block) -> u64 {
    let data = |data: &Option<String>| text(data.as_ref().map_or(0, String::len));
    match block {
        Block::Text(body) => text(body.text.len()),
        Block::Thinking(body) => text(body.thinking.len()),
        Block::Refusal(body) => text(body.text.len()),
        Block::Error(body) => text(body.message.len()),
        Block::ToolCall(call) => text(call.name.as_str().len() + call.arguments.text().len()),
        Block::Image(_) => IMAGE,
        Block::File(body) => data(&body.data),
        Block::Audio(body) => data(&body.data),
        Block::Approval(_) | Block::Extension(_) => FORM,
        Block::Unknown(raw) => text(raw.text().len()),
    }
}

fn text(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(BYTES)
}
