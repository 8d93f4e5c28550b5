//! What every other module is made of: times, ids, JSON, faults.

pub(crate) mod cancel;
pub mod canonical;
pub(crate) mod clock;
pub mod display;
pub(crate) mod fault;
pub(crate) mod ids;
pub(crate) mod json;
pub mod nesting;
pub(crate) mod origin;
pub(crate) mod panics;
pub mod stored;
pub(crate) mod time;
mod twin;

/// A boxed future that may cross threads.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;
