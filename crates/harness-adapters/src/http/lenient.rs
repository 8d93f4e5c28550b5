//! JSON of a provider, read leniently: a field of an unexpected type is treated as absent, so one
//! odd field does not lose an answer.
//!
//! Fields stay raw JSON until they are needed: numbers keep their exact text, and data to return
//! later stays unchanged.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::label::{MAX_LABEL_BYTES, bounded_label};
use crate::seam::{Piece, piece_of};

pub(crate) type Raw<'a> = Option<&'a RawValue>;

pub(crate) fn decode<'a, T: Deserialize<'a>>(raw: Raw<'a>) -> Option<T> {
    serde_json::from_str(raw?.get()).ok()
}

/// String content as a fragment of a text.
pub(crate) fn piece(raw: Raw<'_>) -> Option<Piece> {
    piece_of(raw?.get())
}

/// A non-empty string. Half a character in it becomes a mark.
pub(crate) fn text(raw: Raw<'_>) -> Option<String> {
    piece(raw).map(Piece::into_text).filter(|text| !text.is_empty())
}

/// A name, a status or a reason that is only passed on: cut where it is longer than [`MAX_LABEL_BYTES`].
pub(crate) fn label(raw: Raw<'_>) -> Option<String> {
    text(raw).map(bounded_label)
}

/// An id that nothing depends on: left out where it is longer than [`MAX_LABEL_BYTES`], because a part of an id names
/// something else.
pub(crate) fn id(raw: Raw<'_>) -> Option<String> {
    text(raw).filter(|id| id.len() <= MAX_LABEL_BYTES)
}

pub(crate) fn number(raw: Raw<'_>) -> Option<u64> {
    let text = raw?.get();
    text.strip_suffix(".0").unwrap_or(text).parse().ok()
}
