//! Texts that are kept beside a log, by their hash: what is too large for a journal, or must not be in one.

use std::fmt;
use std::sync::Arc;

use harness::core::canonical::sha256_hex;
use serde::{Deserialize, Serialize};

/// The SHA-256 of a text, in hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BlobHash(Arc<str>);

impl BlobHash {
    /// The hash of a text.
    pub fn of(text: &str) -> Self {
        Self(sha256_hex(text).into())
    }

    /// 64 hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BlobHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text with its hash.
///
/// ```
/// use harness_restate::durable::{Blob, BlobHash};
///
/// let blob = Blob::new("{}");
/// assert_eq!((&**blob.text(), blob.hash()), ("{}", &BlobHash::of("{}")));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    hash: BlobHash,
    text: Arc<str>,
}

impl Blob {
    /// Hashes a text.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        Self { hash: BlobHash::of(&text), text }
    }

    /// Hash of the text.
    pub fn hash(&self) -> &BlobHash {
        &self.hash
    }

    /// Text under the hash.
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }
}
