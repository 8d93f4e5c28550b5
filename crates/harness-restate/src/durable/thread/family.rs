//! Relations of a thread to the thread whose call it works for, and to its own children.

use std::sync::Arc;

use harness::core::machine::CallDecision;
use harness::core::port::Decision;
use harness::core::{Origin, RunId, ThreadId, Time};
use serde::{Deserialize, Serialize};

use super::super::context::{ControlReply, ParkedRun};
use super::super::request::{Held, ThreadAsk, ThreadSend, ThreadStatus};
use super::ThreadState;

/// Children that a thread keeps, at most: an older one is forgotten when another begins.
const CHILDREN: usize = 64;

/// The relatives of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Family {
    /// The thread whose call it works for.
    parent: Option<ThreadId>,
    /// The run that works for the call, or the last one.
    run: Option<RunId>,
    /// A run that was stopped before it started.
    stopped: Option<RunId>,
    /// Reports to the parent about the run.
    told: u64,
    /// The last start: the run, that of the caller, and the reply.
    started: Option<(RunId, RunId, ControlReply)>,
    children: Vec<Child>,
}

/// A child, as its parent knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Child {
    thread: ThreadId,
    run: RunId,
    /// Number of the last report.
    told: u64,
    /// The calls inside of it that wait for a decision.
    held: Vec<Held>,
    is_over: bool,
    /// Whether it is parked and can continue.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_ready: bool,
}

/// Report of a child to its parent: all that the parent has to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChildReport {
    /// Thread of the child.
    pub thread: ThreadId,
    /// Run of the child.
    pub run: RunId,
    /// Number of the report. A later one counts.
    pub number: u64,
    /// The calls that wait for a decision, in the child or inside of it.
    pub held: Vec<Held>,
    /// Whether the run is over.
    pub is_over: bool,
    /// Whether the run is parked and can continue: its caller continues it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_ready: bool,
}

impl Family {
    pub(super) fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// The thread whose call it works for.
    pub(super) fn parent(&self) -> Option<&ThreadId> {
        self.parent.as_ref()
    }

    /// The run that works for a call, or the last one.
    pub(super) fn run(&self) -> Option<&RunId> {
        self.run.as_ref()
    }

    /// The children that are at work.
    pub(super) fn at_work(&self) -> impl Iterator<Item = &ThreadId> {
        self.children.iter().filter(|child| !child.is_over).map(|child| &child.thread)
    }

    /// The calls of children that wait for a decision.
    pub(super) fn held(&self) -> impl Iterator<Item = &Held> {
        self.children.iter().flat_map(|child| &child.held)
    }

    /// Notes that a child begins. The oldest that is over makes room for it.
    pub(super) fn delegate(&mut self, thread: ThreadId, run: RunId, sends: &mut Vec<ThreadSend>) {
        if let Some(child) = self.children.iter_mut().find(|child| child.run == run) {
            child.is_ready = false;
            return;
        }
        self.children.retain(|child| child.thread != thread);
        if self.children.len() >= CHILDREN
            && let Some(oldest) = self.children.iter().position(|child| child.is_over)
        {
            sends.push(forget(self.children.remove(oldest).thread));
        }
        self.children.push(Child { thread, run, told: 0, held: Vec::new(), is_over: false, is_ready: false });
    }

    /// Takes the report of a child.
    pub(super) fn note(&mut self, report: ChildReport) {
        let ChildReport { run, number, held, is_over, is_ready, .. } = report;
        if let Some(child) = self.children.iter_mut().find(|child| child.run == run && child.told < number) {
            (child.told, child.held, child.is_over, child.is_ready) = (number, held, is_over, is_ready);
        }
    }

    /// Whether a thread is a child.
    pub(super) fn knows(&self, thread: &ThreadId) -> bool {
        self.children.iter().any(|child| child.thread == *thread)
    }

    /// Whether a call need not wait for a child any longer: that can continue, or is over.
    pub(super) fn is_ready(&self, thread: &ThreadId) -> bool {
        let mut own = self.children.iter().filter(|child| child.thread == *thread);
        own.any(|child| child.is_ready || child.is_over)
    }

    /// Stops the children that are parked, except those that a call waits for. No other is at work when there is no run.
    pub(super) fn stop_parked(&self, is_waited_for: impl Fn(&ThreadId) -> bool, sends: &mut Vec<ThreadSend>) {
        let parked = self.children.iter().filter(|child| !child.is_over && !is_waited_for(&child.thread));
        sends.extend(parked.map(|child| {
            ThreadSend::Tell(child.thread.clone(), Box::new(ThreadAsk::StopRun(child.run.clone())))
        }));
    }

