//! What differs between a turn and a run.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Cx, Input, Op, Pending, Reply, Shared};
use crate::ids::OpId;
use crate::outcome::{End, TotalUsage};
use crate::port::OpenCall;
use crate::time::Time;

mod sealed {
    /// Closes [`super::Phase`].
    #[expect(unnameable_types, reason = "a seal is meant to be unnameable")]
    pub trait Sealed {}
    impl Sealed for crate::turn::TurnState {}
    impl Sealed for crate::run::RunState {}
}

/// The part of a machine that differs between turn and run. Sealed: users drive machines, they do not
/// write them.
pub trait Phase: sealed::Sealed + Serialize + DeserializeOwned + Default + Send + 'static {
    /// What configures it.
    type Spec: Send + Sync;

    /// Takes an input; one that is no reply, unless the work at hand is over.
    #[doc(hidden)]
    fn step(
        &mut self,
        spec: &Self::Spec,
        cx: &mut Cx<'_>,
        pending: Option<Pending>,
        input: Input,
    ) -> Option<End>;

    /// Takes the reply to an operation.
    #[doc(hidden)]
    fn answer(
        &mut self,
        spec: &Self::Spec,
        cx: &mut Cx<'_>,
        pending: Pending,
        id: OpId,
        reply: Reply,
    ) -> Option<End>;

    /// Counts what parts have spent on models; the budgets are charged already.
    #[doc(hidden)]
    fn spend(&mut self, spent: &TotalUsage);

    #[doc(hidden)]
    fn reissue(&self, spec: &Self::Spec, cx: &Cx<'_>, pending: Pending) -> Option<Op>;

    #[doc(hidden)]
    fn wake_at(&self, shared: &Shared) -> Option<Time>;

    /// When outstanding work is cut off; `None` when nothing cuts it off.
    #[doc(hidden)]
    fn cut_off(&self, shared: &Shared) -> Option<Time>;

    /// Calls that have begun and have no result in the transcript.
    #[doc(hidden)]
    fn open_calls(&self) -> Vec<OpenCall>;

    /// Takes what is no data from one that was made anew, and is itself what was stored.
    ///
    /// # Errors
    /// When the control of a run cannot read what was stored.
    #[doc(hidden)]
    fn take_over(&mut self, fresh: Self) -> Result<(), serde_json::Error>;
}
