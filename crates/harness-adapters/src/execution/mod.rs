//! Execution adapters: backends that run a whole turn elsewhere.
//!
#![cfg_attr(
    feature = "openrouter",
    doc = "- [`OpenRouterExecutionAdapter`] asks a hosted model once, without tools."
)]
//! - [`BackendModel`] makes any execution adapter a model, so that a run goes through the one loop.
//! - [`TieredRunner`] asks a router whether a request is answered at once ([`SingleShot`]), by the whole
//!   loop, or not at all.
//!
//! What all of them share is here, too: the prompt of a request ([`user_text`]) and the making of results
//! with trace and degradation ([`Negotiated`], [`Attempt`]).

mod backend;
mod json;
#[cfg(feature = "openrouter")]
mod openrouter;
mod outcome;
mod prompt;
mod single_shot;
mod tiered;

pub use backend::{BackendModel, BackendNote, BackendTool};
#[cfg(feature = "openrouter")]
pub use openrouter::{
    OpenRouterExecutionAdapter, OpenRouterExecutionBuilder, OpenRouterSingleShotAdapter,
    OpenRouterSingleShotBuilder,
};
pub use outcome::{Attempt, Negotiated};
pub use prompt::user_text;
pub use single_shot::{Said, SingleShot, SingleShotAnswer, SingleShotFault, SingleShotRequest};
pub use tiered::{RouterFault, Routing, Tier, TierRouter, TieredFault, TieredOutcome, TieredRunner};

#[cfg(feature = "openrouter")]
pub(crate) use json::indented;
#[cfg(any(feature = "local-command", feature = "openrouter"))]
pub(crate) use json::object;
#[cfg(any(feature = "local-command", feature = "openrouter"))]
pub(crate) use prompt::trimmed;
