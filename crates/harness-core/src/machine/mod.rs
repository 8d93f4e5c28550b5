//! State machines without I/O: what the turn and the run share.
//!
//! A machine is plain data and one function, [`Machine::advance`]: it takes an input with the time at
//! which it arrived and gives effects, in order, for a driver to perform. It never waits, reads no
//! clock and no randomness, so equal inputs give equal effects, and feeding the inputs again rebuilds
//! the state exactly.
//!
//! The rules between a machine and its driver:
//!
//! - effects are performed in order; a [`Effect::Persist`] is a barrier: it is done before any later
//!   effect of the list;
//! - each [`Effect::Perform`] is answered by exactly one [`Input::Reply`]; late and repeated replies
//!   are ignored;
//! - timers are no effects: the driver sends [`Input::Wake`] when [`Machine::wake_at`] has come;
//! - after [`Effect::Done`] every input is ignored.

mod decided;
mod effect;
mod input;
mod parent;
mod phase;
mod set;
mod snapshot;
mod view;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use effect::{Boundary, Effect, Effects, Op, Record, Standing};
pub use input::{Input, InterruptedCall, Reply, Start};
pub use parent::ParentCall;
pub use phase::Phase;
pub use set::PortSet;
pub use snapshot::{RestoreError, SNAPSHOT_VERSION, Snapshot};
pub use view::ViewState;

use crate::decide::Point;
use crate::event::{Event, EventKind};
use crate::ids::{OpId, RunId, SessionId, ThreadId, ToolName, TurnId};
use crate::json::Json;
use crate::limits::{Amount, Budgets, Grant, HeldGrants};
use crate::message::Message;
use crate::outcome::{End, Fault, Purpose, TotalUsage};
use crate::port::{Compaction, CompactionNote, OpenCall};
use crate::time::Time;
use crate::transcript::{Plan, Transcript, View};

/// Whose work it is: the ids that events, tools and sessions carry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Origin {
    /// The caller's name for the assistant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assistant: Option<Arc<str>>,
    /// The conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<ThreadId>,
    /// The run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// The stored session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The caller's workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Arc<str>>,
    /// The caller's user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<Arc<str>>,
    /// The caller's own data, copied into events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
    /// The tools that this work may use at most; `None` is all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_tools: Option<Arc<[ToolName]>>,
    /// The descriptor that the agents come from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub descriptor_hash: Option<Arc<str>>,
    /// The call that has begun this work; `None` for work that a user asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<Arc<ParentCall>>,
}

/// What all phases of a machine share: numbering, budgets, outstanding operations.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Shared {
    pub(crate) origin: Arc<Origin>,
    pub(crate) next_op: u64,
    pub(crate) next_seq: u64,
    pub(crate) turn: u32,
    pub(crate) iteration: u32,
    pub(crate) budgets: Budgets,
    /// What work has that outlives its call.
    #[serde(default)]
    pub(crate) held: HeldGrants,
    pub(crate) pending: Vec<(OpId, Pending)>,
    /// Messages of the transcript that are known to be stored.
    pub(crate) persisted: usize,
    pub(crate) persist_failed: Option<String>,
    pub(crate) started: bool,
    pub(crate) len: usize,
    /// The time of the last input.
    #[serde(default)]
    pub(crate) at: Time,
    #[serde(default)]
    pub(crate) view: ViewState,
    /// How often the view or the transcript was made shorter.
    #[serde(default)]
    pub(crate) compactions: u64,
    /// What the compaction at work has spent so far, for its event.
    #[serde(default, skip_serializing_if = "is_unused")]
    pub(crate) compacting: TotalUsage,
    /// Where the messages lie that were appended since somebody who folds them looked; `None` when nobody does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) appended: Option<Vec<Appended>>,
}

/// Messages that were appended at once: the position of the first, and the event that told it. Those behind
/// it follow in both.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Appended {
    pub(crate) from: usize,
    pub(crate) event: u64,
}

fn is_unused(usage: &TotalUsage) -> bool {
    *usage == TotalUsage::default()
}

