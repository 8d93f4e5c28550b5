//! State machines without I/O: what the turn and the run share.
//!
//! A machine is plain data and one function, [`Machine::advance`]: it takes an input with the time at
//! which it arrived and gives effects, in order, for a driver to perform. It never waits, reads no
//! clock and no randomness, so equal inputs give equal effects, and feeding the inputs again rebuilds
//! the state exactly.
//!
//! The rules between a machine and its driver:
//!
//! - effects are performed in order. What must be stored first is held back: a machine gives what follows an
//!   [`Op::Store`] when that is answered, and alone knows what is stored and what to try again;
//! - each [`Effect::Perform`] is answered by exactly one [`Input::Reply`]; late and repeated replies
//!   are ignored;
//! - timers are no effects: the driver sends [`Input::Wake`] when [`Machine::wake_at`] has come;
//! - after [`Effect::Done`] every input is ignored.

pub(crate) mod compaction;
mod completion;
mod continuation;
mod cx;
mod decided;
mod effect;
mod input;
mod outbox;
mod phase;
mod set;
mod view;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub(crate) use completion::Completion;
pub use continuation::{CallDecision, Resume, ResumeError};
pub use cx::Cx;
pub(crate) use cx::Mark;
pub use effect::{Effect, Effects, Op, Record, Standing};
pub use input::{Input, Reply, Start};
pub use phase::Phase;
pub(crate) use phase::sealed;
pub use set::PortSet;
pub use view::ViewState;

use outbox::{Barrier, Held, Outbox};

use crate::decide::Point;
use crate::event::EventKind;
use crate::ids::OpId;
use crate::limits::{Amount, Budgets, HeldGrants};
use crate::origin::Origin;
use crate::outcome::{End, Purpose, TotalUsage};
use crate::port::{Compaction, CompactionNote, OpenCall};
use crate::time::Time;
use crate::transcript::{Plan, Transcript, View};

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
    #[serde(skip)]
    pub(crate) pending: Vec<(OpId, Pending)>,
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

/// What an outstanding operation is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    LayerStore,
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

