//! A conversation as text, for a model that is to summarize it.

use harness_core::message::{Block, Message};

/// Characters of one part (a text, arguments, a result) beyond which its middle is omitted.
pub(super) const PART: usize = 2_000;

/// The line of one message: `User: …`, `Assistant: …` with `[tool call: name]` for calls, `Tool (name): …`. Thoughts,
/// images and messages that no model is sent are omitted.
pub(super) fn line(message: &Message, limit: usize) -> String {
    let who = match message {
        Message::System(_) => "System".to_owned(),
        Message::User(_) => "User".to_owned(),
        Message::Custom(custom) if custom.to_model => "User".to_owned(),
        Message::Assistant(_) => "Assistant".to_owned(),
        Message::ToolResult(result) => format!("Tool ({})", result.tool_name),
        Message::Custom(_) | _ => return String::new(),
    };
    let parts: Vec<_> = message.content().iter().filter_map(|block| part(block, limit)).collect();
    if parts.is_empty() { String::new() } else { format!("{who}: {}\n", parts.join(" ")) }
}

fn part(block: &Block, limit: usize) -> Option<String> {
    let text = match block {
        Block::Text(block) => cut(&block.text, limit),
        Block::ToolCall(call) => format!("[tool call: {} {}]", call.name, cut(call.arguments.text(), limit)),
        Block::Refusal(block) => cut(&block.text, limit),
        Block::Error(block) => cut(&block.message, limit),
        Block::Image(_)
        | Block::File(_)
        | Block::Audio(_)
        | Block::Thinking(_)
        | Block::Approval(_)
        | Block::Extension(_)
        | Block::Unknown(_)
        | _ => return None,
    };
    Some(text).filter(|text| !text.is_empty())
}

/// The beginning and the end of a text that is longer than `limit` characters.
pub(crate) fn cut(text: &str, limit: usize) -> String {
    // Bytes are never fewer than characters, so most texts need no count.
    if text.len() <= limit {
        return text.to_owned();
    }
    let count = text.chars().count();
    if count <= limit {
        return text.to_owned();
    }
    let place = |characters: usize| text.char_indices().nth(characters).map_or(text.len(), |(at, _)| at);
    let (head, tail) = (place(limit.div_ceil(2)), place(count - limit / 2));
    let (head, tail) = (text.get(..head).unwrap_or_default(), text.get(tail..).unwrap_or_default());
    format!("{head} [{} characters left out] {tail}", count - limit)
}

#[cfg(test)]
mod tests {
    use harness_core::Json;
    use harness_core::message::{AssistantMessage, ToolCall, ToolResultMessage};

    use super::*;

    #[test]
    fn calls_and_results_are_lines() {
        let call = ToolCall::new("c1", "read", Json::parse(r#"{"path":"a"}"#).unwrap());
        let mut answer = AssistantMessage::calls([call.clone()]);
        answer.content.insert(0, Block::text("Let me see."));
        answer.content.insert(0, Block::thinking("hm"));
        let content = vec![Block::text("one"), Block::image("aGk=", "image/png"), Block::text("two")];
        let result = ToolResultMessage::new(&call, content, false);
        let lines = [Message::user("go"), answer.into(), result.into()].map(|message| line(&message, PART));
        assert_eq!(
            lines.concat(),
            "User: go\nAssistant: Let me see. [tool call: read {\"path\":\"a\"}]\nTool (read): one two\n"
        );
    }

    #[test]
    fn the_middle_of_a_long_part_is_left_out() {
        assert_eq!(cut("abcdefgh", 8), "abcdefgh");
        assert_eq!(cut("abcdefghi", 4), "ab [5 characters left out] hi");
        assert_eq!(cut("äöüß", 4), "äöüß");
        assert_eq!(cut("äöüßÄ", 2), "ä [3 characters left out] Ä");
    }
}
