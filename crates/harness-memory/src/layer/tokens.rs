//! Tokens of messages.

use harness_core::message::Message;

use crate::compact::tokens::TokenCounter;

/// Tokens of a message: its compact JSON text, the form in which it is sent and stored.
pub(crate) fn message_tokens(counter: &dyn TokenCounter, message: &Message) -> u64 {
    serde_json::to_string(message).map_or(0, |text| counter.count(&text))
}
