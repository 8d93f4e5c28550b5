//! Types of plain scalars: null, boolean, integer, float, instant, in this order.

use super::instant_form::{self, InstantForm};
use crate::instant::Instant;
use crate::number::integer_lost_digits;

/// The value of a scalar by its text alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Number { value: f64, lossy: bool },
    Instant(Instant),
    InstantOutOfRange,
    Text,
}

/// Types a plain scalar by the table of reference section 5.
pub(super) fn resolve_plain(text: &str) -> Scalar {
    // The first byte rules nearly all prose out at once.
    match text.as_bytes().first() {
        None | Some(b'~' | b'n' | b'N') if null(text) => Scalar::Null,
        Some(b't' | b'T' | b'f' | b'F') => boolean(text).map_or(Scalar::Text, Scalar::Bool),
        Some(b'0'..=b'9') => number(text).unwrap_or_else(|| instant(text)),
        Some(b'+' | b'-' | b'.') => number(text).unwrap_or(Scalar::Text),
        _ => Scalar::Text,
    }
}

pub(super) fn null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

pub(super) fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

fn number(text: &str) -> Option<Scalar> {
    integer(text).or_else(|| float(text))
}

pub(super) fn instant(text: &str) -> Scalar {
    match instant_form::read(text) {
        InstantForm::Instant(instant) => Scalar::Instant(instant),
        InstantForm::OutOfRange => Scalar::InstantOutOfRange,
        InstantForm::Other => Scalar::Text,
    }
}

pub(super) fn integer(text: &str) -> Option<Scalar> {
    let (negative, digits) = split_sign(text);
    let signed = |value: f64| if negative { -value } else { value };
    let (value, lossy) = match digits.as_bytes() {
        [b'0', b'b', ..] => radix(digits.get(2..)?, 1)?,
        [b'0', b'o', ..] => radix(digits.get(2..)?, 3)?,
        [b'0', b'x', ..] => radix(digits.get(2..)?, 4)?,
        // `0_8` is no integer, but a float of the same value.
        [b'_', ..] | [b'0', b'_', ..] => return None,
        bytes if !bytes.is_empty() && underscored(bytes, u8::is_ascii_digit) => {
            let digits = without_underscores(digits);
            let value: f64 = digits.parse().ok()?;
            (value, integer_lost_digits(&digits, value))
        }
        _ => return None,
    };
    Some(Scalar::Number { value: signed(value), lossy })
}

/// Digits of a radix of `1 << bits`, rounded to the nearest double.
fn radix(digits: &str, bits: u32) -> Option<(f64, bool)> {
    if digits.ends_with('_') || !digits.bytes().any(|byte| byte != b'_') {
        return None;
    }
    let (mut mantissa, mut exponent, mut lost) = (0_u64, 0_i32, false);
    for byte in digits.bytes().filter(|byte| *byte != b'_') {
        let digit = char::from(byte).to_digit(1 << bits)?;
        if mantissa.leading_zeros() >= bits {
            mantissa = mantissa << bits | u64::from(digit);
        } else {
            exponent = exponent.saturating_add(bits.cast_signed());
            lost |= digit != 0;
        }
    }
    // The lowest bit stands for everything that was cut, so one rounding gives the nearest double.
    mantissa |= u64::from(lost);
    #[expect(clippy::cast_precision_loss, reason = "rounding to the nearest double is the rule")]
    let rounded = mantissa as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checks the way back")]
    let exact = !lost && rounded as u64 == mantissa && rounded < 18_446_744_073_709_551_616.0;
    Some((rounded * 2_f64.powi(exponent), !exact))
}

