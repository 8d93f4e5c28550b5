//! Numbers, keys and white space as ECMAScript writes and orders them.
//!
//! The hash covers values as JavaScript prints them, so a few of its rules are part of the format.

use std::cmp::Ordering;

pub(crate) use harness_diagnostics::number::{array_index, push_number};

/// Appends `number` as JSON: non-finite numbers are `null`.
pub(crate) fn push_json_number(out: &mut String, number: f64) {
    if number.is_finite() { push_number(out, number) } else { out.push_str("null") }
}

/// The order of two strings by UTF-16 code units.
///
/// It differs from byte order in one point: U+10000 and above come before U+E000..U+FFFF.
pub(crate) fn utf16_order(left: &str, right: &str) -> Ordering {
    // Lead bytes F0..F4 (astral) sort before EE and EF (U+E000..U+FFFF); the rest is byte order.
    fn rank(byte: u8) -> u8 {
        match byte {
            0xee | 0xef => byte + 5,
            0xf0.. => byte - 2,
            _ => byte,
        }
    }
    left.bytes().map(rank).cmp(right.bytes().map(rank))
}

/// The order of keys in canonical text: array indexes first in numeric order, the rest by UTF-16.
pub(crate) fn canonical_key_order(left: &str, right: &str) -> Ordering {
    match (array_index(left), array_index(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => utf16_order(left, right),
    }
}

/// `ECMAScript`'s `trim` leaves nothing.
pub(crate) fn is_blank(text: &str) -> bool {
    text.chars().all(is_white_space)
}

/// `ECMAScript`'s `trim`.
pub(crate) fn trim(text: &str) -> &str {
    text.trim_matches(is_white_space)
}

/// ECMAScript white space and line terminators: Unicode's, with U+FEFF and without U+0085.
pub(crate) fn is_white_space(c: char) -> bool {
    match c {
        '\u{feff}' => true,
        '\u{85}' => false,
        _ => c.is_whitespace(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utf16_order_agrees_with_code_units() {
        let samples =
            ["", "a", "é", "\u{d7ff}", "\u{e000}", "\u{ff5e}", "\u{10000}", "\u{1f600}", "a\u{10000}"];
        for left in samples {
            for right in samples {
                let expected = left.encode_utf16().cmp(right.encode_utf16());
                assert_eq!(utf16_order(left, right), expected, "{left:?} and {right:?}");
            }
        }
    }

    #[test]
    fn white_space_is_that_of_ecmascript() {
        assert!(is_blank(" \t\n\u{a0}\u{3000}\u{feff}\u{2028}"));
        assert!(!is_blank("\u{200b}"));
        assert!(!is_blank("\u{85}"));
    }
}
