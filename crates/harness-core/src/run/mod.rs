//! The run: from accepting a prompt to the stop decision; one or more turns.
//!
//! Phases: between → turn → decide → (between | stopped). Before a turn begins the run is at rest: all that was is
//! stored, and its state is saved. Everything that is not the run's own goes to the turn inside it: there is one
//! numbering, one outbox, one set of budgets.

mod compaction;
mod deciding;
mod guiding;
mod plain;
mod progress;
mod resume;
mod slot;
mod snapshot;
mod spec;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use compaction::Waiting;
use deciding::Judging;
use guiding::Guidance;
pub use plain::PlainControl;
use resume::SavePoint;
pub use resume::{RunResume, RunResumeError};
use slot::ControlSlot;
pub use snapshot::{RestoreError, SNAPSHOT_VERSION};
pub use spec::{RunLimits, RunSpec};

use crate::decide::Point;
use crate::event::EventKind;
use crate::ids::{ToolName, TurnId};
use crate::json::Json;
use crate::limits::Budget;
use crate::machine::{Completion, Cx, Input, Pending, Phase, Record, Shared, Start};
use crate::message::Message;
use crate::origin::Origin;
use crate::outcome::{Continuation, End, Evidence, Stop, StopReason, TotalUsage};
use crate::port::{Control, OpenCall, RunStop};
use crate::time::Time;
use crate::transcript::Transcript;
use crate::turn::TurnState;

/// A run as a machine.
pub type Run = crate::machine::Machine<RunState>;

impl Run {
    /// The same run under another control than [`PlainControl`]. Before the start.
    #[must_use]
    pub fn with_control(mut self, control: Box<dyn Control>) -> Self {
        self.phase_mut().control = ControlSlot::new(control);
        self
    }

    /// What decides whether the run goes on.
    pub fn control(&self) -> &dyn Control {
        self.phase().control.get()
    }

    /// Messages that were stored after the state was saved which the run is taken up with: its control sees them when
    /// the run goes on. None for other runs.
    pub fn since_saved(&self) -> impl Iterator<Item = &Arc<Message>> {
        let from = self.phase().resumed_from.as_ref().map_or(self.log().len(), |saved| saved.messages);
        self.log().range(from..self.log().len())
    }
}

/// Where a run stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum RunPhase {
    /// Not started.
    #[default]
    Idle,
    /// A turn begins next. The run is at rest, or the transcript is made shorter for good, when that is wanted.
    Between,
    /// A turn. Calls left open by an earlier process are settled in it: they may run.
    Turn,
    /// The end of a turn is judged.
    Decide,
    /// Over.
    Stopped,
}

/// The state of a run. Drive it as a [`Run`].
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RunState {
    #[serde(skip)]
    phase: RunPhase,
    #[serde(skip)]
    turn: TurnState,
    started_at: Time,
    /// What the turns before this one used.
    usage: TotalUsage,
    /// Iterations of the turns before this one.
    iterations: u32,
    /// Calls of the run, by tool; counted at the end of a turn when somebody is told.
    tool_calls: BTreeMap<ToolName, u64>,
    /// The end that is being judged.
    #[serde(skip)]
    judging: Option<Box<Judging>>,
    /// The end, while the layers take note of it.
    #[serde(skip)]
    completion: Option<Box<Completion>>,
    /// The turn that waits for the compactor.
    waiting: Option<Box<Waiting>>,
    /// What decides whether the run goes on.
    control: ControlSlot,
    /// What the control told the model with the latest request.
    #[serde(skip)]
    guidance: Option<Guidance>,
    /// Where the state was saved, until the run that is taken up goes on.
    #[serde(skip)]
    resumed_from: Option<Box<SavePoint>>,
}

impl crate::machine::sealed::Sealed for RunState {}

impl Phase for RunState {
    type Spec = RunSpec;

    fn step(
        &mut self,
        spec: &RunSpec,
        cx: &mut Cx<'_>,
        pending: Option<Pending>,
        input: Input,
    ) -> Option<End> {
        if let Some(saved) = self.resumed_from.take() {
            let Input::Start(start) = input else { return None };
            return self.continue_resumed(spec, cx, *saved, *start);
        }
        if let Some(completion) = &mut self.completion {
            return completion.step(cx, pending, input).map(|end| finish(cx, end));
        }
        if self.waiting.is_some() {
            return self.wait(spec, cx, pending, input);
        }
        let input = match (pending, input) {
            (None, Input::Start(start)) => return self.start(spec, cx, *start),
            (Some(Pending::Check(Point::End, check)), Input::Reply(_, reply)) => {
                return self.on_check(spec, cx, check, reply);
            }
            (Some(Pending::Facts), Input::Reply(_, reply)) => return self.on_facts(spec, cx, reply),
            (None, Input::Cancel { by }) if self.phase == RunPhase::Decide => {
                let stop = Stop::new(StopReason::Cancelled, Evidence::Cancelled { by });
                return self.cancel_judging(spec, cx, stop);
            }
            (None, Input::Wake) if self.phase == RunPhase::Decide => {
                self.cut_judging_off(cx);
                return None;
            }
            (_, input) => input,
        };
        let end = self.in_turn(spec, cx, |turn, cx| turn.step(&spec.turn, cx, pending, input))?;
        self.decide(spec, cx, end)
    }

