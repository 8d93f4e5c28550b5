//! The run: from accepting a prompt to the stop decision; one or more turns.
//!
//! Phases: repair → compact → turn → decide → (another turn | stopped). Each passes through unless
//! something is configured for it; at each boundary there is a checkpoint record. Everything that is not
//! the run's own goes to the turn inside it: there is one numbering, one journal, one set of budgets.

mod compaction;
mod control;
mod spec;
mod take_up;
mod usage;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use compaction::Waiting;
use control::Control;
pub use spec::{RunLimits, RunSpec, StopMode};
use take_up::Saved;
pub use take_up::{TakeUp, TakeUpError};

use crate::continuation::Continuation;
use crate::control::ControlState;
use crate::event::EventKind;
use crate::ids::{OpId, ToolName, TurnId};
use crate::limits::{Budget, Limit, Reached};
use crate::machine::{Boundary, Cx, Input, Op, Origin, Pending, Phase, Record, Reply, Shared, Start};
use crate::outcome::{End, Evidence, Stop, StopReason, TotalUsage, Waiver};
use crate::port::{Judged, Judgement, OpenCall};
use crate::time::Time;
use crate::turn::{Leaving, TurnState, guidance_message};
use crate::work::WorkLedger;

/// A run as a machine.
pub type Run = crate::machine::Machine<RunState>;

impl Run {
    /// The same run with the work items of an earlier one to begin with. Before the start.
    #[must_use]
    pub fn with_work_items(mut self, items: WorkLedger) -> Self {
        self.phase_mut().items = Some(items);
        self
    }

    /// What the control of the run knows; `None` without control, and before the start. A program that takes
    /// up a run gives its work items to the work tools.
    pub fn control(&self) -> Option<&ControlState> {
        self.phase().control.as_deref().map(Control::state)
    }
}

/// Where a run stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunPhase {
    /// Not started.
    #[default]
    Idle,
    /// Calls left open by an earlier process are settled. (Inside the turn: they may run.)
    Repair,
    /// The transcript is made shorter for good, when that is wanted.
    Compact,
    /// A turn.
    Turn,
    /// The stop gates judge.
    Decide,
    /// Over.
    Stopped,
}

/// The state of a run. Drive it as a [`Run`].
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RunState {
    phase: RunPhase,
    turn: TurnState,
    started_at: Time,
    /// What the turns before this one used.
    usage: TotalUsage,
    /// Iterations of the turns before this one.
    iterations: u32,
    /// Continuations that stop gates asked for, in a row.
    nudges: u32,
    /// Calls of the run, by tool; counted at the end of a turn when somebody is told.
    tool_usage: BTreeMap<ToolName, u64>,
    /// Whether the turn that is over gave the signal.
    signalled: bool,
    /// The end that is being judged.
    judging: Option<Arc<End>>,
    /// When the gate that is asked is cut off.
    judge_by: Option<Time>,
    waived: Vec<Waiver>,
    /// The end, while the layers take note of it.
    leaving: Option<Box<Leaving>>,
    /// The turn that waits for the compactor.
    waiting: Option<Box<Waiting>>,
    /// What the control of the run knows, when it has one.
    control: Option<Box<Control>>,
    /// Work items of an earlier run, to begin with.
    items: Option<WorkLedger>,
    /// Where the state was saved, until the run that is taken up goes on.
    taken_up: Option<Box<Saved>>,
}

impl Phase for RunState {
    type Spec = RunSpec;

