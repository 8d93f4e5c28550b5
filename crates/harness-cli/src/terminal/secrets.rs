//! Redaction of API keys.

use std::borrow::Cow;

use harness::core::display::mask_secrets;
use harness::core::redact::KnownSecrets;
use parking_lot::RwLock;

/// Known API keys.
static KEYS: RwLock<KnownSecrets> = RwLock::new(KnownSecrets::new(SHORTEST, "***"));

/// A shorter key cannot be distinguished from a word.
const SHORTEST: usize = 6;

/// Redacts a key from now on.
pub(crate) fn conceal(key: &str) {
    KEYS.write().add(key.trim());
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
    KEYS.read().text(text)
}
