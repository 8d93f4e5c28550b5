//! Characters that are safe on a terminal.

use std::borrow::Cow;

use harness::core::display::{is_hidden, is_joiner};

/// The text as one harmless line.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if text.chars().all(|c| clean_char(c) == Some(c)) {
        return Cow::Borrowed(text);
    }
    text.chars().filter_map(clean_char).collect()
}

/// Replacement of a character: a space for a line end or a tab, a replacement character for one that moves the cursor
/// or reorders others.
fn clean_char(c: char) -> Option<char> {
    match c {
        '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => Some(' '),
        // A soft hyphen takes a column in some terminals and none in others.
        '\u{ad}' => None,
        c if is_hidden(c) && !is_joiner(c) => Some(char::REPLACEMENT_CHARACTER),
        c => Some(c),
    }
}
