//! An estimate by length.

use crate::compact::tokens::TokenCounter;

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
    fn check(text: &str, tokens: u64) {
        assert_eq!(RoundedCharacters.count(text), tokens, "{text}");
    }

    #[test]
    fn characters_round_half_up() {
        check("", 0);
        check("a", 1);
        check("abcde", 1);
        check("abcdef", 2);
        check("éé", 1);
        check("漢字漢字漢字", 2);
    }
}
