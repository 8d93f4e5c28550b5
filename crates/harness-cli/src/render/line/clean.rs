//! Which characters a terminal may get.

use std::borrow::Cow;

use harness::core::display::{is_hidden, is_joiner};

/// The text as one line that cannot steer a terminal.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if text.chars().all(|c| clean_char(c) == Some(c)) {
        return Cow::Borrowed(text);
    }
    text.chars().filter_map(clean_char).collect()
}

/// What is shown for a character, if anything is: a space for a line end or a tab, a replacement character
/// for what moves the cursor or changes the order in which others are shown.
fn clean_char(c: char) -> Option<char> {
    match c {
        '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => Some(' '),
        // A soft hyphen takes a column in some terminals and none in others.
        '\u{ad}' => None,
        c if is_hidden(c) && !is_joiner(c) => Some(char::REPLACEMENT_CHARACTER),
        c => Some(c),
    }
}