/// What an outstanding operation is for: a small reference into the state, from which the operation can
/// be built again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Pending {
    /// The agent.
    Prepare,
    /// Layers hear that the execution begins.
    Begin,
    /// Layers see the prompt.
    AppendPrompt,
    /// Layers see results of the batch.
    AppendResults,
    /// Layers see messages that come in between.
    AppendSteering,
    /// Layers give the view.
    Recall,
    /// The compactor makes it shorter.
    Compact,
    /// The model.
    Model,
    /// Layers see the answer.
    AfterModel,
    /// Layers learn from the answer.
    Store,
    /// Layers hear that the execution is over.
    Complete,
    /// The arguments of a call of the batch.
    Arguments(u32),
    /// A gate, for a call of the batch: the call, the gate, and about what it is asked.
    Gate(u32, u32, Point),
    /// A check, about what is at that point. Of the end of a turn the run asks, of anything else the turn.
    Check(Point, u32),
    /// The approver, for a call of the batch.
    Approve(u32),
    /// A call of the batch.
    Tool(u32),
    /// The approver takes note of the model's own request.
    NoteApproval,
    /// Steering.
    Drain,
    /// What lies outside of the run and its stop decision rests on.
    Facts,
    /// The compactor, about the transcript itself.
    Shorten,
}

/// What a phase works with while it takes a step.
#[derive(Debug)]
pub struct Cx<'a> {
    pub(crate) now: Time,
    pub(crate) sh: &'a mut Shared,
    pub(crate) log: &'a mut Transcript,
    pub(crate) fx: &'a mut Effects,
    pub(crate) ports: &'a PortSet,
}

impl Cx<'_> {
    /// Emits an event. With events switched off it is numbered and not built.
    pub(crate) fn event(&mut self, kind: impl FnOnce() -> EventKind) {
        let seq = self.number();
        if self.fx.events {
            self.emit(seq, kind());
        }
    }

    /// Emits an event about the message at a position of the transcript.
    pub(crate) fn event_about(&mut self, at: usize, kind: impl FnOnce(&Arc<Message>) -> EventKind) {
        let seq = self.number();
        if self.fx.events
            && let Some(message) = self.log.get(at)
        {
            let kind = kind(message);
            self.emit(seq, kind);
        }
    }

    fn emit(&mut self, seq: u64, kind: EventKind) {
        let origin = Arc::clone(&self.sh.origin);
        let (turn, iteration) = (self.sh.turn, self.sh.iteration);
        self.fx.push(Effect::Event(Event { seq, at: self.now, origin, turn, iteration, kind }));
    }

    fn number(&mut self) -> u64 {
        let seq = self.sh.next_seq;
        self.sh.next_seq += 1;
        seq
    }

    /// Asks the driver for an operation.
    pub(crate) fn perform(&mut self, pending: Pending, op: Op) {
        let id = OpId(self.sh.next_op);
        self.sh.next_op += 1;
        self.sh.pending.push((id, pending));
        self.fx.push(Effect::Perform(id, op));
    }

    /// Appends a message; gives its position.
    pub(crate) fn append_one(&mut self, message: Arc<Message>) -> usize {
        let at = self.log.len();
        self.log.push(message);
        self.store_from(at);
        self.emit_appended(at);
        at
    }

    /// Appends messages.
    pub(crate) fn append(&mut self, messages: impl IntoIterator<Item = Arc<Message>>) {
        let from = self.log.len();
        for message in messages {
            self.log.push(message);
        }
        let to = self.log.len();
        if from < to {
            self.store_from(from);
            (from..to).for_each(|at| self.emit_appended(at));
        }
    }

    /// Messages were pushed: they are journaled, and told after that.
    fn store_from(&mut self, from: usize) {
        let to = self.log.len();
        self.sh.len = to;
        // A range that could not be stored before is part of the next one: nothing is left out.
        let unstored = self.sh.persisted..to;
        self.sh.persisted = to;
        self.persist(|| Record::Messages(unstored));
        if let Some(appended) = &mut self.sh.appended {
            appended.push(Appended { from, event: self.sh.next_seq });
        }
    }

    /// Tells that a message is in the transcript.
    fn emit_appended(&mut self, at: usize) {
        self.event_about(at, |message| EventKind::MessageAppended {
            index: at as u64,
            message: Arc::clone(message),
        });
    }

    /// Messages of the transcript, from a position on, that were stored before the machine was made from a saved
    /// state: they are taken as if they were appended now.
    pub(crate) fn append_stored(&mut self, from: usize) {
        let to = self.log.len();
        (self.sh.len, self.sh.persisted) = (to, to);
        if let Some(appended) = self.sh.appended.as_mut().filter(|_| from < to) {
            appended.push(Appended { from, event: self.sh.next_seq });
        }
        (from..to).for_each(|at| self.emit_appended(at));
    }

    /// Makes the transcript itself what `plan` shows of it: positions begin anew, and nothing is in force any
    /// more. What was stored before stays stored.
    pub(crate) fn shorten(&mut self, plan: &Plan) {
        let mut log = Transcript::default();
        View::planned(self.log.prefix(), plan.clone()).for_each(|message| log.push(Arc::clone(message)));
        (self.sh.len, self.sh.persisted) = (log.len(), log.len());
        self.sh.view = ViewState::default();
        self.log.replace(log);
    }

    /// Has something journaled.
    pub(crate) fn persist(&mut self, record: impl FnOnce() -> Record) {
        if self.fx.journal {
            self.fx.push(Effect::Persist(record()));
        }
    }

    /// A record could not be stored: that is told, and what it held is part of the next one. Takes out what
    /// was not begun because of it.
    pub(crate) fn unstored(
        &mut self,
        message: String,
        messages_from: Option<usize>,
        unperformed: &[OpId],
    ) -> Vec<(OpId, Pending)> {
        if let Some(from) = messages_from {
            self.sh.persisted = self.sh.persisted.min(from);
        }
        self.event(|| EventKind::PersistFailed { message: message.clone() });
        self.sh.persist_failed = Some(message);
        let pending = std::mem::take(&mut self.sh.pending);
        let (failed, kept) = pending.into_iter().partition(|(id, _)| unperformed.contains(id));
        self.sh.pending = kept;
        failed
    }

    /// The result of a part that the work can do without; its fault is told.
    pub(crate) fn tolerate<T>(&mut self, result: Result<T, Fault>) -> Option<T> {
        result.map_err(|fault| self.event(|| EventKind::PartFailed { fault })).ok()
    }

    /// Charges what parts have spent on models, and tells it.
    fn spend(&mut self, spent: &TotalUsage) {
        for (purpose, used) in &spent.by_purpose {
            self.sh.budgets.settle(Grant::default(), used.amount());
            if *purpose == Purpose::Compaction {
                self.sh.compacting.add(*purpose, used);
            }
            let usage = Box::new(used.clone());
            self.event(|| EventKind::ModelUsageCharged { purpose: *purpose, usage });
        }
    }

    /// Whether anything is outstanding.
    pub(crate) fn idle(&self) -> bool {
        self.sh.pending.is_empty()
    }
}