    fn step(
        &mut self,
        spec: &RunSpec,
        cx: &mut Cx<'_>,
        pending: Option<Pending>,
        input: Input,
    ) -> Option<End> {
        if let Some(saved) = self.taken_up.take() {
            let Input::Start(start) = input else { return None };
            return self.go_on_taken_up(spec, cx, *saved, *start);
        }
        if let Some(leaving) = &mut self.leaving {
            if !leaving.step(cx, pending, input) {
                return None;
            }
            let end = self.leaving.take()?.into_end(cx);
            return Some(finish(cx, end));
        }
        if self.waiting.is_some() {
            return self.wait(spec, cx, pending, input);
        }
        let input = match (pending, input) {
            (None, Input::Start(start)) => return self.start(spec, cx, *start),
            (Some(Pending::StopGate(gate)), Input::Reply(_, reply)) => {
                return self.on_judged(spec, cx, gate, reply);
            }
            (Some(Pending::Facts), Input::Reply(_, reply)) => return self.on_facts(spec, cx, reply),
            (None, Input::PersistFailed { message, messages_from, unperformed })
                if self.phase == RunPhase::Decide =>
            {
                self.deciding_unstored(spec, cx, message, messages_from, &unperformed);
                return None;
            }
            (None, Input::Cancel { by }) if self.phase == RunPhase::Decide => {
                let stop = Stop::new(StopReason::Cancelled, Evidence::Cancelled { by });
                return self.cancel_judging(spec, cx, stop);
            }
            (None, Input::Wake) if self.phase == RunPhase::Decide => {
                if self.judge_by.is_some_and(|by| by <= cx.now) {
                    // Its answer, or that there is none, still comes.
                    self.judge_by = None;
                    cx.fx.push(crate::machine::Effect::AbortAll);
                }
                return None;
            }
            (_, input) => input,
        };
        let end = self.in_turn(spec, cx, |turn, cx| turn.step(&spec.turn, cx, pending, input))?;
        self.decide(spec, cx, end)
    }

    fn answer(
        &mut self,
        spec: &RunSpec,
        cx: &mut Cx<'_>,
        pending: Pending,
        id: OpId,
        reply: Reply,
    ) -> Option<End> {
        let judges = matches!(pending, Pending::StopGate(_) | Pending::Facts);
        let own = self.leaving.is_some() || self.waiting.is_some() || judges;
        if own {
            return self.step(spec, cx, Some(pending), Input::Reply(id, reply));
        }
        let end = self.in_turn(spec, cx, |turn, cx| turn.answer(&spec.turn, cx, pending, id, reply))?;
        self.decide(spec, cx, end)
    }

    fn spend(&mut self, spent: &TotalUsage) {
        if let Some(leaving) = &mut self.leaving {
            leaving.spend(spent);
        } else if self.phase == RunPhase::Turn {
            self.turn.spend(spent);
        } else {
            self.usage.merge(spent);
        }
    }

    fn reissue(&self, spec: &RunSpec, cx: &Cx<'_>, pending: Pending) -> Option<Op> {
        if let Pending::StopGate(gate) = pending {
            let standing = Arc::new(self.standing(spec, cx));
            return Some(Op::StopGate { gate, end: self.judging.clone()?, standing });
        }
        if pending == Pending::Facts {
            return self.facts_op();
        }
        if pending == Pending::Shorten {
            return Some(self.shorten_op(cx));
        }
        if let (Pending::Complete, Some(leaving)) = (pending, &self.leaving) {
            return Some(leaving.op());
        }
        self.turn.reissue(&spec.turn, cx, pending).map(|op| self.guided(cx, op))
    }

    fn wake_at(&self, shared: &Shared) -> Option<Time> {
        if let Some(leaving) = &self.leaving {
            return leaving.wake_at();
        }
        if let Some(waiting) = &self.waiting {
            return waiting.wake_at(shared.budgets.deadline());
        }
        match self.phase {
            RunPhase::Turn => self.turn.wake_at(shared),
            RunPhase::Decide => self.judge_by,
            RunPhase::Idle | RunPhase::Repair | RunPhase::Compact | RunPhase::Stopped => None,
        }
    }

