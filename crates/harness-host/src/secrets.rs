//! Keys of providers, asked for when they are needed.

use harness_core::Fault;
use harness_core::port::{BoxFuture, Secret};

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
