//! Facts that a stop decision needs and that lie outside of the run.

use super::DecideCx;
use crate::json::Json;
use crate::outcome::Fault;
use crate::twin;

/// Finds out what lies outside of a run and its [`Control`](crate::port::Control) asks for before it decides: files, checks
/// of the application, JSON Schema. What is asked and found is JSON whose form the control knows.
///
/// A source that faults, panics or takes longer than [`Ports::facts_within`](crate::driver::Ports::facts_within) leaves
/// everything unknown.
///
/// ```
/// use harness_core::decide::{DecideCx, FactSource};
/// use harness_core::{Fault, Json};
///
/// /// Knows nothing of what is asked.
/// struct Nothing;
///
/// impl FactSource for Nothing {
///     async fn gather(&self, _ask: &Json, _cx: &DecideCx) -> Result<Json, Fault> {
///         Ok(Json::empty_object())
///     }
/// }
/// ```
pub trait FactSource: Send + Sync {
    /// Finds out what is asked.
    ///
    /// # Errors
    /// When nothing can be found out; a single fact that is not known is part of the answer.
    fn gather(&self, ask: &Json, cx: &DecideCx) -> impl Future<Output = Result<Json, Fault>> + Send;
}

twin! {
    DynFactSource of FactSource {
        async fn gather_boxed = gather(ask: &'a Json, cx: &'a DecideCx) -> Result<Json, Fault>;
    }
}
