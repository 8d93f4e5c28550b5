//! Item codes: `u:` user, `a:` assistant, `s:` system, `d:` developer message and its text; `c:ID` a call,
//! `o:ID` its output, `r:` reasoning.

use std::sync::Arc;

use harness_core::Json;
use harness_core::message::{AssistantMessage, Block, Message, SystemMessage, ToolCall, ToolResultMessage};
use harness_memory::layer::{developer, is_developer};
use serde_json::json;

use super::Done;

/// The message of a code.
pub(super) fn message(code: &str) -> Done<Arc<Message>> {
    let (kind, rest) = code.split_once(':').ok_or_else(|| format!("invalid item code `{code}`"))?;
    let call = || ToolCall::new(rest, "work", Json::empty_object());
    Ok(Arc::new(match kind {
        "u" => Message::user(rest),
        "a" => AssistantMessage::text(rest).into(),
        "s" => SystemMessage::text(rest).into(),
        "d" => return Ok(developer(rest)),
        "c" => AssistantMessage::calls([call()]).into(),
        "o" => ToolResultMessage::new(&call(), vec![Block::text(format!("done {rest}"))], false).into(),
        "r" => {
            let thinking = json!({"type": "thinking", "thinking": rest});
            let thinking = serde_json::from_value(thinking).map_err(|e| e.to_string())?;
            let mut answer = AssistantMessage::default();
            answer.content = vec![thinking];
            answer.into()
        }
        _ => return Err(format!("invalid item code `{code}`")),
    }))
}

/// The code of a message.
pub(super) fn code(message: &Message) -> String {
    let text = message.joined_text();
    match message {
        Message::User(_) => format!("u:{text}"),
        Message::System(_) if is_developer(message) => format!("d:{text}"),
        Message::System(_) => format!("s:{text}"),
        Message::ToolResult(result) => format!("o:{}", result.tool_call_id),
        Message::Assistant(answer) => match (answer.tool_calls().next(), answer.content.first()) {
            (Some(call), _) => format!("c:{}", call.id),
            (None, Some(Block::Thinking(thinking))) => format!("r:{}", thinking.thinking),
            (None, _) => format!("a:{text}"),
        },
        Message::Custom(_) | _ => format!("?:{text}"),
    }
}

/// The codes of messages.
pub(super) fn codes<'a>(messages: impl IntoIterator<Item = &'a Arc<Message>>) -> Vec<String> {
    messages.into_iter().map(|message| code(message)).collect()
}

/// Replaces the text of a message; calls, outputs and reasoning stay.
pub(super) fn reworded(message: &Arc<Message>, change: impl FnOnce(&str) -> String) -> Arc<Message> {
    let code = code(message);
    match code.split_once(':') {
        Some((kind @ ("u" | "a" | "s" | "d"), text)) => {
            let changed = format!("{kind}:{}", change(text));
            self::message(&changed).unwrap_or_else(|_| Arc::clone(message))
        }
        _ => Arc::clone(message),
    }
}
