//! The text before and around the parser: decoding, and characters.

/// Decodes the bytes of a YAML text: invalid UTF-8 becomes U+FFFD, a byte order mark at the
/// start goes, and a last line without an end gets one.
pub(crate) fn decode(bytes: Vec<u8>) -> String {
    let mut text = lossy(bytes);
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    if !text.is_empty() && !text.ends_with(['\n', '\r']) {
        text.push('\n');
    }
    text
}

/// Invalid UTF-8 becomes U+FFFD; valid text, the usual case, is not copied.
pub(crate) fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
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