/// A turn or a run, as a machine.
#[derive(Debug)]
pub struct Machine<P: Phase> {
    spec: Arc<P::Spec>,
    ports: PortSet,
    shared: Shared,
    phase: P,
    log: Transcript,
    outbox: Outbox,
    /// Whether the phase has ended; the end itself may wait until it is stored.
    over: bool,
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
            persist_failed: None,
            started: false,
            len: log.len(),
            at: Time(0),
            view: ViewState::default(),
            compactions: 0,
            compacting: TotalUsage::default(),
            appended: None,
        };
        let outbox = Outbox::stored(log.len());
        let (ports, phase) = (PortSet::default(), P::default());
        Self { spec, ports, shared, phase, log, outbox, over: false, end: None }
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

    /// Its driver has a session: what it does is stored.
    #[cfg(feature = "testing")]
    pub(crate) fn set_session(&mut self) {
        self.ports.session = true;
    }

    /// The same machine with a store for the state of runs.
    #[must_use]
    pub fn with_checkpoints(mut self) -> Self {
        self.ports.checkpoints = true;
        self
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
        self.outbox.set_messages(stored.min(self.log.len()));
        self
    }

    /// Messages at the beginning of the transcript that are in the session, as far as is known.
    pub fn stored(&self) -> usize {
        self.outbox.messages()
    }

    /// Whether all that this machine gave to its session is stored: what it read from elsewhere may be forgotten there.
    pub fn is_settled(&self) -> bool {
        self.outbox.is_settled()
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
        let (_, _, mut cx) = self.parts(now, fx);
        if idle && done.usage != TotalUsage::default() {
            let usage = Box::new(done.usage.as_one());
            cx.event(|| EventKind::ModelUsageCharged { purpose: Purpose::Compaction, usage });
        }
        let note = if idle { compaction::take_permanent(&mut cx, done, since) } else { None };
        self.release(now, fx);
        note
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
        if self.over || starts == self.shared.started {
            return;
        }
        self.shared.started = true;
        self.shared.at = now;
        let (spec, phase, mut cx) = self.parts(now, fx);
        let end = match input {
            Input::PartFailed(fault) => {
                cx.event(|| EventKind::PartFailed { fault });
                None
            }
            Input::Spent(spent) => {
                cx.spend(&spent);
                phase.spend(&spent);
                None
            }
            input @ (Input::Start(_) | Input::Reply(..) | Input::Wake | Input::Cancel { .. }) => {
                if starts && cx.ports.session && !cx.is_all_stored() {
                    let from = cx.stored();
                    cx.record_messages(from);
                }
                phase.step(spec, &mut cx, None, input)
            }
        };
        self.finish(end, now, fx);
    }

    /// Takes the reply to an operation, like [`Machine::advance`] with [`Input::Reply`].
    pub(crate) fn answer(&mut self, id: OpId, reply: Reply, now: Time, fx: &mut Effects) {
        if let Some(barrier) = self.outbox.answered(id) {
            let end = self.pass(barrier, reply, now, fx);
            return self.finish(end, now, fx);
        }
        if self.over {
            return;
        }
        // Mostly there is one.
        let Some(at) = self.shared.pending.iter().position(|(pending, _)| *pending == id) else { return };
        let (_, pending) = self.shared.pending.swap_remove(at);
        let (spec, phase, mut cx) = self.parts(now, fx);
        let end = phase.step(spec, &mut cx, Some(pending), Input::Reply(id, reply));
        self.finish(end, now, fx);
    }

    fn parts<'a>(&'a mut self, now: Time, fx: &'a mut Effects) -> (&'a P::Spec, &'a mut P, Cx<'a>) {
        let Self { spec, ports, shared: sh, phase, log, outbox, .. } = self;
        (spec, phase, Cx { now, sh, log, fx, outbox, ports })
    }

    /// Takes the end of the phase, when it has come, and lets out what waits for nothing any more.
    fn finish(&mut self, end: Option<End>, now: Time, fx: &mut Effects) {
        self.hold_end(end);
        self.release(now, fx);
    }

    fn hold_end(&mut self, end: Option<End>) {
        if let Some(end) = end {
            self.over = true;
            self.outbox.hold(Held::Effect(Effect::Done(Arc::new(end))));
        }
    }

    fn release(&mut self, now: Time, fx: &mut Effects) {
        while !self.outbox.is_waiting() {
            match self.outbox.next() {
                None => return,
                Some(Held::Effect(Effect::Done(end))) => self.release_end(end, fx),
                Some(Held::Effect(effect)) => fx.push(effect),
                Some(Held::Record(record)) => self.store(Some(record), fx),
                Some(Held::Rest { saved: false }) => self.save(fx),
                Some(Held::Rest { saved: true }) => {
                    let (spec, phase, mut cx) = self.parts(now, fx);
                    let end = phase.proceed(spec, &mut cx);
                    self.hold_end(end);
                }
            }
        }
    }

    /// What could not be stored is tried once more before the end. An end whose session does not hold all that happened
    /// says why.
    fn release_end(&mut self, end: Arc<End>, fx: &mut Effects) {
        if self.outbox.owes() && !self.outbox.was_last_try() {
            self.outbox.put_first(Held::Effect(Effect::Done(end)));
            self.outbox.try_last();
            return self.store(None, fx);
        }
        let end = match self.outbox.failure() {
            Some(why) => Arc::new(End { persist_failed: Some(why.clone()), ..Arc::unwrap_or_clone(end) }),
            None => end,
        };
        self.end = Some(Arc::clone(&end));
        fx.push(Effect::Done(end));
    }

    fn store(&mut self, first: Option<Record>, fx: &mut Effects) {
        let records = self.outbox.collect(first);
        let op = Op::Store { records: records.clone() };
        self.perform(Barrier::Store(records), op, fx);
    }

    /// Saves the state of a phase at rest.
    fn save(&mut self, fx: &mut Effects) {
        self.outbox.put_first(Held::Rest { saved: true });
        if let Some(state) = self.phase.save(&self.shared, &self.log) {
            let (messages, state) = (self.log.len() as u64, Arc::new(state));
            self.perform(Barrier::Save, Op::Save { messages, state }, fx);
        }
    }

    fn perform(&mut self, barrier: Barrier, op: Op, fx: &mut Effects) {
        let id = OpId(self.shared.next_op);
        self.shared.next_op += 1;
        self.outbox.wait_for(id, barrier);
        fx.push(Effect::Perform(id, op));
    }

    /// Takes what a store or a save answered.
    fn pass(&mut self, barrier: Barrier, reply: Reply, now: Time, fx: &mut Effects) -> Option<End> {
        let records = match barrier {
            Barrier::Store(records) => records,
            Barrier::Save => {
                let (_, _, mut cx) = self.parts(now, fx);
                if let Reply::Saved(result) = reply {
                    cx.tolerate(result);
                }
                return None;
            }
        };
        let stored = if let Reply::Stored(stored) = reply {
            stored
        } else {
            Err("the session gave no answer".to_owned())
        };
        let Err(why) = stored else {
            self.outbox.are_stored(&records);
            return None;
        };
        self.outbox.are_refused(records, why.clone());
        if self.over { None } else { self.unstored(why, now, fx) }
    }

    /// A store failed: the work goes on in memory, but for what must not begin unstored.
    fn unstored(&mut self, why: String, now: Time, fx: &mut Effects) -> Option<End> {
        let Self { outbox, shared, phase, .. } = self;
        shared.persist_failed = Some(why.clone());
        let pending = &mut shared.pending;
        let unperformed = outbox.take_unstored(|id| {
            pending.iter().any(|(pending, what)| *pending == id && phase.must_be_stored(*what))
        });
        let cut = pending.extract_if(.., |(id, _)| unperformed.contains(id)).map(|(_, what)| what).collect();
        let (spec, phase, mut cx) = self.parts(now, fx);
        cx.event(|| EventKind::PersistFailed { message: why });
        phase.not_stored(spec, &mut cx, cut)
    }

    /// When the driver must send [`Input::Wake`], if nothing else came before.
    pub fn wake_at(&self) -> Option<Time> {
        let runs = self.shared.started && !self.over;
        if runs { self.phase.wake_at(&self.shared) } else { None }
    }

    pub(crate) fn phase(&self) -> &P {
        &self.phase
    }

    /// What a machine that goes on from a saved state still has to be told.
    pub(crate) fn state_mut(&mut self) -> (&mut P, &mut Shared) {
        (&mut self.phase, &mut self.shared)
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
