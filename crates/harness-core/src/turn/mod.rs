//! The turn: one bounded assistant turn as a state machine.
//!
//! One iteration is limits → agent → view → model → output → (tools → results) → steering. A turn is always in one
//! stage, and each stage is a file:
//!
//! ```text
//! opening → draining → viewing → asking → reviewing → draining → closing
//!               ↑                             ↓
//!               └────────────────────────  calling
//! ```
//!
//! A handler of a stage returns a step: the turn waits, enters another stage, or stops. This file dispatches
//! inputs, and handles a cancellation, the deadline and failed stores before any stage does. Only `closing` aborts,
//! answers open calls and makes the end.
//!
//! What an application may choose is in [`TurnSpec`].

mod asking;
mod call_ids;
mod calling;
mod checks;
mod closing;
mod draining;
mod loops;
mod opening;
mod repair;
mod reviewing;
mod spec;
mod stage;
mod state;
mod viewing;

pub use calling::{MAX_ARGUMENT_BYTES, MAX_ARGUMENT_DEPTH};
pub(crate) use repair::PriorUsage;
pub use spec::{Execution, OnToolFailure, RetryPolicy, SpecFault, TurnSpec};
pub(crate) use state::guidance_message;

use std::ops::ControlFlow;
use std::sync::Arc;

use closing::Closing;
use draining::{Draining, Then};
use opening::Opening;
use stage::{Next, Stage, Step};
use state::{TurnCx, TurnData};

use crate::event::EventKind;
use crate::json::Json;
use crate::machine::{AgentProgress, Cx, Input, Pending, Phase, Shared};
use crate::outcome::{End, Evidence, Stop, StopReason, TotalUsage};
use crate::port::OpenCall;
use crate::time::Time;
use crate::transcript::Transcript;

/// A turn as a machine.
pub type Turn = crate::machine::Machine<TurnState>;

/// The state of a turn. Drive it as a [`Turn`].
#[derive(Debug, Default)]
pub struct TurnState {
    data: TurnData,
    stage: Stage,
}

#[expect(private_interfaces, reason = "the trait is sealed")]
impl Phase for TurnState {
    type Spec = TurnSpec;

    fn step(
        &mut self,
        spec: &TurnSpec,
        cx: &mut Cx<'_>,
        pending: Option<Pending>,
        input: Input,
    ) -> Option<End> {
        let (stage, mut turn) = self.parts(spec, cx);
        let step = match (stage, input) {
            (Stage::Ended, _) => return None,
            (Stage::Closing(closing), input) => {
                let end = closing.step(&mut turn, pending, input);
                return self.finish(end);
            }
            (Stage::Opening(opening), Input::Start(start)) => opening.start(&mut turn, *start),
            (stage, Input::Reply(_, reply)) => stage.reply(&mut turn, pending?, reply),
            (_, Input::Cancel { by }) => {
                let stop = Stop::new(StopReason::Cancelled, Evidence::Cancelled { by });
                return self.close(spec, cx, stop, true);
            }
            (stage, Input::Wake) => {
                if let Some(reached) = turn.overdue() {
                    let reason = StopReason::TimeoutReached;
                    turn.cx.event(|| EventKind::LimitReached { reason, reached: Some(reached) });
                    return self.close(spec, cx, Stop::new(reason, Evidence::Limit(reached)), true);
                }
                let Stage::Calling(batch) = stage else { return None };
                batch.wake(&mut turn)
            }
            (_, Input::Start(_) | Input::PartFailed(_) | Input::Spent(_)) => return None,
        };
        self.follow(spec, cx, step)
    }

    fn spend(&mut self, spent: &TotalUsage) {
        self.data.usage.merge(spent);
    }

