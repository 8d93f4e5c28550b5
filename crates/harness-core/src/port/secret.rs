//! The key of a provider.

use std::fmt;
use std::sync::Arc;

/// A key: shown by nothing, written by nothing. White space around it is dropped, because keys are often
/// read from files that end in a newline.
///
/// ```
/// use harness_core::port::Secret;
///
/// let key = Secret::new("sk-0123\n");
/// assert_eq!(key.expose(), "sk-0123");
/// assert_eq!(format!("{key:?}"), "Secret(redacted)");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Takes a key.
    pub fn new(key: impl AsRef<str>) -> Self {
        Self(Arc::from(key.as_ref().trim()))
    }

    /// Whether nothing but white space was given.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The key itself, for the request that it is for and nothing else.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(redacted)")
    }
}
