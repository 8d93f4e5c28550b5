//! Facts that a stop decision needs and that lie outside of the run.

use super::DecideCx;
use crate::json::Json;
use crate::outcome::Fault;
use crate::port::BoxFuture;

/// Finds out what lies outside of a run and its [`Control`](crate::port::Control) asks for before it decides: files, checks
/// of the application, JSON Schema. What is asked and found is JSON whose form the control knows.
///
/// A source that faults, panics or takes longer than [`Ports::facts_within`](crate::driver::Ports::facts_within) leaves
/// everything unknown.
pub trait FactSource: Send + Sync {
    /// Finds out what is asked.
    ///
    /// # Errors
    /// When nothing can be found out; a single fact that is not known is part of the answer.
    fn gather(&self, ask: &Json, cx: &DecideCx) -> impl Future<Output = Result<Json, Fault>> + Send;
}

/// The object-safe twin of [`FactSource`].
pub trait DynFactSource: Send + Sync {
    /// [`FactSource::gather`], boxed.
    fn gather_boxed<'a>(&'a self, ask: &'a Json, cx: &'a DecideCx) -> BoxFuture<'a, Result<Json, Fault>>;
}

impl<S: FactSource> DynFactSource for S {
    fn gather_boxed<'a>(&'a self, ask: &'a Json, cx: &'a DecideCx) -> BoxFuture<'a, Result<Json, Fault>> {
        Box::pin(self.gather(ask, cx))
    }
}