pub(super) fn float(text: &str) -> Option<Scalar> {
    let (negative, rest) = split_sign(text);
    let unsigned = rest.len() == text.len();
    let value = match rest {
        ".inf" | ".Inf" | ".INF" => f64::INFINITY,
        ".nan" | ".NaN" | ".NAN" if unsigned => f64::NAN,
        _ if is_float_form(rest, unsigned) => {
            let digits = without_underscores(rest);
            // A fraction of underscores only (`._e1` upstream) is not a number, yet typed as one.
            digits.parse().unwrap_or(f64::NAN)
        }
        _ => return None,
    };
    let value = if negative { -value } else { value };
    Some(Scalar::Number { value, lossy: !value.is_finite() })
}

fn is_float_form(text: &str, unsigned: bool) -> bool {
    if text.ends_with('_') {
        return false;
    }
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (text.get(..at).unwrap_or_default(), text.get(at + 1..)),
        None => (text, None),
    };
    let exponent_fits = exponent.is_none_or(|exponent| {
        let (_, digits) = split_sign(exponent);
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    });
    let is_part = |byte: &u8| byte.is_ascii_digit() || *byte == b'_';
    let mantissa_fits = match mantissa.split_once('.') {
        Some(("", fraction)) => unsigned && !fraction.is_empty() && fraction.as_bytes().iter().all(is_part),
        Some((whole, fraction)) => whole_part(whole) && fraction.as_bytes().iter().all(is_part),
        None => whole_part(mantissa),
    };
    exponent_fits && mantissa_fits
}

fn whole_part(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_')
}

fn underscored(bytes: &[u8], is_digit: fn(&u8) -> bool) -> bool {
    bytes.last() != Some(&b'_') && bytes.iter().all(|byte| *byte == b'_' || is_digit(byte))
}

fn split_sign(text: &str) -> (bool, &str) {
    match text.as_bytes().first() {
        Some(b'-') => (true, text.get(1..).unwrap_or_default()),
        Some(b'+') => (false, text.get(1..).unwrap_or_default()),
        _ => (false, text),
    }
}

fn without_underscores(text: &str) -> std::borrow::Cow<'_, str> {
    if text.contains('_') { text.replace('_', "").into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: f64) {
        let Scalar::Number { value, .. } = resolve_plain(text) else { panic!("{text} is no number") };
        // Adding zero makes the two zeros one.
        assert_eq!((value + 0.0).to_string(), expected.to_string(), "{text}");
    }

    #[test]
    fn integers() {
        for (text, value) in
            [("0", 0.0), ("-0", 0.0), ("+5", 5.0), ("007", 7.0), ("0123", 123.0), ("1__0", 10.0)]
        {
            check(text, value);
        }
        for (text, value) in [("0o17", 15.0), ("0x1F", 31.0), ("-0x10", -16.0), ("0b_1", 1.0), ("0b101", 5.0)]
        {
            check(text, value);
        }
        check("0xFFFFFFFFFFFFFFFFF", 295_147_905_179_352_830_000.0);
        check("0x20000000000001", 9_007_199_254_740_992.0);
        check("0x20000000000003", 9_007_199_254_740_996.0);
    }

    #[test]
    fn floats() {
        for (text, value) in [(".5", 0.5), ("5.", 5.0), ("1e3", 1000.0), ("1_0.5_0", 10.5), ("0_8", 8.0)] {
            check(text, value);
        }
        check("1e400", f64::INFINITY);
        check("-.INF", f64::NEG_INFINITY);
        check(".NaN", f64::NAN);
        check("._e1", f64::NAN);
    }

    #[test]
    fn near_misses_stay_text() {
        for text in
            ["+.5", "-.5", "0o8", "0b2", "0x", "1_", "_1", "1e", "0xG", "1.2.3", "12e03x", ".", "-", "+.nan"]
        {
            assert_eq!(resolve_plain(text), Scalar::Text, "{text}");
        }
        for text in ["yes", "no", "on", "off", "y", "nULL", "tRUE", ".Nan", "1:30", "1e1_0"] {
            assert_eq!(resolve_plain(text), Scalar::Text, "{text}");
        }
    }
}
