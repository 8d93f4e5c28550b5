//! Models over HTTP: one client for all protocols, with bounds, timeouts and error codes.
//!
//! # Failure and cancellation
//!
//! - When the request's signal fires, or the future is dropped, the connection is closed. That ends
//!   generation and billing on providers that support it.
//! - An error has the text that had arrived. Tool calls of a failed answer are omitted.
//! - Models never retry; wrap them in [`Retry`](crate::Retry).
//! - Redirects are not followed, so that the API key stays with its endpoint.
//! - Proxies come from the usual environment variables. Loopback addresses are always direct.

mod cache;
pub(crate) mod client;
pub(crate) mod draft;
pub(crate) mod endpoint;
pub(crate) mod exchange;
pub(crate) mod fault;
pub(crate) mod frames;
pub(crate) mod lenient;
mod limits;
pub(crate) mod names;
mod reach;
mod reported;
pub(crate) mod service;
pub(crate) mod settings;
pub(crate) mod setup;
pub(crate) mod sse;
#[cfg(test)]
pub(crate) mod testing;
mod undecoded;
mod usage;

pub(crate) use cache::CacheControl;
pub use cache::PromptCache;
pub use limits::{ReplyLimits, ReplyTimeouts};
pub(crate) use limits::{bound, bound_call};
pub use reach::{Reached, reach};
pub use reported::ReportedError;
pub(crate) use reported::error as reported_error;
pub(crate) use undecoded::Undecoded;
pub use usage::ReportedUsage;

/// Sink for deltas of an answer while it arrives.
pub type Sink<'a> = &'a mut dyn FnMut(harness_core::port::DeltaPart);
