//! Numbers and property keys as ECMAScript writes them.

/// Appends `ECMAScript`'s `Number::toString` of `number`, the form used in keys and rendered text.
pub fn push_number(out: &mut String, number: f64) {
    out.push_str(ryu_js::Buffer::new().format(number));
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
pub fn array_index(key: &str) -> Option<u32> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
