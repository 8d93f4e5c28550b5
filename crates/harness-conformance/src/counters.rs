//! The estimates of tokens that the vectors are made with.

use harness_memory::compact::tokens::TokenCounter;

/// A quarter of the characters, rounded half up, and at least 1 for a text that is not empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundedCharacters;

impl TokenCounter for RoundedCharacters {
    fn count(&self, text: &str) -> u64 {
        if text.is_empty() {
            return 0;
        }
        ((text.chars().count() as u64 + 2) / 4).max(1)
    }

    fn name(&self) -> &'static str {
        "characters/4"
    }
}

/// A quarter of the UTF-16 units, rounded up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Utf16Quarters;

impl TokenCounter for Utf16Quarters {
    fn count(&self, text: &str) -> u64 {
        (text.encode_utf16().count() as u64).div_ceil(4)
    }

    fn name(&self) -> &'static str {
        "utf16/4"
    }
}