/// A turn or a run, as a machine.
#[derive(Debug)]
pub struct Machine<P: Phase> {
    spec: Arc<P::Spec>,
    ports: PortSet,
    shared: Shared,
    phase: P,
    log: Transcript,
    end: Option<Arc<End>>,
}

impl<P: Phase> Machine<P> {
    /// A machine that has not started, over a transcript that may hold earlier work. One that breaks the
    /// pairing of calls and results is repaired first ([`crate::transcript::repair`]).
    pub fn new(spec: Arc<P::Spec>, origin: Origin, log: Transcript) -> Self {
        let (log, defects) = log.repaired();
        for defect in &defects {
            tracing::warn!(%defect, message = defect.at, "the transcript was repaired");
        }
        let shared = Shared {
            origin: Arc::new(origin),
            next_op: 0,
            next_seq: 0,
            turn: 1,
            iteration: 0,
            budgets: Budgets::default(),
            held: HeldGrants::default(),
            pending: Vec::new(),
            persisted: log.len(),
            persist_failed: None,
            started: false,
            len: log.len(),
            at: Time(0),
            view: ViewState::default(),
            compactions: 0,
            compacting: TotalUsage::default(),
            appended: None,
        };
        Self { spec, ports: PortSet::default(), shared, phase: P::default(), log, end: None }
    }

    /// The same machine with the ports that its driver has. Default none but those that every driver has.
    #[must_use]
    pub fn with_ports(mut self, ports: PortSet) -> Self {
        self.ports = ports;
        self
    }

    /// Its driver has these ports.
    pub(crate) fn set_ports(&mut self, ports: PortSet) {
        self.ports = ports;
    }

    /// The same machine over a transcript of which an earlier compaction is in force.
    #[must_use]
    pub fn with_view(mut self, view: ViewState) -> Self {
        self.shared.view = view;
        self
    }

    /// The same machine over a transcript of which only the first `stored` messages are in the session: the
    /// rest is stored with what it stores first.
    #[must_use]
    pub fn with_stored(mut self, stored: usize) -> Self {
        self.shared.persisted = stored.min(self.log.len());
        self
    }

    /// Messages at the beginning of the transcript that are in the session, as far as is known.
    pub fn stored(&self) -> usize {
        self.shared.persisted
    }

    /// Its driver knows better what is stored.
    pub(crate) fn set_stored(&mut self, stored: usize) {
        self.shared.persisted = stored;
    }

