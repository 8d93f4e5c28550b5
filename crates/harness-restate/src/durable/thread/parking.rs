//! Runs that are parked: what they wait for, and whether they can continue.

use std::sync::Arc;

use harness::core::machine::{CallDecision, Resume};
use harness::core::message::Message;
use harness::core::outcome::PendingCall;
use harness::core::{CallId, ThreadId, Time};

use super::super::child::child_thread;
use super::super::request::{Held, ResumeAsk, ThreadSend, ThreadStatus};
use super::ThreadState;

impl ThreadState {
    /// The thread of the child that a call would hand its work to.
    pub(super) fn child_of(&self, pending: &PendingCall) -> ThreadId {
        child_thread(&self.id(), &pending.call_id)
    }

    /// The calls of the parked run whose work waits in a child.
    fn delegating(&self) -> impl Iterator<Item = (&PendingCall, ThreadId)> {
        let pending = self.parked.iter().flat_map(|parked| &parked.pending);
        let working = pending.filter(|pending| pending.work.is_some());
        working.map(|pending| (pending, self.child_of(pending))).filter(|(_, child)| self.family.knows(child))
    }

    /// Parts of the parked run that a person decides beside held calls: a request of the model, and calls whose work waits in no child.
    pub(super) fn requested(&self, now: Time) -> Vec<Held> {
        let Some(parked) = &self.parked else { return Vec::new() };
        let own = parked.pending.iter().filter(|pending| !self.family.knows(&self.child_of(pending)));
        let working = own.filter_map(|pending| Held::working(parked, pending, now));
        Held::requested(parked, now).into_iter().chain(working).collect()
    }

    /// Whether a call can only be granted or denied: a request of the model, or a call that has started.
    pub(super) fn is_fixed(&self, call: &CallId) -> bool {
        self.parked.as_ref().is_some_and(|parked| {
            let mut pending = parked.pending.iter().filter(|pending| pending.call_id == *call);
            parked.request.is_some() || pending.any(|pending| pending.work.is_some())
        })
    }

    /// Whether a call of the parked run waits for a child.
    pub(super) fn waits_for(&self, child: &ThreadId) -> bool {
        self.delegating().any(|(_, of)| of == *child)
    }

    /// Decisions with which the parked run can continue: what was decided about its own calls, and a grant for each call whose
    /// child can continue, or is over.
    fn ready(&self) -> Vec<CallDecision> {
        let children = self.delegating().filter(|(_, child)| self.family.is_ready(child));
        let granted = children.map(|(pending, _)| CallDecision::granted(pending.call_id.clone()));
        self.decisions.iter().cloned().chain(granted).collect()
    }

    /// Whether the run is parked, and can continue.
    pub(super) fn is_ready(&self) -> bool {
        self.parked.is_some() && !self.ready().is_empty()
    }

    /// Takes the parked run with what was decided, if it can continue.
    pub(super) fn unpark(&mut self) -> Option<ResumeAsk> {
        let ready = self.ready();
        let continuation = self.parked.take_if(|_| !ready.is_empty())?;
        self.decisions.clear();
        self.held.retain(|held| !ready.iter().any(|decided| decided.call == *held.call()));
        Some(ResumeAsk::new(*continuation, Some(Resume::decided(ready))))
    }

    /// Drops the parked run, and stops the children that wait in it. Gives the messages that wait behind its calls.
    pub(super) fn drop_parked(&mut self, sends: &mut Vec<ThreadSend>) -> Vec<Arc<Message>> {
        let Some(parked) = self.parked.take() else { return Vec::new() };
        self.held.clear();
        self.decisions.clear();
        self.status = ThreadStatus::Idle;
        self.family.stop_parked(|_| false, sends);
        parked.waiting
    }
}
