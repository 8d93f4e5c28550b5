//! The run: from accepting a prompt to the stop decision; one or more turns.
//!
//! Stages: between → turn → deciding → (between | ended). Before a turn the run rests: everything is stored, and its state
//! is saved. Whatever is not the run's own goes to the turn inside it: there is one numbering, one outbox, one set of
//! budgets.

mod compaction;
mod control;
mod deciding;
mod plain;
mod resume;
mod spec;

use std::collections::BTreeMap;
use std::sync::Arc;

use compaction::Waiting;
use control::Guidance;
use deciding::Judging;
pub use plain::PlainControl;
use resume::SavePoint;
pub use resume::{RunResume, SNAPSHOT_VERSION};
pub use spec::{RunLimits, RunSpec};

use crate::decide::Point;
use crate::event::EventKind;
use crate::ids::{ToolName, TurnId};
use crate::json::Json;
use crate::limits::Budget;
use crate::machine::{AgentProgress, Cx, Input, Pending, Phase, Record, Shared, Start};
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
    /// Replaces the [`PlainControl`] of a run that has not started.
    #[must_use]
    pub fn with_control(mut self, control: Box<dyn Control>) -> Self {
        self.state_mut().0.control = control;
        self
    }

    /// The control that decides whether the run continues.
    pub fn control(&self) -> &dyn Control {
        &*self.phase().control
    }

    /// The state of a run that waits for its queue of messages ([`Op::Drain`](crate::machine::Op::Drain)), when nothing else
    /// is in flight and everything is stored; `None` at any other time. Another process continues from it
    /// ([`RunResume`]) as if it were this one: with the same events, budgets and deadlines. This process must not continue.
    pub fn hand_over(&self) -> Option<Json> {
        let (state, shared) = self.alone_with(Pending::Drain)?;
        state.to_json(shared, self.log())
    }

    /// Messages that were stored after the checkpoint of a resumed run: its control sees them when the run continues.
    /// Empty for other runs.
    pub fn since_saved(&self) -> impl Iterator<Item = &Arc<Message>> {
        let from = self.phase().resumed_from.map_or(self.log().len(), |saved| saved.messages);
        self.log().range(from..self.log().len())
    }
}

/// The stage of a run.
#[derive(Debug, Default)]
enum RunStage {
    /// Not started.
    #[default]
    Idle,
    /// A turn starts next. The run rests, or the compactor shortens the transcript.
    Between(Box<Waiting>),
    /// A turn runs.
    Turn,
    /// The end of a turn is judged.
    Deciding(Box<Judging>),
    Ended,
}

/// The state of a run. Drive it as a [`Run`].
#[derive(Debug, Default)]
pub struct RunState {
    stage: RunStage,
    /// The turn that runs, or ran last.
    turn: TurnState,
    started_at: Time,
    /// Usage of the turns before this one.
    usage: TotalUsage,
    /// Iterations of the turns before this one.
    iterations: u32,
    /// Calls of the run by tool, counted at the end of a turn when a check needs them.
    tool_calls: BTreeMap<ToolName, u64>,
    /// Decides whether the run continues.
    control: Box<dyn Control>,
    /// The guidance of the latest request.
    guidance: Option<Guidance>,
    /// Set until a resumed run continues.
    resumed_from: Option<SavePoint>,
}

#[expect(private_interfaces, reason = "the trait is sealed")]
impl Phase for RunState {
    type Spec = RunSpec;

    fn step(
        &mut self,
        spec: &RunSpec,
        cx: &mut Cx<'_>,
        pending: Option<Pending>,
        input: Input,
    ) -> Option<End> {
        match (&mut self.stage, pending, input) {
            (_, _, Input::Start(start)) => match self.resumed_from.take() {
                Some(saved) => self.resume(spec, cx, saved, *start),
                None if matches!(self.stage, RunStage::Turn) => self.take_up(spec, cx),
                None => self.start(spec, cx, *start),
            },
            (RunStage::Between(_), pending, input) => self.wait(spec, cx, pending, input),
            (RunStage::Deciding(_), Some(Pending::Check(Point::End, check)), Input::Reply(_, reply)) => {
                self.on_check(spec, cx, check, reply)
            }
            (RunStage::Deciding(_), Some(Pending::Facts), Input::Reply(_, reply)) => {
                self.on_facts(spec, cx, reply)
            }
            (RunStage::Deciding(_), _, Input::Cancel { by }) => {
                let stop = Stop::new(StopReason::Cancelled, Evidence::Cancelled { by });
                self.cancel_judging(spec, cx, stop)
            }
            (RunStage::Deciding(judging), _, Input::Wake) => {
                judging.cut_off(cx);
                None
            }
            (RunStage::Turn, pending, input) => {
                let end = self.turn.step(&spec.turn, cx, pending, input);
                self.follow_turn(spec, cx, end)
            }
            (RunStage::Idle | RunStage::Deciding(_) | RunStage::Ended, ..) => None,
        }
    }

