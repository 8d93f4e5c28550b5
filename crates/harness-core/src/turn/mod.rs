//! The turn: one bounded assistant turn as a state machine.
//!
//! One iteration is limits → agent → view → model → output → (tools → results) → steering. The stages
//! and the rules of each are in the files of this folder: `flow` (prompt, agent, view, model), `batch`
//! and `gates` (calls through their gates to their results), `judge` (what a result means for the turn), `finish`
//! (stops and the end), `recovery` (steps that broke off), `repair` (calls left open by an earlier process).
//!
//! What an application may choose stands in [`TurnSpec`].

mod batch;
mod call_ids;
mod call_state;
mod checks;
mod closing;
mod compaction;
mod cycle;
mod finish;
mod flow;
mod gates;
mod judge;
mod layers;
mod recovery;
mod redundancy;
mod repair;
mod results;
mod resume;
mod spec;
mod stage;
mod state;
mod stopping;
mod usage;

pub(crate) use closing::Closing;
pub(crate) use flow::guidance_message;
pub use gates::{MAX_ARGUMENT_BYTES, MAX_ARGUMENT_DEPTH};
pub(crate) use resume::PriorUsage;
pub use spec::{Execution, OnToolFailure, RetryPolicy, SpecFault, TurnSpec};
pub use state::TurnState;

use stage::Stage;

use crate::json::Json;
use crate::machine::{Cx, Input, Pending, Phase, Reply, Shared};
use crate::outcome::{End, TotalUsage};
use crate::port::OpenCall;
use crate::time::Time;
use crate::tool::RetryClass;
use crate::transcript::Transcript;

/// A turn as a machine.
pub type Turn = crate::machine::Machine<TurnState>;

impl crate::machine::sealed::Sealed for TurnState {}

impl Phase for TurnState {
    type Spec = TurnSpec;

    fn step(
        &mut self,
        spec: &TurnSpec,
        cx: &mut Cx<'_>,
        pending: Option<Pending>,
        input: Input,
    ) -> Option<End> {
        match self.stage {
            Stage::Working | Stage::Reviewing(_) | Stage::Stopping { .. } => {}
            Stage::Closing(_) => return self.leave(cx, pending, input),
            Stage::Ended => return None,
        }
        match input {
            Input::Start(start) => self.start(spec, cx, *start),
            Input::Reply(_, reply) => self.reply(spec, cx, pending?, reply),
            Input::Wake => self.wake(spec, cx),
            Input::Cancel { by } => self.cancel(spec, cx, by),
            Input::PartFailed(_) | Input::Spent(_) => None,
        }
    }

    fn spend(&mut self, spent: &TotalUsage) {
        if let Stage::Closing(closing) = &mut self.stage {
            closing.spend(spent);
        } else {
            self.usage.merge(spent);
        }
    }

    fn proceed(&mut self, _: &TurnSpec, _: &mut Cx<'_>) -> Option<End> {
        None
    }

    fn save(&self, _: &Shared, _: &Transcript) -> Option<Json> {
        None
    }

    fn must_be_stored(&self, pending: Pending) -> bool {
        let Pending::Tool(at) = pending else { return false };
        let slot = self.batch.as_ref().and_then(|batch| batch.slot(at));
        slot.is_none_or(|slot| slot.class != RetryClass::Pure)
    }

    fn not_stored(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>, cut: Vec<Pending>) -> Option<End> {
        match self.stage {
            Stage::Working | Stage::Reviewing(_) | Stage::Stopping { .. } => {
                self.refuse_unstored(spec, cx, cut)
            }
            Stage::Closing(_) | Stage::Ended => None,
        }
    }

    fn wake_at(&self, _: &Shared) -> Option<Time> {
        match &self.stage {
            Stage::Working | Stage::Reviewing(_) => {
                let retry = self.batch.as_deref().and_then(call_state::Batch::wake_at);
                [retry, self.turn_deadline].into_iter().flatten().min()
            }
            Stage::Stopping { aborted, .. } => self.turn_deadline.filter(|_| !aborted),
            Stage::Closing(closing) => closing.wake_at(),
            Stage::Ended => None,
        }
    }

    fn cut_off(&self, _: &Shared) -> Option<Time> {
        match &self.stage {
            Stage::Working | Stage::Reviewing(_) | Stage::Stopping { .. } | Stage::Ended => {
                self.turn_deadline
            }
            Stage::Closing(closing) => closing.wake_at(),
        }
    }

    fn open_calls(&self) -> Vec<OpenCall> {
        self.batch.iter().flat_map(|batch| batch.begun()).collect()
    }
}

impl TurnState {
    /// Hands a reply to the stage that asked for it. A reply of the wrong kind ends the turn with
    /// `internal_invariant`: the driver broke its contract.
    fn reply(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>, pending: Pending, reply: Reply) -> Option<End> {
        if self.is_stopping() {
            return self.late(spec, cx, pending, reply);
        }
        match (pending, reply) {
            (Pending::Model, Reply::Model(result)) => self.on_model(spec, cx, result),
            (Pending::Tool(at), Reply::Tool(result)) => self.on_tool(spec, cx, at, result),
            (Pending::Begin, Reply::Noted(result)) => self.on_begun(spec, cx, result),
            (Pending::AppendPrompt, Reply::Appended(result)) => self.on_appended(spec, cx, result),
            (Pending::AppendResults, Reply::Appended(result)) => self.on_results_seen(spec, cx, result),
            (Pending::AppendSteering, Reply::Appended(result)) => self.on_steering_seen(spec, cx, result),
            (Pending::Prepare, Reply::Prepared(result)) => self.on_prepared(spec, cx, result),
            (Pending::Recall, Reply::Recalled(result)) => self.on_recalled(spec, cx, result),
            (Pending::Compact, Reply::Compacted(result)) => self.on_compacted(spec, cx, result),
            (Pending::Model, Reply::Interrupted { partial }) => {
                self.take_cut_answer(cx, partial);
                self.on_cut(spec, cx, Pending::Model)
            }
            (Pending::AfterModel, Reply::AfterModel(result)) => self.on_after_model(spec, cx, result),
            (Pending::LayerStore, Reply::Noted(result)) => self.on_stored(spec, cx, result),
            (Pending::NoteApproval, Reply::ApprovalNoted(result)) => self.on_approval_noted(spec, cx, result),
            (Pending::Drain, Reply::Drained(entries)) => self.on_drained(spec, cx, entries),
            (Pending::Arguments(at), Reply::Arguments(result)) => {
                self.on_arguments(spec, cx, at, result.map_err(|fault| *fault))
            }
            (Pending::Gate(at, gate, point), Reply::Gate(asked)) => {
                self.on_gate(spec, cx, (at, gate, point), *asked)
            }
            (Pending::Check(point, check), Reply::Check(asked)) => {
                self.on_check(spec, cx, (point, check), *asked)
            }
            (Pending::Approve(at), Reply::Approval(decision)) => self.on_decision(spec, cx, at, decision),
            (Pending::Tool(at), Reply::Interrupted { .. }) => self.on_tool_cut(spec, cx, at),
            (pending, Reply::Interrupted { .. }) => self.on_cut(spec, cx, pending),
            (pending, _) => {
                self.invariant(spec, cx, format!("a reply of the wrong kind answered {pending:?}"))
            }
        }
    }
}
