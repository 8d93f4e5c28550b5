//! Basic types: times, ids, JSON, errors, cancellation.

use std::any::Any;

pub(crate) mod cancel;
pub mod canonical;
pub(crate) mod clock;
pub mod display;
pub(crate) mod fault;
pub(crate) mod ids;
mod indent;
pub(crate) mod json;
pub(crate) mod object;
pub(crate) mod origin;
pub mod redact;
pub(crate) mod schema;
pub mod stored;
pub(crate) mod time;
mod twin;
mod wire;

/// Boxed future that can be sent between threads.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Returns the message of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
