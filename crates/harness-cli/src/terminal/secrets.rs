//! Redaction of API keys.

use std::borrow::Cow;
use std::sync::{PoisonError, RwLock};

use harness::core::display::mask_secrets;

/// Known API keys, each at least [`SHORTEST`] characters long.
static KEYS: RwLock<Vec<String>> = RwLock::new(Vec::new());

/// A shorter key cannot be distinguished from a word.
const SHORTEST: usize = 6;

/// Redacts a key from now on.
pub(crate) fn conceal(key: &str) {
    let key = key.trim();
    let mut keys = KEYS.write().unwrap_or_else(PoisonError::into_inner);
    if key.chars().count() >= SHORTEST && !keys.iter().any(|known| known == key) {
        keys.push(key.to_owned());
    }
}

/// The text without known or likely API keys.
pub(super) fn without_secrets(text: &str) -> Cow<'_, str> {
    match without_known(text) {
        Cow::Borrowed(text) => mask_secrets(text),
        Cow::Owned(text) => Cow::Owned(mask_secrets(&text).into_owned()),
    }
}

/// The text without known API keys.
pub(super) fn without_known(text: &str) -> Cow<'_, str> {
    let mut known = Cow::Borrowed(text);
    for key in KEYS.read().unwrap_or_else(PoisonError::into_inner).iter() {
        if known.contains(key.as_str()) {
            known = Cow::Owned(known.replace(key.as_str(), "***"));
        }
    }
    known
}
