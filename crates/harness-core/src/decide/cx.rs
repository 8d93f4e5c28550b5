//! Context of decisions, and the source of facts.

use std::sync::Arc;

use crate::cancel::Cancel;
use crate::json::Json;
use crate::origin::Origin;
use crate::outcome::{Fault, Purpose};
use crate::port::Ledger;
use crate::time::Time;
use crate::transcript::Prefix;
use crate::twin;

/// Context of a decision.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DecideCx {
    /// Transcript so far.
    pub log: Prefix,
    /// Origin of the turn.
    pub origin: Arc<Origin>,
    /// Fires when the decision is cancelled.
    pub cancel: Cancel,
    /// Time of the call.
    pub now: Time,
    /// Ledger for model calls of the gate or check.
    pub ledger: Ledger,
}

impl DecideCx {
    /// Creates a context for tests and other drivers, with an unlimited ledger.
    pub fn new(log: Prefix, origin: Arc<Origin>, cancel: Cancel, now: Time) -> Self {
        Self { log, origin, cancel, now, ledger: Ledger::unlimited(Purpose::Judge) }
    }
}

/// Source of facts from outside of the run that its [`Control`](crate::port::Control) needs for a decision: files,
/// application checks, JSON Schema. Requests and facts are JSON of a form that the control defines.
///
/// If it fails, panics or exceeds [`Ports::facts_within`](crate::driver::Ports::facts_within), all facts are unknown.
///
/// ```
/// use harness_core::decide::{DecideCx, FactSource};
/// use harness_core::{Fault, Json};
///
/// struct NoFacts;
///
/// impl FactSource for NoFacts {
///     async fn gather(&self, _request: &Json, _cx: &DecideCx) -> Result<Json, Fault> {
///         Ok(Json::empty_object())
///     }
/// }
/// ```
pub trait FactSource: Send + Sync {
    /// Gathers the requested facts.
    ///
    /// # Errors
    /// If no facts are available. A single unknown fact is part of the result.
    fn gather(&self, request: &Json, cx: &DecideCx) -> impl Future<Output = Result<Json, Fault>> + Send;
}

twin! {
    DynFactSource of FactSource {
        async fn gather_boxed = gather(request: &'a Json, cx: &'a DecideCx) -> Result<Json, Fault>;
    }
}
