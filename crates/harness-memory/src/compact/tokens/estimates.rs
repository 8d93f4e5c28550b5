//! Estimates by length.

use harness_core::port::TokenCounter;

/// A quarter of the UTF-8 bytes, rounded up.
#[derive(Clone, Copy, Debug, Default)]
pub struct QuarterBytes;

impl TokenCounter for QuarterBytes {
    fn count(&self, text: &str) -> u64 {
        (text.len() as u64).div_ceil(4)
    }

    fn name(&self) -> &'static str {
        "bytes/4"
    }
}

/// A quarter of the characters, rounded half up, and at least 1 for a text that is not empty.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundedCharacters;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, bytes: u64, characters: u64) {
        assert_eq!((QuarterBytes.count(text), RoundedCharacters.count(text)), (bytes, characters), "{text}");
    }

    #[test]
    fn bytes_round_up_and_characters_round_half_up() {
        check("", 0, 0);
        check("a", 1, 1);
        check("abcde", 2, 1);
        check("abcdef", 2, 2);
        check("éé", 1, 1);
        check("漢字漢字漢字", 5, 2);
    }
}
