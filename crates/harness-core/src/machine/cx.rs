//! What a phase works with while it takes a step.

use std::sync::Arc;

use super::outbox::{Held, Outbox};
use super::{Appended, Effect, Effects, Op, Pending, PortSet, Record, Shared, ViewState};
use crate::event::{Event, EventKind};
use crate::ids::OpId;
use crate::limits::Grant;
use crate::message::Message;
use crate::outcome::{Fault, Purpose, TotalUsage};
use crate::time::Time;
use crate::transcript::{Plan, Transcript, View};

/// What a phase works with while it takes a step.
#[derive(Debug)]
pub struct Cx<'a> {
    pub(crate) now: Time,
    pub(crate) sh: &'a mut Shared,
    pub(crate) log: &'a mut Transcript,
    pub(super) fx: &'a mut Effects,
    pub(super) outbox: &'a mut Outbox,
    pub(crate) ports: &'a PortSet,
}

/// A place among the effects of a machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    out: usize,
    held: usize,
}

impl Cx<'_> {
    /// The same, for a part of the step.
    pub(crate) fn reborrow(&mut self) -> Cx<'_> {
        let Self { now, sh, log, fx, outbox, ports } = self;
        Cx { now: *now, sh, log, fx, outbox, ports }
    }

    /// Emits an event. With events switched off it is numbered and not built.
    pub(crate) fn event(&mut self, kind: impl FnOnce() -> EventKind) {
        let seq = self.number();
        if self.fx.events {
            self.emit_event(seq, kind());
        }
    }

    /// Emits an event about the message at a position of the transcript.
    pub(crate) fn event_about(&mut self, at: usize, kind: impl FnOnce(&Arc<Message>) -> EventKind) {
        let seq = self.number();
        if self.fx.events
            && let Some(message) = self.log.get(at)
        {
            let kind = kind(message);
            self.emit_event(seq, kind);
        }
    }

    fn emit_event(&mut self, seq: u64, kind: EventKind) {
        let origin = Arc::clone(&self.sh.origin);
        let (turn, iteration) = (self.sh.turn, self.sh.iteration);
        self.emit(Effect::Event(Event { seq, at: self.now, origin, turn, iteration, kind }));
    }

    /// Gives an effect to the driver, or has it wait for what is to be stored before it.
    pub(crate) fn emit(&mut self, effect: Effect) {
        if self.outbox.is_open() {
            self.fx.push(effect);
        } else {
            self.outbox.hold(Held::Effect(effect));
        }
    }

    /// Where the next effect comes to stand.
    pub(crate) fn mark(&self) -> Mark {
        Mark { out: self.fx.as_slice().len(), held: self.outbox.len() }
    }

    /// The effects since a mark.
    pub(crate) fn since(&mut self, mark: Mark) -> impl Iterator<Item = &mut Effect> {
        let out = self.fx.as_mut_slice().iter_mut().skip(mark.out);
        out.chain(self.outbox.held_from(mark.held))
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
        self.emit(Effect::Perform(id, op));
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

    /// Messages were pushed: they are stored, and told after that.
    fn store_from(&mut self, from: usize) {
        let to = self.log.len();
        self.sh.len = to;
        self.record_messages(from);
        if let Some(appended) = &mut self.sh.appended {
            appended.push(Appended { from, event: self.sh.next_seq });
        }
    }

    /// Has the messages from a position on stored.
    pub(super) fn record_messages(&mut self, from: usize) {
        let messages = self.log.range(from..self.log.len());
        if self.ports.session {
            let record = Record::Messages { from, messages: messages.cloned().collect() };
            self.outbox.hold(Held::Record(record));
        } else {
            self.outbox.set_messages(self.log.len());
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
        self.sh.len = to;
        self.outbox.set_messages(to);
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
        self.sh.len = log.len();
        if !self.ports.session {
            self.outbox.set_messages(log.len());
        }
        self.sh.view = ViewState::default();
        self.log.replace(log);
    }

    /// Has something stored, when there is a session. What follows waits for it.
    pub(crate) fn persist(&mut self, record: impl FnOnce() -> Record) {
        if self.ports.session {
            self.outbox.hold(Held::Record(record()));
        }
    }

    /// The phase is at rest: nothing is outstanding, and it continues ([`super::Phase::proceed`]) when all that it gave is
    /// stored and its state is saved.
    pub(crate) fn rest(&mut self) {
        self.outbox.hold(Held::Rest { saved: !self.ports.checkpoints || self.sh.origin.run.is_none() });
    }

    /// Messages at the beginning of the transcript that are stored.
    pub(super) fn stored(&self) -> usize {
        self.outbox.messages()
    }

    /// Whether all of the transcript is stored, or need not be.
    pub(crate) fn is_all_stored(&self) -> bool {
        self.outbox.messages() == self.log.len() && !self.outbox.owes()
    }

    /// The result of a part that the work can do without; its fault is told.
    pub(crate) fn tolerate<T>(&mut self, result: Result<T, Fault>) -> Option<T> {
        result.map_err(|fault| self.event(|| EventKind::PartFailed { fault })).ok()
    }

    /// Charges what parts have spent on models, and tells it.
    pub(super) fn spend(&mut self, spent: &TotalUsage) {
        for (purpose, used) in &spent.by_purpose {
            self.sh.budgets.settle(Grant::default(), used.amount());
            if *purpose == Purpose::Compaction {
                self.sh.compacting.add(*purpose, used);
            }
            let usage = used.clone();
            self.event(|| EventKind::ModelUsageCharged { purpose: *purpose, usage });
        }
    }

    /// Whether anything is outstanding.
    pub(crate) fn idle(&self) -> bool {
        self.sh.pending.is_empty()
    }
}
