//! Execution adapters: backends that run a whole turn elsewhere.
//!
//! What all of them share is here, too: the prompt of a request ([`user_text`]) and the making of results
//! with trace and degradation ([`Negotiated`], [`Attempt`]).

pub(crate) mod json;
mod outcome;
pub(crate) mod prompt;

pub use outcome::{Attempt, Negotiated};
pub use prompt::user_text;