    fn spend(&mut self, spent: &TotalUsage) {
        if let RunStage::Turn = self.stage {
            self.turn.spend(spent);
        } else {
            self.usage.merge(spent);
        }
    }

    fn proceed(&mut self, spec: &RunSpec, cx: &mut Cx<'_>) -> Option<End> {
        self.compact_or_start(spec, cx)
    }

    fn save(&self, shared: &Shared, log: &Transcript) -> Option<Json> {
        self.to_json(shared, log)
    }

    fn not_stored(&mut self, spec: &RunSpec, cx: &mut Cx<'_>, cut: Vec<Pending>) -> Option<End> {
        let RunStage::Turn = self.stage else { return None };
        let end = self.turn.not_stored(&spec.turn, cx, cut);
        self.follow_turn(spec, cx, end)
    }

    fn wake_at(&self, shared: &Shared) -> Option<Time> {
        match &self.stage {
            RunStage::Between(waiting) => waiting.wake_at(shared.budgets.deadline()),
            RunStage::Turn => self.turn.wake_at(shared),
            RunStage::Deciding(judging) => judging.by,
            RunStage::Idle | RunStage::Ended => None,
        }
    }

    fn cut_off(&self, shared: &Shared) -> Option<Time> {
        if let RunStage::Between(_) = self.stage {
            shared.budgets.deadline()
        } else {
            self.turn.cut_off(shared)
        }
    }

    fn open_calls(&self) -> Vec<OpenCall> {
        self.turn.open_calls()
    }

    fn standing(&self, cx: &Cx<'_>) -> AgentProgress {
        self.turn.standing(cx)
    }

    fn ended(&self, cx: &mut Cx<'_>, end: &Arc<End>) {
        cx.persist(Record::RunEnd(Arc::clone(end)));
        cx.event(|| EventKind::RunFinished { end: Arc::clone(end) });
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
        self.rest_before(cx, start);
        None
    }

    fn start_turn(&mut self, spec: &RunSpec, cx: &mut Cx<'_>, turn: TurnState, start: Start) -> Option<End> {
        (self.stage, self.turn) = (RunStage::Turn, turn);
        name_turn(cx);
        let end = self.turn.step(&spec.turn, cx, None, Input::Start(Box::new(start)));
        self.follow_turn(spec, cx, end)
    }

    /// Follows a step of the turn: puts guidance behind its request, or judges its end.
    fn follow_turn(&mut self, spec: &RunSpec, cx: &mut Cx<'_>, end: Option<End>) -> Option<End> {
        self.guide(spec, cx);
        self.decide(spec, cx, end?)
    }

    /// The end of the run: that of its last turn, with the run's totals, unless the control stops it otherwise.
    fn stop(&mut self, cx: &mut Cx<'_>, judged: Arc<End>, next: RunStop) -> End {
        self.stage = RunStage::Ended;
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
                cx.event(|| EventKind::LimitReached { reason: stop.reason, reached: Some(reached) });
            }
            end.continuation = Continuation::of(cx, &stop, end.agent.clone(), &end.usage).map(Box::new);
            end.stop = stop;
        }
        // A waiver counts only when the end was accepted with it: not when the judging was cut short.
        if end.reason() == StopReason::CompletionWaived {
            end.waived = waived;
        }
        end
    }
}

/// Gives each turn of a run its own id: `RUN.N`, unless the caller named the first one.
fn name_turn(cx: &mut Cx<'_>) {
    let origin = &cx.sh.origin;
    if cx.sh.turn == 1 && origin.turn.is_some() {
        return;
    }
    let run = origin.run.as_ref().map_or("run", |id| id.as_str());
    let turn = TurnId::from(format!("{run}.{}", cx.sh.turn));
    cx.sh.origin = Arc::new(Origin { turn: Some(turn), ..Origin::clone(origin) });
}
