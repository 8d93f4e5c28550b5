//! What differs between a turn and a run.

use super::{Cx, Input, Pending, Shared};
use crate::json::Json;
use crate::outcome::{End, TotalUsage};
use crate::port::OpenCall;
use crate::time::Time;
use crate::transcript::Transcript;

pub(crate) mod sealed {
    /// Closes [`super::Phase`].
    #[expect(unnameable_types, reason = "a seal is meant to be unnameable")]
    pub trait Sealed {}
}

/// The part of a machine that differs between turn and run. Sealed: users drive machines, they do not
/// write them.
pub trait Phase: sealed::Sealed + Default + Send + 'static {
    /// What configures it.
    type Spec: Send + Sync;

    /// Takes an input; `pending` says what a reply is of.
    #[doc(hidden)]
    fn step(
        &mut self,
        spec: &Self::Spec,
        cx: &mut Cx<'_>,
        pending: Option<Pending>,
        input: Input,
    ) -> Option<End>;

    /// Counts what parts have spent on models; the budgets are charged already.
    #[doc(hidden)]
    fn spend(&mut self, spent: &TotalUsage);

    /// Continues after a rest ([`Cx::rest`]).
    #[doc(hidden)]
    fn proceed(&mut self, spec: &Self::Spec, cx: &mut Cx<'_>) -> Option<End>;

    /// The state at a rest; `None` when nothing goes on from it.
    #[doc(hidden)]
    fn save(&self, shared: &Shared, log: &Transcript) -> Option<Json>;

    /// Whether an operation must not begin before its record is stored.
    #[doc(hidden)]
    fn must_be_stored(&self, pending: Pending) -> bool;

    /// These have not begun, and do not, because their records could not be stored.
    #[doc(hidden)]
    fn not_stored(&mut self, spec: &Self::Spec, cx: &mut Cx<'_>, cut: Vec<Pending>) -> Option<End>;

    #[doc(hidden)]
    fn wake_at(&self, shared: &Shared) -> Option<Time>;

    /// When outstanding work is cut off; `None` when nothing cuts it off.
    #[doc(hidden)]
    fn cut_off(&self, shared: &Shared) -> Option<Time>;

    /// Calls that have begun and have no result in the transcript.
    #[doc(hidden)]
    fn open_calls(&self) -> Vec<OpenCall>;
}
