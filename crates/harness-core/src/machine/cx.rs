//! The state that phases share, and the context of a step.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::outbox::{Held, Outbox};
use super::{Effect, Op, Pending, PortSet, Record};
use crate::event::{Event, EventKind};
use crate::ids::OpId;
use crate::limits::{Budgets, Grant, HeldGrants};
use crate::message::Message;
use crate::origin::Origin;
use crate::outcome::{Fault, Purpose, TotalUsage};
use crate::port::Measured;
use crate::time::Time;
use crate::transcript::{Plan, Transcript, View};

/// The state that all phases of a machine share: numbering, budgets, operations in flight.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Shared {
    pub(crate) origin: Arc<Origin>,
    next_op: u64,
    next_seq: u64,
    pub(crate) turn: u32,
    pub(crate) iteration: u32,
    pub(crate) budgets: Budgets,
    /// Grants of work that outlives its call.
    #[serde(default)]
    pub(crate) held: HeldGrants,
    #[serde(skip)]
    pub(crate) pending: Vec<(OpId, Pending)>,
    /// The request that a step of a turn makes, until the machine performs it.
    #[serde(skip)]
    pub(crate) request: Option<Op>,
    pub(crate) persist_failed: Option<String>,
    pub(crate) started: bool,
    /// Messages of the transcript.
    pub(crate) len: usize,
    /// The time of the last input.
    #[serde(default)]
    pub(crate) at: Time,
    #[serde(default)]
    pub(crate) view: ViewState,
    /// Compactions so far, of the view and of the transcript.
    #[serde(default)]
    pub(crate) compactions: u64,
    /// Usage of the compaction in progress, for its event.
    #[serde(default, skip_serializing_if = "is_unused")]
    pub(crate) compacting: TotalUsage,
    /// Messages that were appended since the control of a run looked; `None` without a control.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) appended: Option<Vec<Appended>>,
}

/// Messages that were appended together: the position of the first, and the number of its event. Those behind it follow
/// in both.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Appended {
    pub(crate) from: usize,
    pub(crate) event: u64,
}

fn is_unused(usage: &TotalUsage) -> bool {
    *usage == TotalUsage::default()
}

/// The part of the view that outlives a request, a turn and a run: the plan that a compaction left in force, and the
/// last count of a provider.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ViewState {
    /// The plan that views follow until a compaction replaces it; `None` shows the whole transcript.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// The last request that a provider counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<Box<Measured>>,
}

impl Shared {
    pub(super) fn new(origin: Origin, len: usize) -> Self {
        Self { origin: Arc::new(origin), turn: 1, len, ..Self::default() }
    }

    pub(super) fn next_op(&mut self) -> OpId {
        self.next_op += 1;
        OpId(self.next_op - 1)
    }
}

/// The context of a step of a phase.
#[derive(Debug)]
pub(crate) struct Cx<'a> {
    pub(crate) now: Time,
    pub(crate) sh: &'a mut Shared,
    pub(crate) log: &'a mut Transcript,
    pub(super) fx: &'a mut Vec<Effect>,
    pub(super) outbox: &'a mut Outbox,
    pub(crate) ports: &'a PortSet,
}

