//! Execution adapters: backends that run a whole turn elsewhere.
//!
//! - [`BackendModel`] makes any execution adapter a model, so that a run goes through the one loop.
//! - [`ModelBackend`] makes any model an execution adapter of one step, without tools.
//! - [`TieredRunner`] asks a router which of two backends answers a request, or neither.
//!
//! What all of them share is here, too: the prompt of a request ([`user_text`]) and the making of results
//! with trace and degradation ([`Negotiated`], [`Attempt`]).

mod backend;
mod json;
mod model_backend;
mod outcome;
mod prompt;
mod tiered;

pub use backend::{BackendModel, BackendNote, BackendTool};
pub use model_backend::ModelBackend;
pub use outcome::{Attempt, Negotiated};
pub use prompt::user_text;
pub use tiered::{RouterFault, Routing, Tier, TierRouter, TieredOutcome, TieredRunner};

#[cfg(feature = "local-command")]
pub(crate) use json::object;
#[cfg(feature = "local-command")]
pub(crate) use prompt::trimmed;
