//! Keys of providers, asked for when they are needed.

use harness_core::Fault;
use harness_core::port::Secret;

/// Gives the key of a provider. Asked before every request, so that keys may change and expire.
pub trait Secrets: Send + Sync {
    /// The key for a provider; `None` keeps the one that the adapter was made with.
    ///
    /// # Errors
    /// An error ends the model step, like an error of the model.
    fn key(&self, provider: &str) -> impl Future<Output = Result<Option<Secret>, Fault>> + Send;
}

harness_core::twin! {
    DynSecrets of Secrets {
        async fn key_boxed = key(provider: &'a str) -> Result<Option<Secret>, Fault>;
    }
}
