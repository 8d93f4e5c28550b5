//! Texts that others wrote, made fit for one line of a terminal.

use std::borrow::Cow;

/// The longest such text, in characters.
const LONGEST: usize = 120;

/// The text on one line, without control characters, cut to a bound.
pub(crate) fn one_line(text: &str) -> String {
    let mut line: String = text.chars().map(shown).take(LONGEST + 1).collect();
    if line.chars().count() > LONGEST {
        line = line.chars().take(LONGEST - 1).collect();
        line.push('…');
    }
    line
}

/// A text for a terminal: line ends and tabs stay, other control characters, which could move the cursor
/// or change the terminal, become a replacement character.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_harmful) {
        return text.chars().map(|c| if is_harmful(c) { char::REPLACEMENT_CHARACTER } else { c }).collect();
    }
    Cow::Borrowed(text)
}

fn is_harmful(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t')
}

fn shown(c: char) -> char {
    match c {
        '\n' | '\r' | '\t' => ' ',
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_short_and_harmless() {
        assert_eq!(one_line("a\nb\u{1b}[2Jc"), "a b\u{fffd}[2Jc");
        assert_eq!(one_line(&"x".repeat(120)), "x".repeat(120));
        assert_eq!(one_line(&"x".repeat(121)), "x".repeat(119) + "…");
    }

    #[test]
    fn texts_for_a_terminal_keep_their_lines() {
        assert_eq!(harmless("a\n\tb"), "a\n\tb");
        assert_eq!(harmless("a\u{1b}]0;x\u{7}b\u{9b}"), "a\u{fffd}]0;x\u{fffd}b\u{fffd}");
    }
}
