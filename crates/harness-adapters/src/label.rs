//! Ids, names and other words that a provider or a backend sends: never longer than a word is.

use std::borrow::Cow;

use harness_core::canonical::sha256_hex;

/// Bytes of an id, a name or a finish reason that a provider or a backend sends. What is longer is no such thing: at a
/// model the id or the name of a tool call fails the step, other ids are left out, and other words are cut; at a backend
/// the id of a call is replaced by its hash.
pub const MAX_LABEL_BYTES: usize = 256;

/// A word that is passed on, cut to the bound.
pub(crate) fn bounded_label(mut label: String) -> String {
    const CUT: char = '…';
    if label.len() > MAX_LABEL_BYTES {
        label.truncate(label.floor_char_boundary(MAX_LABEL_BYTES.saturating_sub(CUT.len_utf8())));
        label.push(CUT);
    }
    label
}

/// Bounded id. An id that is too long is replaced by its hash, which is as unique.
pub(crate) fn bounded_id(id: &str) -> Cow<'_, str> {
    if id.len() <= MAX_LABEL_BYTES {
        Cow::Borrowed(id)
    } else {
        Cow::Owned(format!("sha256:{}", sha256_hex(id)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_14_words_are_cut_and_ids_stay_distinct() {
        let within = "x".repeat(256);
        assert_eq!(
            (bounded_label(within.clone()), bounded_id(&within)),
            (within.clone(), within.as_str().into())
        );
        let label = bounded_label("é".repeat(200));
        assert_eq!((label.len(), label.ends_with('…')), (255, true));
        let (one, other) = (format!("{within}1"), format!("{within}2"));
        assert!(bounded_id(&one).len() <= MAX_LABEL_BYTES);
        assert_eq!(bounded_id(&one), bounded_id(&one));
        assert_ne!(bounded_id(&one), bounded_id(&other));
    }
}
