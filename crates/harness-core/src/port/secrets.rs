//! Keys of providers.

use std::fmt;
use std::sync::Arc;

use super::BoxFuture;
use crate::outcome::Fault;

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

/// Gives the key of a provider. Asked before every request, so that keys may change and expire.
pub trait Secrets: Send + Sync {
    /// The key for a provider; `None` keeps the one that the adapter was made with.
    ///
    /// # Errors
    /// A fault ends the model step like one of the model.
    fn key(&self, provider: &str) -> impl Future<Output = Result<Option<Secret>, Fault>> + Send;
}

/// The object-safe twin of [`Secrets`].
pub trait DynSecrets: Send + Sync {
    /// [`Secrets::key`], boxed.
    fn key_boxed<'a>(&'a self, provider: &'a str) -> BoxFuture<'a, Result<Option<Secret>, Fault>>;
}

impl<S: Secrets> DynSecrets for S {
    fn key_boxed<'a>(&'a self, provider: &'a str) -> BoxFuture<'a, Result<Option<Secret>, Fault>> {
        Box::pin(self.key(provider))
    }
}