impl Cx<'_> {
    pub(crate) fn reborrow(&mut self) -> Cx<'_> {
        let Self { now, sh, log, fx, outbox, ports } = self;
        Cx { now: *now, sh, log, fx, outbox, ports }
    }

    /// Emits an event. Without listeners it is numbered, and not made.
    pub(crate) fn event(&mut self, kind: impl FnOnce() -> EventKind) {
        let Shared { next_seq, turn, iteration, origin, .. } = &mut *self.sh;
        let seq = *next_seq;
        *next_seq += 1;
        if self.ports.listeners {
            let (turn, iteration, origin) = (*turn, *iteration, Arc::clone(origin));
            self.emit(Effect::Event(Event { seq, at: self.now, origin, turn, iteration, kind: kind() }));
        }
    }

    /// Gives an effect to the driver, or holds it back until the records before it are stored.
    #[expect(
        clippy::inline_always,
        reason = "an effect is made where it is put, not made and then copied twice"
    )]
    #[inline(always)]
    pub(crate) fn emit(&mut self, effect: Effect) {
        if self.outbox.is_open() {
            self.fx.push(effect);
        } else {
            self.outbox.held.push_back(Held::Effect(effect));
        }
    }

    pub(crate) fn perform(&mut self, pending: Pending, op: Op) {
        let id = self.sh.next_op();
        self.sh.pending.push((id, pending));
        self.emit(Effect::Perform(id, op));
    }

    pub(crate) fn append_one(&mut self, message: Arc<Message>) {
        self.append([message]);
    }

    /// Appends messages, which are emitted once they are stored.
    pub(crate) fn append(&mut self, messages: impl IntoIterator<Item = Arc<Message>>) {
        let from = self.log.len();
        for message in messages {
            self.log.push(message);
        }
        if from < self.log.len() {
            self.record_messages(from);
            self.emit_appended(from);
        }
    }

    /// Stores the messages from a position on.
    pub(super) fn record_messages(&mut self, from: usize) {
        if self.ports.session {
            let messages = self.log.range(from..self.log.len()).cloned().collect();
            self.persist(Record::Messages { from, messages });
        } else {
            self.outbox.stored = self.log.len();
        }
    }

    /// Emits the messages from a position on.
    fn emit_appended(&mut self, from: usize) {
        self.sh.len = self.log.len();
        if let Some(appended) = &mut self.sh.appended {
            appended.push(Appended { from, event: self.sh.next_seq });
        }
        if !self.ports.listeners {
            self.sh.next_seq += (self.log.len() - from) as u64;
            return;
        }
        for at in from..self.log.len() {
            if let Some(message) = self.log.get(at).cloned() {
                self.event(|| EventKind::MessageAppended { index: at as u64, message });
            }
        }
    }

    /// Emits messages that were stored after the state was saved which the machine resumes, as if they were appended now.
    pub(crate) fn append_stored(&mut self, from: usize) {
        self.outbox.stored = self.log.len();
        if from < self.log.len() {
            self.emit_appended(from);
        }
    }

    /// Replaces the transcript by what `plan` shows of it: positions start anew, and no plan is in force. The session
    /// keeps its entries.
    pub(crate) fn shorten(&mut self, plan: &Plan) {
        let mut log = Transcript::default();
        View::planned(self.log.prefix(), plan.clone()).for_each(|message| log.push(Arc::clone(message)));
        self.sh.len = log.len();
        if !self.ports.session {
            self.outbox.stored = log.len();
        }
        self.sh.view = ViewState::default();
        self.log.replace(log);
    }

    /// Stores a record, when there is a session. What follows waits for it.
    pub(crate) fn persist(&mut self, record: Record) {
        if self.ports.session {
            self.outbox.held.push_back(Held::Record(record));
        }
    }

    /// Rests: nothing is in flight, and the phase continues ([`super::Phase::proceed`]) when everything is stored and its
    /// state is saved.
    pub(crate) fn rest(&mut self) {
        if self.ports.checkpoints && self.sh.origin.run.is_some() {
            self.outbox.held.push_back(Held::Save);
        }
        self.outbox.held.push_back(Held::Rest);
    }

    /// Whether all of the transcript is stored, or need not be.
    pub(crate) fn is_all_stored(&self) -> bool {
        self.outbox.stored == self.log.len() && self.outbox.owed.is_empty()
    }

    /// The result of an optional port; its error is emitted.
    pub(crate) fn tolerate<T>(&mut self, result: Result<T, Fault>) -> Option<T> {
        result.map_err(|fault| self.event(|| EventKind::PartFailed { fault })).ok()
    }

    /// Charges usage of models by ports.
    pub(super) fn spend(&mut self, spent: &TotalUsage) {
        for (purpose, used) in &spent.by_purpose {
            self.sh.budgets.settle(Grant::default(), used.amount());
            if *purpose == Purpose::Compaction {
                self.sh.compacting.add(*purpose, used);
            }
            self.event(|| EventKind::ModelUsageCharged { purpose: *purpose, usage: used.clone() });
        }
    }

    pub(crate) fn idle(&self) -> bool {
        self.sh.pending.is_empty()
    }
}