    fn not_stored(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>, cut: Vec<Pending>) -> Option<End> {
        match self.parts(spec, cx) {
            (Stage::Calling(batch), mut turn) => {
                let step = batch.refuse_unstored(&mut turn, cut);
                self.follow(spec, cx, step)
            }
            (Stage::Closing(closing), mut turn) => {
                let end = closing.refuse_unstored(&mut turn, cut);
                self.finish(end)
            }
            _ => None,
        }
    }

    fn wake_at(&self, _: &Shared) -> Option<Time> {
        if let Stage::Closing(closing) = &self.stage {
            return closing.wake_at(self.data.deadline);
        }
        let retry = if let Stage::Calling(batch) = &self.stage { batch.wake_at() } else { None };
        let deadline = self.data.deadline.filter(|_| !matches!(self.stage, Stage::Ended));
        [retry, deadline].into_iter().flatten().min()
    }

    fn cut_off(&self, _: &Shared) -> Option<Time> {
        self.data.deadline
    }

    fn open_calls(&self) -> Vec<OpenCall> {
        let batch = self.stage.batch();
        batch.map_or_else(|| self.data.left_open.clone(), |batch| batch.started().collect())
    }

    fn standing(&self, cx: &Cx<'_>) -> AgentProgress {
        self.data.standing(cx)
    }

    fn ended(&self, cx: &mut Cx<'_>, end: &Arc<End>) {
        cx.event(|| EventKind::TurnFinished { end: Arc::clone(end) });
    }
}

impl TurnState {
    /// A turn of a run that an earlier process started.
    pub(crate) fn resumed(prior: PriorUsage) -> Self {
        Self { stage: Stage::Opening(Box::new(Opening::resumed(prior))), ..Self::default() }
    }

    /// The state while the turn waits for its queue and for nothing else; `None` at any other time.
    pub(crate) fn save(&self) -> Option<Json> {
        let Stage::Draining(draining) = &self.stage else { return None };
        Json::of(&(&self.data, draining.only_queue()?)).ok()
    }

    /// The turn of a saved state, over the transcript that it had. It continues with [`TurnState::take_up`].
    pub(crate) fn restored(saved: &Json, log: &Transcript) -> Result<Self, serde_json::Error> {
        let (mut data, then): (TurnData, Then) = saved.to()?;
        data.loops.restore(log);
        Ok(Self { data, stage: Stage::Draining(Draining::new(then)) })
    }

    /// Asks for the queue once more: the reply to the first request went to another process.
    pub(crate) fn take_up(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>) -> Option<End> {
        let (stage, mut turn) = self.parts(spec, cx);
        let step = stage.enter(&mut turn);
        self.follow(spec, cx, step)
    }

    /// The length of the transcript at its start.
    pub(crate) fn began(&self) -> usize {
        self.data.began
    }

    fn parts<'a>(&'a mut self, spec: &'a TurnSpec, cx: &'a mut Cx<'_>) -> (&'a mut Stage, TurnCx<'a>) {
        (&mut self.stage, TurnCx { spec, data: &mut self.data, cx: cx.reborrow() })
    }

    /// Follows a handler into the next stages, until one waits.
    fn follow(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>, mut step: Step) -> Option<End> {
        let (stage, mut turn) = self.parts(spec, cx);
        while let ControlFlow::Continue(Next::Enter(next)) = step {
            *stage = next;
            step = stage.enter(&mut turn);
        }
        let reason = step.break_value()?;
        self.close(spec, cx, *reason, false)
    }

    /// Stops the turn, and aborts the operations in flight if `aborts`.
    fn close(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>, stop: Stop, aborts: bool) -> Option<End> {
        let left = std::mem::replace(&mut self.stage, Stage::Ended);
        let mut closing = Box::new(Closing::new(stop, left));
        let end = closing.start(&mut self.parts(spec, cx).1, aborts);
        self.stage = Stage::Closing(closing);
        self.finish(end)
    }

    fn finish(&mut self, end: Option<End>) -> Option<End> {
        if end.is_some() {
            self.stage = Stage::Ended;
        }
        end
    }
}
