//! Tokens of messages as plans count them: text, names and arguments of calls, results; reasoning and
//! images count nothing.

use std::fmt::Write as _;

use harness_core::message::{Block, Message};
use harness_core::port::TokenCounter;

use crate::compact::item::{Item, units};

/// What the form of a message costs.
pub const MESSAGE_OVERHEAD: u64 = 4;

/// Tokens of what a message says, without its form.
pub fn content_tokens(counter: &dyn TokenCounter, message: &Message) -> u64 {
    let block_tokens = |block: &Block| match block {
        Block::Text(text) => counter.count(&text.text),
        Block::ToolCall(call) => {
            counter.count(call.name.as_str()) + counter.count(&spaced(call.arguments.text()))
        }
        Block::Refusal(refusal) => counter.count(&refusal.text),
        Block::Error(error) => counter.count(&error.message),
        Block::Image(_)
        | Block::File(_)
        | Block::Audio(_)
        | Block::Thinking(_)
        | Block::Approval(_)
        | Block::Extension(_)
        | Block::Unknown(_)
        | _ => 0,
    };
    message.content().iter().map(block_tokens).sum()
}

/// Tokens of every message on the wire, its form included; results that share a message share its form.
///
/// ```
/// use harness_core::message::Message;
/// use harness_memory::compact::item::Item;
/// use harness_memory::compact::plan::wire_tokens;
/// use harness_memory::compact::tokens::RoundedCharacters;
///
/// let items = [Item::new("u", Message::user("hello there"))];
/// assert_eq!(wire_tokens(&RoundedCharacters, &items), [7]);
/// ```
pub fn wire_tokens(counter: &dyn TokenCounter, items: &[Item]) -> Vec<u64> {
    let tokens = |unit: std::ops::Range<usize>| {
        let parts = items.get(unit).unwrap_or_default();
        parts.iter().map(|item| content_tokens(counter, &item.message)).sum::<u64>() + MESSAGE_OVERHEAD
    };
    units(items).into_iter().map(tokens).collect()
}

/// Tokens of all messages; see [`wire_tokens`].
pub fn total_tokens(counter: &dyn TokenCounter, items: &[Item]) -> u64 {
    wire_tokens(counter, items).iter().sum()
}

/// JSON as Python's `json.dumps` writes it: a blank after every comma and colon, and nothing but ASCII.
fn spaced(json: &str) -> String {
    let mut text = String::with_capacity(json.len() + json.len() / 8);
    let (mut in_string, mut escaped) = (false, false);
    for c in json.chars() {
        if c.is_ascii() {
            text.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                // Writing to a string cannot fail.
                let _ = write!(text, "\\u{unit:04x}");
            }
        }
        match c {
            _ if escaped => escaped = false,
            '\\' if in_string => escaped = true,
            '"' => in_string = !in_string,
            ',' | ':' if !in_string => text.push(' '),
            _ => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expected: &str) {
        assert_eq!(spaced(json), expected);
    }

    #[test]
    fn arguments_have_blanks_and_only_ascii() {
        check(r#"{"q":"price","n":[1,2]}"#, r#"{"q": "price", "n": [1, 2]}"#);
        check(r#"{"a:b,":"\",:"}"#, r#"{"a:b,": "\",:"}"#);
        check(r#"{"a":"ü🙂"}"#, r#"{"a": "\u00fc\ud83d\ude42"}"#);
    }
}
