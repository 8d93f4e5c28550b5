//! The text before and around the parser: decoding, and characters.

/// A YAML text, ready to be read.
pub(super) struct Decoded {
    pub(super) text: String,
    /// Offset of the first byte that is not UTF-8.
    pub(super) lossy_from: Option<usize>,
}

/// Decodes the bytes of a YAML text: invalid UTF-8 becomes U+FFFD, a byte order mark at the
/// start goes, and a last line without an end gets one.
pub(super) fn decode(bytes: Vec<u8>) -> Decoded {
    let (mut text, mut lossy_from) = decode_lossy(bytes);
    if text.starts_with('\u{feff}') {
        let mark = '\u{feff}'.len_utf8();
        text.drain(..mark);
        lossy_from = lossy_from.map(|at| at - mark);
    }
    if !text.is_empty() && !text.ends_with(['\n', '\r']) {
        text.push('\n');
    }
    Decoded { text, lossy_from }
}

/// Decodes UTF-8; invalid bytes become U+FFFD, from the returned offset on. Valid text is not copied.
pub fn decode_lossy(bytes: Vec<u8>) -> (String, Option<usize>) {
    match String::from_utf8(bytes) {
        Ok(text) => (text, None),
        Err(error) => {
            let from = error.utf8_error().valid_up_to();
            (String::from_utf8_lossy(error.as_bytes()).into_owned(), Some(from))
        }
    }
}

/// Whether a text may hold a character that [`forbidden`] looks for.
pub(super) fn is_suspicious(text: &str) -> bool {
    #[expect(clippy::needless_bitwise_bool, reason = "without branches the comparisons become vector code")]
    let begins_one = |byte: u8| {
        let control = (byte < 0x20) & (byte != b'\n') & (byte != b'\r') & (byte != b'\t');
        control | (byte == 0x7f) | (byte == 0xc2) | (byte == 0xef)
    };
    text.bytes().fold(false, |seen, byte| seen | begins_one(byte))
}

/// The first character that a plain or block scalar must not hold.
///
/// In quotes upstream takes every character from U+0020 on.
pub(super) fn forbidden(text: &str) -> Option<char> {
    text.chars().find(|c| {
        matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}')
            || matches!(c, '\u{7f}'..='\u{84}' | '\u{86}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}')
    })
}
