//! Content of runs, as attribute texts.

use harness_core::Json;
use harness_core::message::{Block, Message, ToolCall};

/// Maximum bytes of an error message, which is not content.
pub(crate) const PROBLEM_BYTES: usize = 1024;

/// Suffix of truncated text.
const MARK: &str = "…";

/// `text`, cut to a number of bytes at a character.
pub(crate) fn cut(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(bytes.saturating_sub(MARK.len()));
    text.get(..end).unwrap_or_default().to_owned() + MARK
}

/// The text of blocks.
pub(crate) fn blocks_text(blocks: &[Block]) -> String {
    blocks.iter().filter_map(Block::as_text).collect()
}

/// Messages in the form of the GenAI conventions: `[{"role":…,"parts":[…]}]`, with texts, calls and
/// results. Each text is truncated to half of `bytes`. If the rest does not fit, the oldest
/// messages and the last calls of a message are dropped, so that the result is always valid JSON.
pub(crate) fn messages<'m>(messages: impl DoubleEndedIterator<Item = &'m Message>, bytes: usize) -> String {
    let mut kept: Vec<String> = Vec::new();
    let mut length = 0_usize;
    for message in messages.rev() {
        let written = describe(message, bytes);
        length = length.saturating_add(written.len());
        if length > bytes && !kept.is_empty() {
            break;
        }
        kept.push(written);
    }
    kept.reverse();
    format!("[{}]", kept.join(","))
}

/// An answer that is text, in the same form.
pub(crate) fn answer(text: &str, bytes: usize) -> String {
    format!(r#"[{{"role":"assistant","parts":[{}]}}]"#, text_part(text, bytes))
}

fn text_part(text: &str, bytes: usize) -> String {
    format!(r#"{{"type":"text","content":{}}}"#, Json::string(&cut(text, bytes)))
}

fn describe(message: &Message, bytes: usize) -> String {
    let each = bytes / 2;
    let text = message.joined_text();
    if let Some(result) = message.as_tool_result() {
        let (id, text) = (Json::string(result.tool_call_id.as_str()), Json::string(&cut(&text, each)));
        let part = format!(r#"{{"type":"tool_call_response","id":{id},"response":{text}}}"#);
        return format!(r#"{{"role":"tool","parts":[{part}]}}"#);
    }
    let mut parts = Vec::new();
    if !text.is_empty() {
        parts.push(text_part(&text, each));
    }
    let mut length = 0_usize;
    for block in message.content() {
        let Block::ToolCall(call) = block else { continue };
        let part = call_part(call, each);
        length = length.saturating_add(part.len());
        if length > bytes && !parts.is_empty() {
            break;
        }
        parts.push(part);
    }
    format!(r#"{{"role":"{}","parts":[{}]}}"#, message.role(), parts.join(","))
}

fn call_part(call: &ToolCall, bytes: usize) -> String {
    let (id, name) = (Json::string(call.id.as_str()), Json::string(call.name.as_str()));
    let mut arguments = call.arguments.clone();
    if arguments.text().len() > bytes {
        arguments = Json::string(&cut(arguments.text(), bytes));
    }
    format!(r#"{{"type":"tool_call","id":{id},"name":{name},"arguments":{arguments}}}"#)
}

#[cfg(test)]
mod tests {
    use harness_core::message::AssistantMessage;

    use super::*;

    #[track_caller]
    fn check(said: &[Message], bytes: usize, expected: &str) {
        let written = messages(said.iter(), bytes);
        assert_eq!(written, expected);
        assert!(Json::parse(&written).is_ok());
    }

    #[test]
    fn messages_are_told_in_the_words_of_the_conventions() {
        let call = ToolCall::new("c1", "add", Json::parse(r#"{"a":2}"#).unwrap());
        check(
            &[Message::user("2 + 2?"), Message::Assistant(AssistantMessage::calls([call]))],
            1024,
            concat!(
                r#"[{"role":"user","parts":[{"type":"text","content":"2 + 2?"}]},"#,
                r#"{"role":"assistant","parts":[{"type":"tool_call","id":"c1","name":"add","arguments":{"a":2}}]}]"#
            ),
        );
        check(&[], 1024, "[]");
    }

    #[test]
    fn what_is_too_long_is_cut_and_stays_json() {
        let said = [Message::user("first"), Message::user("ä".repeat(40))];
        check(&said, 40, r#"[{"role":"user","parts":[{"type":"text","content":"ääääääää…"}]}]"#);
        let long = ToolCall::new("c1", "add", Json::parse(&format!("[{}1]", "1,".repeat(40))).unwrap());
        check(
            &[Message::Assistant(AssistantMessage::calls([long]))],
            20,
            r#"[{"role":"assistant","parts":[{"type":"tool_call","id":"c1","name":"add","arguments":"[1,1,1,…"}]}]"#,
        );
        assert_eq!(
            (cut("abcdef", 5), cut("abc", 3), cut("äöü", 5)),
            ("ab…".into(), "abc".into(), "ä…".into())
        );
    }
}
