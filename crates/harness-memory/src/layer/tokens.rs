//! Tokens of messages.

use harness_core::message::Message;

use crate::compact::tokens::TokenCounter;

/// An estimate: a quarter of the UTF-16 units, rounded up.
#[derive(Clone, Copy, Debug, Default)]
pub struct Utf16Quarters;

impl TokenCounter for Utf16Quarters {
    fn count(&self, text: &str) -> u64 {
        // ASCII, the common case, has as many units as bytes.
        let units = if text.is_ascii() { text.len() } else { text.encode_utf16().count() };
        u64::try_from(units).unwrap_or(u64::MAX).div_ceil(4)
    }

    fn name(&self) -> &'static str {
        "utf16/4"
    }
}

/// Tokens of a message: its compact JSON text, the form in which it is sent and stored.
pub(crate) fn message_tokens(counter: &dyn TokenCounter, message: &Message) -> u64 {
    serde_json::to_string(message).map_or(0, |text| counter.count(&text))
}
