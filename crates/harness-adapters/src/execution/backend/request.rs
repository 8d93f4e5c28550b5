//! From a model request to an execution request.

use std::fmt::Write as _;

use harness_core::message::{Block, CustomMessage, Message};
use harness_core::port::ModelRequest;

use super::note::BackendNote;
use crate::execution::{
    ExecutionAttachment, ExecutionBlock, ExecutionContext, ExecutionContinuation, ExecutionMessage,
    ExecutionRequest,
};

/// Message for a backend that continues without a new message.
const CONTINUE: &str = "Continue.";

/// Maximum bytes of the earlier conversation for a backend; older messages are dropped.
const HISTORY: usize = 256 << 10;

/// Request to a backend, made from a step.
pub(super) struct Asked {
    pub(super) request: ExecutionRequest,
    /// Number of dropped earlier messages.
    pub(super) left_out: usize,
}

/// Makes the request of a turn.
///
/// Where the backend left a continuation in the conversation, it is given back, with what was said since:
/// the backend knows the rest. Otherwise what was said before the last words of the user comes as blocks of
/// the context, each labelled with who said it.
pub(super) fn execution_request(
    asked: &ModelRequest,
    backend: &str,
    turn_id: &str,
    thread_id: Option<&str>,
) -> Asked {
    let mut messages = Vec::with_capacity(asked.view.len());
    asked.view.for_each(|message| messages.push(message));
    let agent = asked.prepared.agent.as_str();
    let mut continuation: Option<ExecutionContinuation> = None;
    let mut known = 0;
    for (at, message) in messages.iter().enumerate().rev() {
        if let Message::Assistant(answer) = &***message {
            let note = BackendNote::read(answer);
            let same_agent = answer.agent.as_ref().is_none_or(|spoke| spoke.as_str() == agent);
            continuation = note
                .filter(|note| same_agent && note.backend_id == backend)
                .and_then(|note| note.continuation);
            known = at.saturating_add(1);
            break;
        }
    }
    let (before, since) = messages.split_at(known.min(messages.len()));
    let mut message = ExecutionMessage::new(format!("{turn_id}.message"), "");
    let mut attachments = Vec::new();
    for said in since {
        say(&mut message.text, &mut attachments, said);
    }
    if message.text.is_empty() && attachments.is_empty() {
        CONTINUE.clone_into(&mut message.text);
    }
    message.attachments = (!attachments.is_empty()).then_some(attachments);
    let mut request = ExecutionRequest::new(agent, turn_id, &*asked.prepared.instructions, message);
    request.thread_id = thread_id.map(str::to_owned);
    let mut left_out = 0;
    if continuation.is_none() {
        let (blocks, unsaid) = history(before.iter().map(|message| &***message));
        left_out = unsaid;
        if !blocks.is_empty() {
            request.context = Some(ExecutionContext { blocks, ..ExecutionContext::default() });
        }
    }
    request.continuation = continuation;
    Asked { request, left_out }
}

/// Adds what a message of the user's side says.
fn say(text: &mut String, attachments: &mut Vec<ExecutionAttachment>, message: &Message) {
    let blocks: &[Block] = match message {
        Message::User(_) | Message::ToolResult(_) => message.content(),
        Message::Custom(CustomMessage { to_model: true, content: Some(content), .. }) => content,
        Message::System(_) | Message::Assistant(_) | Message::Custom(_) | _ => return,
    };
    for block in blocks {
        if let Block::Text(said) = block {
            if !text.is_empty() {
                text.push_str("\n\n");
            }
            text.push_str(&said.text);
        } else {
            attachments.extend(attachment(block, attachments.len()));
        }
    }
}

fn attachment(block: &Block, number: usize) -> Option<ExecutionAttachment> {
    let (kind, name, mime, data, url) = if let Block::Image(image) = block {
        ("image", None, &image.mime_type, &image.data, &image.url)
    } else if let Block::File(file) = block {
        ("file", file.name.clone(), &file.mime_type, &file.data, &file.url)
    } else if let Block::Audio(audio) = block {
        ("audio", None, &audio.mime_type, &audio.data, &audio.url)
    } else {
        return None;
    };
    let id = format!("attachment-{}", number.saturating_add(1));
    let mut attachment = ExecutionAttachment::new(id, mime.as_deref().unwrap_or(kind));
    attachment.name = name;
    attachment.url = match data {
        Some(data) => {
            let mime = mime.as_deref().unwrap_or("application/octet-stream");
            Some(format!("data:{mime};base64,{data}"))
        }
        None => url.clone(),
    };
    Some(attachment)
}

/// The newest messages that fit the bound, oldest first, and how many were left out.
fn history<'m>(messages: impl DoubleEndedIterator<Item = &'m Message>) -> (Vec<ExecutionBlock>, usize) {
    let said: Vec<(&str, String)> = messages.filter_map(spoken).collect();
    let mut room = HISTORY;
    let fits = said.iter().rev().take_while(|(_, text)| {
        let left = room.checked_sub(text.len());
        room = left.unwrap_or(0);
        left.is_some()
    });
    let left_out = said.len().saturating_sub(fits.count());
    let blocks = said.into_iter().skip(left_out).enumerate().map(|(at, (label, text))| {
        let mut block = ExecutionBlock::new(format!("history-{}", at.saturating_add(1)), label, text);
        block.category = Some("other".to_owned());
        block
    });
    (blocks.collect(), left_out)
}

/// Speaker and text of a message; `None` if it has no text.
fn spoken(message: &Message) -> Option<(&'static str, String)> {
    let label = match message {
        Message::User(_) => "user",
        Message::Assistant(_) => "assistant",
        Message::System(_) => "system",
        Message::ToolResult(_) => "tool",
        Message::Custom(CustomMessage { to_model: true, .. }) => "note",
        Message::Custom(_) | _ => return None,
    };
    let mut text = message.joined_text();
    if let Message::Assistant(answer) = message {
        for call in answer.tool_calls() {
            let _ = write!(text, "\n[called {} with {}]", call.name, call.arguments);
        }
    }
    (!text.is_empty()).then(|| (label, text.trim_start().to_owned()))
}
