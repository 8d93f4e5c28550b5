//! Tokens of a message in a request.

use harness_core::message::{Block, Message};
use harness_core::port::PreparedAgent;

use crate::compact::tokens::TokenCounter;

/// Tokens of an image whose size is unknown: a quarter of the 4,800 bytes that an image counts as.
pub const IMAGE_TOKENS: u64 = 1_200;

/// Tokens that the form of every message costs.
const PER_MESSAGE: u64 = 4;
/// Tokens that the form of a call costs.
const PER_CALL: u64 = 5;
/// Tokens that the form of a tool's definition costs.
const PER_TOOL: u64 = 10;

/// Tokens of a message in a request: what a model is sent of it, and 4 for its form.
///
/// Names and arguments of calls count, and results of every kind. What is never sent counts nothing:
/// signatures, details, custom messages that are not for the model. A counter that knows whole messages
/// ([`TokenCounter::count_message`]) says how much each of them costs.
pub fn message_tokens(counter: &dyn TokenCounter, message: &Message) -> u64 {
    if let Message::Custom(custom) = message
        && !custom.to_model
    {
        return 0;
    }
    counter.count_message(message).unwrap_or_else(|| {
        let blocks = message.content().iter().map(|block| block_tokens(counter, block));
        blocks.fold(PER_MESSAGE, u64::saturating_add)
    })
}

/// Tokens of a message without its form.
pub(crate) fn content_tokens(counter: &dyn TokenCounter, message: &Message) -> u64 {
    message_tokens(counter, message).saturating_sub(PER_MESSAGE)
}

fn block_tokens(counter: &dyn TokenCounter, block: &Block) -> u64 {
    match block {
        Block::Text(block) => counter.count(&block.text),
        Block::Thinking(block) => counter.count(&block.thinking),
        Block::ToolCall(call) => {
            let arguments = counter.count(call.arguments.text());
            PER_CALL.saturating_add(counter.count(call.name.as_str())).saturating_add(arguments)
        }
        Block::Refusal(block) => counter.count(&block.text),
        Block::Error(block) => counter.count(&block.message),
        Block::Image(_) => IMAGE_TOKENS,
        Block::File(block) => block.data.as_ref().map_or(IMAGE_TOKENS, |data| counter.count(data)),
        Block::Audio(block) => block.transcript.as_ref().map_or(IMAGE_TOKENS, |text| counter.count(text)),
        Block::Approval(_) | Block::Extension(_) | Block::Unknown(_) | _ => 0,
    }
}

/// Tokens of the instructions and the tools that every request of an agent begins with.
pub fn prepared_tokens(counter: &dyn TokenCounter, prepared: &PreparedAgent) -> u64 {
    let tools = prepared.tools.iter().map(|tool| {
        let schema = tool.input_schema.as_ref().map_or(0, |schema| counter.count(schema.text()));
        PER_TOOL + counter.count(tool.name.as_str()) + counter.count(&tool.description) + schema
    });
    tools.fold(PER_MESSAGE + counter.count(&prepared.instructions), u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use harness_core::Json;
    use harness_core::message::{AssistantMessage, CustomMessage, ToolCall, ToolResultMessage};
    use harness_core::tool::ToolDef;

    use super::*;
    use crate::compact::tokens::CharacterCounter;

    #[track_caller]
    fn check(message: impl Into<Message>, tokens: u64) {
        assert_eq!(message_tokens(&CharacterCounter, &message.into()), tokens);
    }

    #[test]
    fn what_is_sent_counts() {
        let call = ToolCall::new("c1", "read", Json::parse(r#"{"a":1}"#).unwrap());
        check(Message::user("12345678"), 6);
        check(AssistantMessage::calls([call.clone()]), 4 + 5 + 1 + 2);
        check(ToolResultMessage::new(&call, vec![Block::text("1234"), Block::text("1234")], false), 6);
        check(ToolResultMessage::new(&call, vec![Block::image("aGk=", "image/png")], false), 1_204);
        check(CustomMessage::new("note", None), 0);
    }

    #[test]
    fn a_counter_may_know_whole_messages() {
        struct Flat;
        impl TokenCounter for Flat {
            fn count(&self, _: &str) -> u64 {
                1
            }

            fn count_message(&self, message: &Message) -> Option<u64> {
                message.as_assistant().map(|_| 50)
            }

            fn name(&self) -> &'static str {
                "flat"
            }
        }
        let tokens = [Message::user("12345678"), AssistantMessage::text("12345678").into()]
            .map(|message| (message_tokens(&Flat, &message), content_tokens(&Flat, &message)));
        assert_eq!(tokens, [(5, 1), (50, 46)]);
    }

    #[test]
    fn tools_and_instructions_count() {
        let tool = ToolDef::new("read", "reads it").with_schema(Json::parse(r#"{"a":{}}"#).unwrap());
        let prepared = PreparedAgent::new("main", "12345678", vec![tool]);
        assert_eq!(prepared_tokens(&CharacterCounter, &prepared), 4 + 2 + 10 + 1 + 2 + 2);
    }
}
