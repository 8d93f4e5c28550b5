//! Short hashes of contents, and the keys of summaries that are kept.

use std::fmt;
use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use super::summary::SCHEMA_VERSION;

/// The first 16 hex digits of the SHA-256 of `content`.
///
/// ```
/// use harness_memory::compact::content_hash;
///
/// assert_eq!(content_hash("hello"), "2cf24dba5fb0a30e");
/// ```
pub fn content_hash(content: &str) -> String {
    let hash = Sha256::digest(content.as_bytes());
    hash.iter().take(8).fold(String::with_capacity(16), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Key of the summary of a content: a kept summary is used again only if all parts are equal.
///
/// ```
/// use harness_memory::compact::SummaryKey;
///
/// let key = SummaryKey::of("abc", "v1.0", "small", "v2");
/// assert_eq!(key.to_string(), "ba7816bf8f01cfea:v1.0:v1.0:small:v2");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SummaryKey {
    /// [`content_hash`] of what is summarized.
    pub content_hash: String,
    /// The form of the summary.
    pub schema_version: String,
    /// The rules by which it was asked for.
    pub policy_version: String,
    /// Model that wrote it.
    pub model_id: String,
    /// The wording of the request.
    pub prompt_version: String,
}

impl SummaryKey {
    /// The key of the summary of `content` by `model_id`.
    pub fn of(
        content: &str,
        policy_version: impl Into<String>,
        model_id: impl Into<String>,
        prompt_version: impl Into<String>,
    ) -> Self {
        Self {
            content_hash: content_hash(content),
            schema_version: SCHEMA_VERSION.to_owned(),
            policy_version: policy_version.into(),
            model_id: model_id.into(),
            prompt_version: prompt_version.into(),
        }
    }
}

impl fmt::Display for SummaryKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { content_hash, schema_version, policy_version, model_id, prompt_version } = self;
        write!(f, "{content_hash}:{schema_version}:{policy_version}:{model_id}:{prompt_version}")
    }
}
