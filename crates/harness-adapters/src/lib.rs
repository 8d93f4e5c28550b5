//! Model adapters for harness.
#[cfg(feature = "openrouter")]
pub mod chat;
mod error;
mod secret;
pub use error::AdapterError;
pub use secret::ApiKey;
