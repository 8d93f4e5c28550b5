//! Which characters a terminal may get.

use std::borrow::Cow;

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
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => Some(char::REPLACEMENT_CHARACTER),
        c if c.is_control() => Some(char::REPLACEMENT_CHARACTER),
        c => Some(c),
    }
}