    /// Takes a compaction of the transcript itself while the machine is not at work: before its start or
    /// after its end. What was done; `None` when the compaction made no plan, or one that is refused.
    pub fn shorten(
        &mut self,
        done: Compaction,
        since: Time,
        now: Time,
        fx: &mut Effects,
    ) -> Option<Arc<CompactionNote>> {
        let idle = !self.shared.started || self.end.is_some();
        let mut cx = Cx { now, sh: &mut self.shared, log: &mut self.log, fx, ports: &self.ports };
        if idle && done.usage != TotalUsage::default() {
            let usage = Box::new(done.usage.as_one());
            cx.event(|| EventKind::ModelUsageCharged { purpose: Purpose::Compaction, usage });
        }
        if idle { crate::turn::take_permanent(&mut cx, done, since) } else { None }
    }

    /// What of the view outlives this machine: give it to the next one with [`Machine::with_view`].
    pub fn view_state(&self) -> &ViewState {
        &self.shared.view
    }

    /// Takes one input and adds the effects of it to `fx`.
    ///
    /// Total: an input that does not fit (an unknown operation, a repeated reply, anything before the
    /// start or after the end) changes nothing.
    pub fn advance(&mut self, input: Input, now: Time, fx: &mut Effects) {
        if let Input::Reply(id, reply) = input {
            return self.answer(id, reply, now, fx);
        }
        let starts = matches!(input, Input::Start(_));
        if self.end.is_some() || starts == self.shared.started {
            return;
        }
        self.shared.started = true;
        self.shared.at = now;
        let mut cx = Cx { now, sh: &mut self.shared, log: &mut self.log, fx, ports: &self.ports };
        let end = match input {
            Input::PartFailed(fault) => {
                cx.event(|| EventKind::PartFailed { fault });
                None
            }
            Input::Spent(spent) => {
                cx.spend(&spent);
                self.phase.spend(&spent);
                None
            }
            input @ (Input::Start(_)
            | Input::Reply(..)
            | Input::Wake
            | Input::Cancel { .. }
            | Input::PersistFailed { .. }) => self.phase.step(&self.spec, &mut cx, None, input),
        };
        if let Some(end) = end {
            self.finish(end, fx);
        }
    }

    /// Takes the reply to an operation, like [`Machine::advance`] with [`Input::Reply`].
    pub(crate) fn answer(&mut self, id: OpId, reply: Reply, now: Time, fx: &mut Effects) {
        if self.end.is_some() {
            return;
        }
        // Mostly there is one.
        let Some(at) = self.shared.pending.iter().position(|(pending, _)| *pending == id) else { return };
        let (_, pending) = self.shared.pending.swap_remove(at);
        let mut cx = Cx { now, sh: &mut self.shared, log: &mut self.log, fx, ports: &self.ports };
        let end = self.phase.answer(&self.spec, &mut cx, pending, id, reply);
        if let Some(end) = end {
            self.finish(end, fx);
        }
    }

    fn finish(&mut self, end: End, fx: &mut Effects) {
        let end = Arc::new(end);
        fx.push(Effect::Done(Arc::clone(&end)));
        self.end = Some(end);
    }

    /// When the driver must send [`Input::Wake`], if nothing else came before.
    pub fn wake_at(&self) -> Option<Time> {
        let runs = self.shared.started && self.end.is_none();
        if runs { self.phase.wake_at(&self.shared) } else { None }
    }

    pub(crate) fn phase(&self) -> &P {
        &self.phase
    }

    pub(crate) fn phase_mut(&mut self) -> &mut P {
        &mut self.phase
    }

    /// The transcript.
    pub fn log(&self) -> &Transcript {
        &self.log
    }

    /// Calls that have begun and have no result in the transcript: what a session would show as open. Whoever
    /// goes on without a session passes them to [`Start::with_open_calls`].
    pub fn open_calls(&self) -> Vec<OpenCall> {
        self.phase.open_calls()
    }

    /// Takes the transcript out of a machine that is not needed any more.
    pub fn into_log(self) -> Transcript {
        self.log
    }

    /// The view that `plan` gives of the transcript.
    pub fn view(&self, plan: Option<Plan>) -> View {
        let prefix = self.log.prefix();
        match plan {
            Some(plan) => View::planned(prefix, plan),
            None => View::whole(prefix),
        }
    }

    /// Whose work it is.
    pub fn origin(&self) -> &Arc<Origin> {
        &self.shared.origin
    }

    /// The turn of the run, from 1.
    pub fn turn(&self) -> u32 {
        self.shared.turn
    }

    /// When outstanding work is cut off; `None` when nothing cuts it off.
    pub fn cut_off(&self) -> Option<Time> {
        self.phase.cut_off(&self.shared)
    }

    /// What is left of the budgets.
    pub(crate) fn left(&self) -> Amount {
        self.shared.budgets.left()
    }

    /// The end, once there is one.
    pub fn end(&self) -> Option<&Arc<End>> {
        self.end.as_ref()
    }
}
