//! Foreign texts for one line of a terminal.

use std::borrow::Cow;

use harness::core::display::{is_hidden, is_joiner};

/// Maximum length of such a text in characters.
const LONGEST: usize = 120;

/// The text on one line, without control characters, cut to the maximum length.
pub(crate) fn one_line(text: &str) -> String {
    let head: String = text.chars().map(shown).take(LONGEST + 1).collect();
    let mut line = harmless(&head).into_owned();
    if line.chars().count() > LONGEST {
        line = line.chars().take(LONGEST - 1).collect();
        line.push('…');
    }
    line
}

/// A text for a terminal: line ends and tabs are kept, other [hidden](is_hidden) characters are replaced. A joiner is
/// kept between non-ASCII characters, where it joins letters or emoji.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    let harmful = |c: char| is_hidden(c) && !matches!(c, '\n' | '\t');
    if !text.chars().any(harmful) {
        return Cow::Borrowed(text);
    }
    let mut before = ' ';
    let shown = text.chars().map(|c| {
        let joins = is_joiner(c) && !before.is_ascii() && before != char::REPLACEMENT_CHARACTER;
        before = if harmful(c) && !joins { char::REPLACEMENT_CHARACTER } else { c };
        before
    });
    Cow::Owned(shown.collect())
}

fn shown(c: char) -> char {
    match c {
        '\n' | '\r' | '\t' => ' ',
        c => c,
    }
}

/// A count with its noun: `1 line`, `2 lines`.
pub(crate) fn counted(number: usize, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_short_and_harmless() {
        assert_eq!(one_line("a\nb\u{1b}[2Jc\rd"), "a b\u{fffd}[2Jc d");
        assert_eq!(one_line(&"x".repeat(120)), "x".repeat(120));
        assert_eq!(one_line(&"x".repeat(121)), "x".repeat(119) + "…");
    }

    #[test]
    fn texts_for_a_terminal_keep_their_lines() {
        assert_eq!(harmless("a\n\tb"), "a\n\tb");
        assert_eq!(harmless("a\u{1b}]0;x\u{7}b\u{9b}"), "a\u{fffd}]0;x\u{fffd}b\u{fffd}");
    }

    #[test]
    fn fault_12_what_is_not_seen_is_replaced() {
        for c in "\u{202e}\u{2066}\u{200b}\u{feff}\u{ad}\u{2028}\u{e0041}\u{200d}\u{85}\u{7f}".chars() {
            assert_eq!(harmless(&format!("a{c}b")), "a\u{fffd}b", "{c:?}");
        }
        for text in ["é🙂👩\u{200d}👩\u{200d}👧 ❤\u{fe0f}", "نمی\u{200c}دانم"] {
            assert_eq!(harmless(text), text);
        }
    }
}