    /// Gives a decision to the child whose call it is about; `None` if it is about none.
    pub(super) fn decide(&mut self, decision: &CallDecision) -> Option<(Held, ThreadSend)> {
        let fits = |held: &Held| {
            let seen = decision.digest.as_ref();
            *held.call() == decision.call && seen.is_none_or(|seen| *seen == held.proposed.digest())
        };
        let child = self.children.iter_mut().find(|child| child.held.iter().any(fits))?;
        let at = child.held.iter().position(fits)?;
        // What is put off waits on, as the child says.
        let is_put_off = decision.decision == Decision::Later;
        let held = if is_put_off { child.held.get(at)?.clone() } else { child.held.remove(at) };
        let ask = Box::new(ThreadAsk::Decide(decision.clone()));
        Some((held, ThreadSend::Tell(child.thread.clone(), ask)))
    }

    /// Has all children forgotten.
    pub(super) fn forget(&mut self, sends: &mut Vec<ThreadSend>) {
        sends.extend(std::mem::take(&mut self.children).into_iter().map(|child| forget(child.thread)));
    }

    /// Begins a run for a call. Whether it was stopped already.
    fn begin(&mut self, parent: ThreadId, run: &RunId) -> bool {
        (self.parent, self.run, self.told) = (Some(parent), Some(run.clone()), 0);
        self.stopped.take().is_some_and(|stopped| stopped == *run)
    }

    /// Whether a run can be stopped now. One that begins later is then stopped at once.
    pub(super) fn stop(&mut self, run: RunId) -> bool {
        let has_begun = self.run.as_ref() == Some(&run);
        if !has_begun {
            self.stopped = Some(run);
        }
        has_begun
    }

    /// Reports the present state to the parent.
    pub(super) fn tell(&mut self, thread: ThreadId, shown: Shown) -> Option<ThreadSend> {
        let (parent, run) = (self.parent.clone()?, self.run.clone()?);
        self.told += 1;
        let Shown { held, is_over, is_ready } = shown;
        let report = ChildReport { thread, run, number: self.told, held, is_over, is_ready };
        Some(ThreadSend::Tell(parent, Box::new(ThreadAsk::Child(Box::new(report)))))
    }
}

/// State of a thread that its parent has to know.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shown {
    held: Vec<Held>,
    is_over: bool,
    is_ready: bool,
}

fn forget(thread: ThreadId) -> ThreadSend {
    ThreadSend::Tell(thread, Box::new(ThreadAsk::Forget))
}

impl ThreadState {
    /// State that the parent has to know; `None` without a parent.
    pub(super) fn shown(&self) -> Option<Shown> {
        self.parent()?;
        let (is_over, is_ready) = (self.status == ThreadStatus::Idle, self.is_ready());
        Some(Shown { held: self.approvals().cloned().collect(), is_over, is_ready })
    }

    /// Stops the run that works for a call: one at work, a parked one, or one that begins later.
    pub(super) fn stop_run(&mut self, run: RunId, sends: &mut Vec<ThreadSend>) {
        if self.family.stop(run) {
            self.stop(Arc::from("caller"), sends);
            self.drop_parked(sends);
        }
    }

    /// Begins a run for a call of another thread, behind what the log has, or continues the one that is parked for it.
    pub(super) fn begin_child(
        &mut self,
        mut origin: Origin,
        parent: ThreadId,
        (caller, continues): (RunId, bool),
        now: Time,
        sends: &mut Vec<ThreadSend>,
    ) -> ControlReply {
        let run = origin.run.take().unwrap_or_default();
        let started = self.family.started.as_ref();
        if let Some((.., reply)) = started.filter(|(of, by, _)| (of, by) == (&run, &caller)) {
            return reply.clone();
        }
        if self.is_forgetting || self.running().is_some() {
            return ControlReply::Refused(format!("thread `{}` is not free for run `{run}`", self.id()));
        }
        let mut parked = None;
        if continues {
            let is_parked = self.status == ThreadStatus::Parked(run.clone());
            let Some(from) = is_parked.then(|| self.unpark()).flatten() else {
                let text = "was stopped while it waited for approval; what it did may have taken effect";
                return ControlReply::Refused(format!("run `{run}` of thread `{}` {text}", self.id()));
            };
            parked = Some(Box::new(ParkedRun { first: self.first, from }));
        } else {
            self.drop_parked(sends);
            self.first = self.log;
            self.stop = self.family.begin(parent, &run).then(|| Arc::from("caller"));
        }
        (self.status, self.last) = (ThreadStatus::Running(run.clone()), None);
        (self.turn, self.since, self.origin) = (self.log, Some(now), origin);
        let reply = ControlReply::Began {
            log: self.log,
            spent: self.spent.clone(),
            parked,
            states: self.states.clone(),
        };
        self.family.started = Some((run, caller, reply.clone()));
        reply
    }
}
