//! The difference between a turn and a run.

use std::sync::Arc;

use super::{AgentProgress, Cx, Input, Pending, Shared};
use crate::json::Json;
use crate::outcome::{End, TotalUsage};
use crate::port::OpenCall;
use crate::time::Time;
use crate::transcript::Transcript;

/// The part of a machine that differs between turn and run. Users drive machines, they do not write them: the types of its
/// methods are private.
#[expect(private_interfaces, reason = "seals the trait")]
pub trait Phase: Default + Send + 'static {
    /// The settings of the phase.
    type Spec: Send + Sync;

    /// Takes an input; `pending` names the operation of a reply.
    #[doc(hidden)]
    fn step(
        &mut self,
        spec: &Self::Spec,
        cx: &mut Cx<'_>,
        pending: Option<Pending>,
        input: Input,
    ) -> Option<End>;

    /// Counts usage of models by ports; the budgets are charged already.
    #[doc(hidden)]
    fn spend(&mut self, spent: &TotalUsage);

    /// Continues after a rest ([`Cx::rest`]).
    #[doc(hidden)]
    fn proceed(&mut self, _spec: &Self::Spec, _cx: &mut Cx<'_>) -> Option<End> {
        None
    }

    /// The state at a rest; `None` when it cannot be resumed.
    #[doc(hidden)]
    fn save(&self, _shared: &Shared, _log: &Transcript) -> Option<Json> {
        None
    }

    /// Answers for operations that must not start because their records could not be stored.
    #[doc(hidden)]
    fn not_stored(&mut self, spec: &Self::Spec, cx: &mut Cx<'_>, cut: Vec<Pending>) -> Option<End>;

    #[doc(hidden)]
    fn wake_at(&self, shared: &Shared) -> Option<Time>;

    #[doc(hidden)]
    fn cut_off(&self, shared: &Shared) -> Option<Time>;

    #[doc(hidden)]
    fn open_calls(&self) -> Vec<OpenCall>;

    /// The agent and the progress, for layers.
    #[doc(hidden)]
    fn standing(&self, cx: &Cx<'_>) -> AgentProgress;

    /// Stores and emits the end, which is final.
    #[doc(hidden)]
    fn ended(&self, cx: &mut Cx<'_>, end: &Arc<End>);
}
