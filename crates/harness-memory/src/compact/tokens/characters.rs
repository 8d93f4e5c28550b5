//! An estimate that knows scripts.

use crate::compact::tokens::TokenCounter;

/// Characters per token by script: ASCII 4, other Latin 3, CJK and emoji 1.5, any other script 2. Rounded
/// up.
///
/// ```
/// use harness_memory::compact::tokens::{CharacterCounter, TokenCounter};
///
/// assert_eq!(CharacterCounter.count("eight by"), 2);
/// assert_eq!(CharacterCounter.count("日本語"), 2);
/// assert_eq!(CharacterCounter.count(""), 0);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct CharacterCounter;

/// A token in parts that every factor divides.
const TOKEN: u64 = 12;

impl TokenCounter for CharacterCounter {
    fn count(&self, text: &str) -> u64 {
        if text.is_ascii() {
            return (text.len() as u64).div_ceil(4);
        }
        text.chars().map(parts).sum::<u64>().div_ceil(TOKEN)
    }

    fn name(&self) -> &'static str {
        "characters-by-script"
    }
}

/// Twelfths of a token of one character.
fn parts(character: char) -> u64 {
    match u32::from(character) {
        0..=0x7f => 3,
        0x80..=0x24f | 0x1e00..=0x1eff | 0x2000..=0x206f => 4,
        0x2600..=0x27bf
        | 0x2e80..=0x9fff
        | 0xac00..=0xd7af
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe4f
        | 0xff00..=0xffef
        | 0x1f000..=0x1faff
        | 0x20000..=0x3ffff => 8,
        _ => 6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, tokens: u64) {
        assert_eq!(CharacterCounter.count(text), tokens, "{text}");
    }

    #[test]
    fn each_script_has_its_factor() {
        check("abcd", 1);
        check("abcde", 2);
        check("éèà", 1);
        check("éèàü", 2);
        check("漢字漢", 2);
        check("漢字漢字", 3);
        check("🎉🎉🎉", 2);
        check("привет", 3);
        check("abcd漢字漢", 3);
    }
}