    fn spend(&mut self, spent: &TotalUsage) {
        if let Some(completion) = &mut self.completion {
            completion.spend(spent);
        } else if self.phase == RunPhase::Turn {
            self.turn.spend(spent);
        } else {
            self.usage.merge(spent);
        }
    }

    fn proceed(&mut self, spec: &RunSpec, cx: &mut Cx<'_>) -> Option<End> {
        self.shorten_or_go_on(spec, cx)
    }

    fn save(&self, shared: &Shared, log: &Transcript) -> Option<Json> {
        self.to_json(shared, log)
    }

    fn must_be_stored(&self, pending: Pending) -> bool {
        self.turn.must_be_stored(pending)
    }

    fn not_stored(&mut self, spec: &RunSpec, cx: &mut Cx<'_>, cut: Vec<Pending>) -> Option<End> {
        if self.phase != RunPhase::Turn {
            return None;
        }
        let end = self.in_turn(spec, cx, |turn, cx| turn.not_stored(&spec.turn, cx, cut))?;
        self.decide(spec, cx, end)
    }

    fn wake_at(&self, shared: &Shared) -> Option<Time> {
        if let Some(completion) = &self.completion {
            return completion.wake_at();
        }
        if let Some(waiting) = &self.waiting {
            return waiting.wake_at(shared.budgets.deadline());
        }
        match self.phase {
            RunPhase::Turn => self.turn.wake_at(shared),
            RunPhase::Decide => self.judging.as_ref().and_then(|judging| judging.by),
            RunPhase::Idle | RunPhase::Between | RunPhase::Stopped => None,
        }
    }

    fn cut_off(&self, shared: &Shared) -> Option<Time> {
        if let Some(completion) = &self.completion {
            return completion.wake_at();
        }
        if self.waiting.is_some() {
            return shared.budgets.deadline();
        }
        self.turn.cut_off(shared)
    }

    fn open_calls(&self) -> Vec<OpenCall> {
        self.turn.open_calls()
    }
}

impl RunState {
    fn start(&mut self, spec: &RunSpec, cx: &mut Cx<'_>, start: Start) -> Option<End> {
        self.started_at = cx.now;
        let deadline = spec.limits.elapsed.map(|span| cx.now.after(span));
        cx.sh.budgets.push(Budget::new(spec.limits.amount, deadline));
        let descriptor_hash = cx.sh.origin.descriptor_hash.clone();
        cx.event(|| EventKind::RunStarted { descriptor_hash });
        cx.sh.appended = Some(Vec::new());
        self.begin_turn(cx, start)
    }

    fn start_turn(&mut self, spec: &RunSpec, cx: &mut Cx<'_>, start: Start) -> Option<End> {
        self.phase = RunPhase::Turn;
        self.turn = TurnState::of_run();
        name_turn(cx);
        let start = Input::Start(Box::new(start));
        let end = self.in_turn(spec, cx, |turn, cx| turn.step(&spec.turn, cx, None, start))?;
        self.decide(spec, cx, end)
    }

    /// The end of the run: that of its last turn, with the run's totals, unless the control stops it otherwise.
    fn stop(&mut self, cx: &mut Cx<'_>, judged: Arc<End>, next: RunStop) -> Option<End> {
        self.phase = RunPhase::Stopped;
        let RunStop { stop, answer, waived, report } = next;
        let mut end = Arc::unwrap_or_clone(judged);
        self.usage.merge(&end.usage);
        end.usage = std::mem::take(&mut self.usage);
        end.iterations = end.iterations.saturating_add(self.iterations);
        end.turns = cx.sh.turn;
        end.elapsed = cx.now.since(self.started_at);
        end.answer = answer.or(end.answer);
        end.control = report;
        if let Some(stop) = stop {
            if let Evidence::Limit(reached) = stop.evidence {
                let reason = stop.reason;
                cx.event(|| EventKind::LimitReached { reason, reached: Some(reached) });
            }
            end.continuation = Continuation::of(cx, &stop, end.agent.clone(), &end.usage).map(Box::new);
            end.stop = stop;
        }
        // A waiver counts only when the end was accepted with it: not when the judging was cut short.
        if end.reason() == StopReason::CompletionWaived {
            end.waived = waived;
        }
        if cx.ports.layers.is_some() {
            let standing = self.turn.standing(cx);
            self.completion = Some(Box::new(Completion::start(cx, end, standing)));
            return None;
        }
        Some(finish(cx, end))
    }
}

/// Stores and tells the end of a run.
fn finish(cx: &mut Cx<'_>, end: End) -> End {
    let told = Arc::new(end.clone());
    cx.persist(|| Record::RunEnd(Arc::clone(&told)));
    cx.event(|| EventKind::RunFinished { end: told });
    end
}

/// Each turn of a run has an id of its own: `RUN.N`, unless the caller named the first one.
fn name_turn(cx: &mut Cx<'_>) {
    let origin = &cx.sh.origin;
    if cx.sh.turn == 1 && origin.turn.is_some() {
        return;
    }
    let run = origin.run.as_ref().map_or("run", |id| id.as_str());
    let turn = TurnId::from(format!("{run}.{}", cx.sh.turn));
    cx.sh.origin = Arc::new(Origin { turn: Some(turn), ..Origin::clone(origin) });
}
