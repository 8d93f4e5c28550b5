//! Transcripts as words.

use std::sync::Arc;

use harness_core::Json;
use harness_core::message::{
    AssistantMessage, Block, CustomMessage, Message, SystemMessage, ToolCall, ToolResultMessage, UserMessage,
};
use harness_memory::compact::group::pin;
use harness_memory::compact::item::Item;

/// One message a word: `s` system, `b` text of the assistant, `r` reasoning, `a:1,2` calls, `t:1` a result,
/// `x` the application's own, `p` a pinned user message, `c` a cleared text, anything else what a user says.
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
        "c" => AssistantMessage::text("[Cleared: assistant message]").into(),
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

/// The messages, each named by its word.
pub(super) fn items(words: &str) -> Vec<Item> {
    words.split_whitespace().map(|word| Item::new(word, message(word))).collect()
}

/// A view, one line a message: its name, and its text.
pub(super) fn shown(view: &[Item]) -> String {
    let line = |item: &Item| {
        let text = item.message.joined_text();
        let length = text.chars().count();
        let text = if length > 60 { format!("({length} characters)") } else { text };
        format!("{} | {}", item.id, text.replace('\n', " / ")).trim_end().to_owned()
    };
    view.iter().map(line).collect::<Vec<_>>().join("\n")
}
