//! JSON of a provider, read leniently: a field of an unexpected type is treated as absent, so one odd
//! field does not lose an answer.
//!
//! Fields stay raw JSON until somebody needs them: numbers keep their exact text, and what must be sent
//! back later stays as it came.

use serde::Deserialize;
use serde_json::value::RawValue;

pub(crate) type Raw<'a> = Option<&'a RawValue>;

pub(crate) fn decode<'a, T: Deserialize<'a>>(raw: Raw<'a>) -> Option<T> {
    serde_json::from_str(raw?.get()).ok()
}

/// A non-empty string.
pub(crate) fn text(raw: Raw<'_>) -> Option<String> {
    decode::<String>(raw).filter(|text| !text.is_empty())
}

pub(crate) fn number(raw: Raw<'_>) -> Option<u64> {
    let text = raw?.get();
    text.strip_suffix(".0").unwrap_or(text).parse().ok()
}
