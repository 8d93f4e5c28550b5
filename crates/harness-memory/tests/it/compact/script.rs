//! Transcripts as words.

use std::sync::Arc;

use harness_core::Json;
use harness_core::message::{
    AssistantMessage, Block, CustomMessage, Message, SystemMessage, ToolCall, ToolResultMessage, UserMessage,
};
use harness_memory::compact::group::pin;

/// One message a word: `s` system, `b` text of the assistant, `r` reasoning, `a:1,2` calls, `t:1` a result,
/// `x` the application's own, `p` a pinned user message, anything else what a user says.
/// `=name` names the tool of a call, `*n` makes a text `n` characters long.
pub(super) fn message(word: &str) -> Message {
    let (word, length) = word.split_once('*').unwrap_or((word, ""));
    let (kind, ids) = word.split_once(':').unwrap_or((word, ""));
    let said = |text: &str| length.parse().map_or_else(|_| text.to_owned(), |n| "a".repeat(n));
    let call = |id: &str| {
        let (id, name) = id.split_once('=').unwrap_or((id, "tool"));
        ToolCall::new(id, name, Json::empty_object())
    };
    match kind {
        "s" => SystemMessage::text(said("rules")).into(),
        "b" => AssistantMessage::text(said("text")).into(),
        "r" => answer(vec![Block::thinking("hm")]),
        "a" => AssistantMessage::calls(ids.split(',').map(call)).into(),
        "t" => {
            let unnamed = ToolCall::new(ids, "", Json::empty_object());
            ToolResultMessage::new(&unnamed, vec![Block::text(said("data"))], false).into()
        }
        "x" => CustomMessage::new("note", None).into(),
        "p" => {
            let mut rule = UserMessage::text(said("rule"));
            rule.content.push(pin());
            rule.into()
        }
        _ => Message::user(said(word)),
    }
}

pub(super) fn answer(content: Vec<Block>) -> Message {
    let mut answer = AssistantMessage::default();
    answer.content = content;
    answer.into()
}

pub(super) fn messages(words: &str) -> Vec<Arc<Message>> {
    words.split_whitespace().map(|word| Arc::new(message(word))).collect()
}