    fn cut_off(&self, shared: &Shared) -> Option<Time> {
        if let Some(leaving) = &self.leaving {
            return leaving.wake_at();
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
        if let Some(settings) = &spec.control {
            self.control = Some(Box::new(Control::new(settings, self.items.take())));
            cx.sh.appended = Some(Vec::new());
        }
        self.boundary(cx, RunPhase::Repair, Boundary::Repair);
        self.begin_turn(spec, cx, start)
    }

    fn start_turn(&mut self, spec: &RunSpec, cx: &mut Cx<'_>, start: Start) -> Option<End> {
        if cx.sh.turn == 1 {
            self.boundary(cx, RunPhase::Compact, Boundary::Compact);
        }
        self.phase = RunPhase::Turn;
        self.turn = TurnState::of_run();
        name_turn(cx);
        let start = Input::Start(Box::new(start));
        let end = self.in_turn(spec, cx, |turn, cx| turn.step(&spec.turn, cx, None, start))?;
        self.decide(spec, cx, end)
    }

    fn boundary(&mut self, cx: &mut Cx<'_>, phase: RunPhase, boundary: Boundary) {
        self.phase = phase;
        let (turn, iteration) = (cx.sh.turn, cx.sh.iteration);
        cx.persist(|| Record::Boundary { phase: boundary, turn, iteration });
    }

    /// A turn is over: every stop gate must believe an end that claims to be complete.
    fn decide(&mut self, spec: &RunSpec, cx: &mut Cx<'_>, end: End) -> Option<End> {
        if let Some(settings) = &spec.control {
            return self.decide_controlled(settings, spec, cx, end);
        }
        self.phase = RunPhase::Decide;
        self.count_calls(spec, cx);
        let end = Arc::new(end);
        self.judging = Some(Arc::clone(&end));
        if end.reason() != StopReason::AnswerFinalized {
            return self.stop(cx, None);
        }
        self.ask_gate(spec, cx, 0)
    }

    fn ask_gate(&mut self, spec: &RunSpec, cx: &mut Cx<'_>, gate: u32) -> Option<End> {
        if (gate as usize) < cx.ports.stop_gates.len() {
            if let Some(op) = self.reissue(spec, cx, Pending::StopGate(gate)) {
                cx.perform(Pending::StopGate(gate), op);
            }
            self.judge_within(cx);
            return None;
        }
        let waived = self.waived.is_empty();
        self.stop(cx, (!waived).then(|| StopReason::CompletionWaived.into()))
    }

    /// Sets when the question that was just asked is cut off.
    fn judge_within(&mut self, cx: &Cx<'_>) {
        let own = cx.ports.stop_gate_timeout.map(|span| cx.now.after(span));
        self.judge_by = [own, cx.sh.budgets.deadline()].into_iter().flatten().min();
    }

    /// A record could not be stored while the end is judged: what was not asked because of it is asked again.
    fn deciding_unstored(
        &mut self,
        spec: &RunSpec,
        cx: &mut Cx<'_>,
        message: String,
        messages_from: Option<usize>,
        unperformed: &[OpId],
    ) {
        for (_, pending) in cx.unstored(message, messages_from, unperformed) {
            if let Some(op) = self.reissue(spec, cx, pending) {
                cx.perform(pending, op);
            }
        }
    }

    fn on_judged(&mut self, spec: &RunSpec, cx: &mut Cx<'_>, gate: u32, reply: Reply) -> Option<End> {
        // A gate without an answer is not a yes.
        let unanswered = "Check that the work is really complete, then answer again.";
        let Judged { judgement, hook } = if let Reply::Judged(judged) = reply {
            judged
        } else {
            Judgement::Continue { guidance: unanswered.to_owned() }.into()
        };
        if let Some(note) = hook {
            cx.event(|| EventKind::from(*note));
        }
        let name = cx.ports.stop_gates.get(gate as usize).cloned().unwrap_or_else(|| "stop-gate".into());
        let reason = match &judgement {
            Judgement::Accept => None,
            Judgement::Waive { why: text } | Judgement::Continue { guidance: text } => Some(text.clone()),
        };
        let (gate_name, told) = (name.clone(), judgement.kind().to_owned());
        cx.event(|| EventKind::StopJudged { gate: gate_name, judgement: told, reason });
        if spec.control.is_some() {
            return self.on_controlled_judgement(spec, cx, (gate, name), judgement);
        }
        match (judgement, spec.mode) {
            (Judgement::Accept, _) => self.ask_gate(spec, cx, gate + 1),
            (Judgement::Waive { why }, StopMode::Interactive) => {
                self.waived.push(Waiver::new(name, why));
                self.ask_gate(spec, cx, gate + 1)
            }
            (Judgement::Continue { guidance }, StopMode::Interactive) if self.nudges >= spec.nudges => {
                self.waived.push(Waiver::new(name, guidance));
                self.ask_gate(spec, cx, gate + 1)
            }
            (Judgement::Waive { why: guidance } | Judgement::Continue { guidance }, _) => {
                self.another_turn(spec, cx, guidance)
            }
        }
    }

    fn another_turn(&mut self, spec: &RunSpec, cx: &mut Cx<'_>, guidance: String) -> Option<End> {
        let judged = self.judging.take()?;
        let turns = cx.sh.turn;
        if turns >= spec.limits.turns {
            self.judging = Some(judged);
            let reached = Reached::new(Limit::Turns, u64::from(turns), u64::from(spec.limits.turns));
            let reason = StopReason::MaxTurnsReached;
            cx.event(|| EventKind::LimitReached { reason, reached: Some(reached) });
            return self.stop(cx, Some(Stop::new(reason, Evidence::Limit(reached))));
        }
        self.nudges += 1;
        self.waived.clear();
        self.usage.merge(&judged.usage);
        self.iterations = self.iterations.saturating_add(judged.iterations);
        self.boundary(cx, RunPhase::Decide, Boundary::Decide);
        cx.sh.turn += 1;
        cx.sh.iteration = 0;
        let start = Start {
            prompt: vec![guidance_message(guidance)],
            agent: judged.agent.clone(),
            ..Start::default()
        };
        self.begin_turn(spec, cx, start)
    }

    fn cancel_judging(&mut self, spec: &RunSpec, cx: &mut Cx<'_>, stop: Stop) -> Option<End> {
        if spec.control.is_some() {
            return self.cancel_controlled(spec, cx, stop);
        }
        cx.sh.pending.clear();
        cx.fx.push(crate::machine::Effect::AbortAll);
        self.stop(cx, Some(stop))
    }

    /// The end of the run: that of its last turn, with the run's totals, unless the run itself stops it.
    fn stop(&mut self, cx: &mut Cx<'_>, stop: Option<Stop>) -> Option<End> {
        self.phase = RunPhase::Stopped;
        let judged = self.judging.take();
        let mut end = match judged {
            Some(end) => Arc::unwrap_or_clone(end),
            None => return Some(unreachable_end(cx)),
        };
        self.usage.merge(&end.usage);
        end.usage = std::mem::take(&mut self.usage);
        end.iterations = end.iterations.saturating_add(self.iterations);
        end.turns = cx.sh.turn;
        end.elapsed = cx.now.since(self.started_at);
        if let Some(stop) = stop {
            end.continuation = Continuation::of(cx, &stop, end.agent.clone(), &end.usage).map(Box::new);
            end.stop = stop;
        }
        // A waiver counts only when the end was accepted with it: not when the judging was cut short.
        let waived = std::mem::take(&mut self.waived);
        if end.reason() == StopReason::CompletionWaived {
            end.waived = waived;
        }
        if cx.ports.layers.is_some() {
            let standing = self.turn.standing(cx);
            self.leaving = Some(Leaving::begin(cx, end, standing));
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

/// What a run ends with when it stops without a turn; only a broken snapshot leads here.
fn unreachable_end(cx: &Cx<'_>) -> End {
    End {
        stop: StopReason::InternalInvariant.into(),
        answer: None,
        agent: None,
        iterations: cx.sh.iteration,
        refused_iteration: None,
        turns: cx.sh.turn,
        usage: TotalUsage::default(),
        elapsed: crate::time::Millis(0),
        continuation: None,
        waived: Vec::new(),
        persist_failed: None,
        resumed: false,
        control: None,
    }
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
