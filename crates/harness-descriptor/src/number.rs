//! Numbers and property keys as ECMAScript writes and orders them.
//!
//! The hash covers values as JavaScript prints them, so these few rules of another
//! language are part of our format (reference sections 3 and 6).

use std::cmp::Ordering;

/// Appends `ECMAScript`'s `Number::toString` of `number`, the form used in keys and rendered text.
pub(crate) fn push_number(out: &mut String, number: f64) {
    out.push_str(ryu_js::Buffer::new().format(number));
}

/// Appends `number` as JSON: non-finite numbers are `null`.
pub(crate) fn push_json_number(out: &mut String, number: f64) {
    if number.is_finite() { push_number(out, number) } else { out.push_str("null") }
}

/// Whether turning the integer text `digits` (no sign) into a double changed its value.
pub(crate) fn integer_lost_digits(digits: &str, number: f64) -> bool {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.abs() < EXACT {
        return false;
    }
    let written = digits.trim_start_matches('0');
    // Every double of this size is an integer, and `Display` prints all its digits.
    format!("{:.0}", number.abs()) != written
}

/// The value of a canonical array index: decimal `0`..`4294967294`, no leading zero, no sign.
pub(crate) fn array_index(key: &str) -> Option<u32> {
    let bytes = key.as_bytes();
    let canonical = match bytes {
        [b'0'] => true,
        [b'1'..=b'9', rest @ ..] => rest.len() < 10 && rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if !canonical {
        return None;
    }
    key.parse::<u32>().ok().filter(|index| *index != u32::MAX)
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
    fn array_indexes_are_canonical_only() {
        for (key, index) in [("0", Some(0)), ("10", Some(10)), ("4294967294", Some(4_294_967_294))] {
            assert_eq!(array_index(key), index, "{key}");
        }
        for key in ["", "01", "-1", "+1", "1.5", "4294967295", "99999999999", "1a"] {
            assert_eq!(array_index(key), None, "{key}");
        }
    }

    #[test]
    fn integers_above_two_to_53_are_lossy_only_when_digits_change() {
        assert!(!integer_lost_digits("9007199254740992", 9_007_199_254_740_992.0));
        assert!(integer_lost_digits("9007199254740993", 9_007_199_254_740_992.0));
        assert!(!integer_lost_digits("00123", 123.0));
    }

    #[test]
    fn white_space_is_that_of_ecmascript() {
        assert!(is_blank(" \t\n\u{a0}\u{3000}\u{feff}\u{2028}"));
        assert!(!is_blank("\u{200b}"));
        assert!(!is_blank("\u{85}"));
    }
}
