//! State of an engine: journals, the state of objects, messages in transit.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use harness::core::{Cancel, Millis, Redactor, RunId, ThreadId, Time};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::feed::SimFeed;
use super::storage::Directory;
use crate::durable::blob::BlobHash;
use crate::durable::context::{
    ControlAsk, ControlReply, DriveInput, Driven, Handle, StepAsk, StepReply, Stopped, TimedInput, Woken,
};
use crate::durable::log::LogPages;
use crate::durable::request::{ThreadAsk, ThreadReply, ThreadSend};
use crate::durable::thread::ThreadState;

/// Failures of a simulation.
///
/// Points are counted over the whole life of an engine, from 1: before each journal entry, between the effect of an entry
/// and its journal, after it, and around each request to a thread.
#[derive(Clone, Debug, Default)]
pub struct SimFaults {
    /// The points at which the process dies; a second process takes over at once.
    pub crash_at: BTreeSet<u64>,
    /// Whether a process does not die but is cut off: it continues, and its journals are refused.
    pub freeze: bool,
    /// Whether each request to a thread and to a log is delivered twice, and each message of a client once more a minute
    /// later.
    pub duplicate: bool,
    /// How far the clocks of workers may be behind.
    pub skew: Millis,
    /// Whether all rings are lost.
    pub lose_rings: bool,
    /// Text that must be in nothing that the engine keeps: journals, states, logs, requests under way. Default none.
    pub secret: Option<&'static str>,
    /// Text that must be kept in blobs alone: what agents are prepared with. Default none.
    pub private: Option<&'static str>,
    /// Decides the order of completions and of tasks; with 0 it is that of their start.
    pub seed: u64,
}

/// Report of a simulation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SimReport {
    /// Points so far, see [`SimFaults::crash_at`].
    pub points: u64,
    /// Entries of the journals of runs.
    pub entries: u64,
    /// Bytes of all that is kept, as JSON; unknown with crashes.
    pub bytes: u64,
    /// Invocations of runs.
    pub drives: u64,
    /// Entries of logs that workers read.
    pub reads: u64,
    /// Runs without an end, and keys that are held.
    pub stuck: Vec<String>,
    /// Broken rules of the journal: a replay that asks for something else, data that JSON changes, unequal replies to
    /// one request, a secret or a private text.
    pub violations: Vec<String>,
}

/// An entry of the journal of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Entry {
    Segment(Vec<TimedInput>),
    Started(Handle, Box<StepAsk>),
    Child(Handle, Box<DriveInput>),
    Timer(Handle, Time),
    Bell(Handle),
    Woken(Handle, Woken),
    Called(Box<ControlAsk>, ControlReply),
}

/// Invocation.
#[derive(Clone, Debug)]
pub(super) enum Work {
    Drive(Box<DriveInput>),
    Step(Box<StepAsk>),
}

/// The result of an invocation.
#[derive(Clone, Debug)]
pub(super) enum Ended {
    Drive(Driven),
    Step(StepReply),
}

/// An invocation and its journal.
#[derive(Debug)]
pub(super) struct Invocation {
    pub(super) work: Work,
    /// The attempt that may write.
    pub(super) attempt: u64,
    /// The journal of a run.
    pub(super) journal: Vec<Entry>,
    /// The journal of a step.
    pub(super) values: Vec<String>,
    pub(super) reply: Option<Ended>,
    pub(super) is_done: bool,
    pub(super) cancel: Cancel,
    /// The invocation of each step and of each child.
    pub(super) steps: BTreeMap<Handle, usize>,
}

/// A request under way.
#[derive(Clone, Debug)]
pub(super) struct Letter {
    pub(super) at: Time,
    pub(super) thread: ThreadId,
    pub(super) ask: ThreadAsk,
    /// The name of the client's request, for its reply.
    pub(super) name: Option<String>,
}

/// All that survives a process.
#[derive(Debug, Default)]
pub(super) struct World {
    pub(super) faults: SimFaults,
    pub(super) report: SimReport,
    pub(super) threads: BTreeMap<ThreadId, ThreadState>,
    pub(super) logs: BTreeMap<ThreadId, LogPages>,
    pub(super) blobs: BTreeMap<(ThreadId, BlobHash), Arc<str>>,
    pub(super) directories: BTreeMap<String, Directory>,
    pub(super) invocations: Vec<Invocation>,
    /// Runs that wait until the key of their thread is free.
    pub(super) queued: VecDeque<DriveInput>,
    pub(super) rung: BTreeSet<RunId>,
    pub(super) letters: Vec<Letter>,
    /// The replies to clients, by the name of their request.
    pub(super) replies: BTreeMap<String, Option<ThreadReply>>,
    /// Whether the process died.
    pub(super) is_crashed: bool,
    /// Deltas of answers.
    pub(super) feed: SimFeed,
    /// The redactor of front ends and workers.
    pub(super) redactor: Option<Redactor>,
    /// Changes with everything that happens.
    pub(super) version: u64,
    random: u64,
}

impl Invocation {
    /// The first timer of a run that is not due yet.
    pub(super) fn next_timer(&self, now: Time) -> Option<Time> {
        let timers = self.journal.iter().filter_map(|entry| match entry {
            Entry::Timer(_, at) => Some(*at),
            Entry::Segment(_)
            | Entry::Started(..)
            | Entry::Child(..)
            | Entry::Bell(_)
            | Entry::Woken(..)
            | Entry::Called(..) => None,
        });
        timers.filter(|at| *at > now).min()
    }
}

impl World {
    pub(super) fn new(faults: SimFaults) -> Self {
        let random = faults.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        Self { faults, random, ..Self::default() }
    }

    /// A number below `bound`.
    pub(super) fn pick(&mut self, bound: usize) -> usize {
        if self.faults.seed == 0 {
            return 0;
        }
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        usize::try_from(self.random % bound.max(1) as u64).unwrap_or(0)
    }

    /// A point at which the process may die.
    pub(super) fn point(&mut self) -> Result<(), Stopped> {
        self.report.points += 1;
        self.version += 1;
        if self.faults.crash_at.contains(&self.report.points) {
            self.is_crashed = true;
            return Err(Stopped::Over);
        }
        Ok(())
    }

    /// Ends an invocation, unless another attempt has taken over.
    pub(super) fn finish(&mut self, id: usize, attempt: u64, reply: Ended) {
        let behind = Millis(self.pick(usize::try_from(self.faults.skew.0).unwrap_or(0) + 1) as u64);
        if let Some(own) = self.invocations.get_mut(id).filter(|own| own.attempt == attempt) {
            let behind = |at: Time| Time(at.0.saturating_sub_unsigned(behind.0));
            let reply = match reply {
                Ended::Step(reply) => Ended::Step(StepReply { at: behind(reply.at), ..reply }),
                driven @ Ended::Drive(_) => driven,
            };
            (own.is_done, own.reply) = (true, Some(reply));
        }
    }

    /// Ends an invocation that was refused. One that another attempt has taken over may be.
    pub(super) fn refuse(&mut self, id: usize, attempt: u64, why: &Stopped) {
        if self.invocations.get(id).is_some_and(|own| own.attempt == attempt) {
            self.broken(why.to_string());
            self.finish(id, attempt, Ended::Drive(Driven::Ended(Time(0), Err(why.to_string()))));
        }
    }

    /// Checks that data has no secret and survives its JSON, in which an engine keeps it. Lives with crashes write the same
    /// data; of these only secrets are looked for.
    pub(super) fn check<T: Serialize + DeserializeOwned + PartialEq>(&mut self, data: &T) {
        let crashes = !self.faults.crash_at.is_empty();
        if crashes && self.faults.secret.is_none() {
            return;
        }
        let json = serde_json::to_string(data).unwrap_or_default();
        self.check_text(&json);
        if self.faults.private.is_some_and(|private| json.contains(private)) {
            self.broken(format!("a private text is kept: {json}"));
        }
        if !crashes && serde_json::from_str(&json).ok().as_ref() != Some(data) {
            self.broken(format!("data does not survive JSON: {json}"));
        }
        self.report.bytes += json.len() as u64;
    }

    /// Checks that a text that an engine keeps has no secret.
    pub(super) fn check_text(&mut self, text: &str) {
        if self.faults.secret.is_some_and(|secret| text.contains(secret)) {
            self.broken(format!("a secret is kept: {text}"));
        }
    }

    pub(super) fn broken(&mut self, text: String) {
        self.report.violations.push(text);
    }

    /// Whether a request can be delivered. The log of a thread is removed when no invocation reads it.
    pub(super) fn is_due(&self, letter: &Letter, now: Time) -> bool {
        let removes = matches!(letter.ask, ThreadAsk::Forgotten { .. });
        letter.at <= now && (!removes || self.is_free(&letter.thread))
    }

    pub(super) fn is_free(&self, thread: &ThreadId) -> bool {
        !self.invocations.iter().any(|invocation| match &invocation.work {
            Work::Drive(input) => !invocation.is_done && input.thread() == *thread,
            Work::Step(_) => false,
        })
    }

    pub(super) fn invoke(&mut self, work: Work) -> usize {
        self.version += 1;
        match &work {
            Work::Drive(input) => self.check(&**input),
            Work::Step(ask) => self.check(&**ask),
        }
        self.report.drives += u64::from(matches!(work, Work::Drive(_)));
        self.invocations.push(Invocation {
            work,
            attempt: 0,
            journal: Vec::new(),
            values: Vec::new(),
            reply: None,
            is_done: false,
            cancel: Cancel::new(),
            steps: BTreeMap::new(),
        });
        self.invocations.len() - 1
    }

    /// Starts the runs whose threads are free.
    pub(super) fn start_queued(&mut self) {
        for input in std::mem::take(&mut self.queued) {
            if self.is_free(&input.thread()) {
                self.invoke(Work::Drive(Box::new(input)));
            } else {
                self.queued.push_back(input);
            }
        }
    }

    /// One request to a thread, and what the thread sends.
    pub(super) fn ask(&mut self, thread: &ThreadId, ask: &ThreadAsk, now: Time) -> ThreadReply {
        let times = if self.faults.duplicate { 2 } else { 1 };
        let mut replies = Vec::new();
        for _ in 0..times {
            let mut state =
                self.threads.remove(thread).unwrap_or_else(|| ThreadState::new(thread.clone(), None));
            let (reply, sends) = state.handle(ask.clone(), now, self.redactor.as_ref());
            self.check(&state);
            self.check(&reply);
            self.threads.insert(thread.clone(), state);
            for send in sends {
                self.send(thread, send);
            }
            replies.push(reply);
        }
        let reply = replies.swap_remove(0);
        let is_client = !matches!(ask, ThreadAsk::Run(_));
        if replies.first().is_some_and(|again| *again != reply && !is_client) {
            self.broken(format!("two replies to one request: {ask:?}"));
        }
        reply
    }

    /// Removes the first entries of a log, and all texts beside it.
    pub(super) fn forget(&mut self, thread: &ThreadId, before: u64) {
        if let Some(log) = self.logs.get_mut(thread) {
            log.forget(before);
        }
        self.blobs.retain(|(of, _), _| of != thread);
    }

    fn send(&mut self, thread: &ThreadId, send: ThreadSend) {
        self.version += 1;
        match send {
            ThreadSend::Drive(input) => self.queued.push_back(*input),
            ThreadSend::Ring(run) if !self.faults.lose_rings => {
                self.rung.insert(run);
            }
            ThreadSend::Ring(_) => {}
            // Whoever removes the log tells the thread then.
            ThreadSend::Forget { before } => {
                let ask = ThreadAsk::Forgotten { before };
                self.letters.push(Letter { at: Time(0), thread: thread.clone(), ask, name: None });
            }
            ThreadSend::Tell(other, ask) => {
                self.letters.push(Letter { at: Time(0), thread: other, ask: *ask, name: None });
            }
            ThreadSend::Later(at, ask) => {
                self.letters.push(Letter { at, thread: thread.clone(), ask: *ask, name: None });
            }
        }
    }

    /// A request of a run to its thread or its log.
    pub(super) fn control(&mut self, thread: &ThreadId, ask: &ControlAsk, now: Time) -> ControlReply {
        let ControlAsk::Append { entries } = ask else {
            return match self.ask(thread, &ThreadAsk::Run(ask.clone()), now) {
                ThreadReply::Run(reply) => reply,
                ThreadReply::Accepted(_) | ThreadReply::Refused(_) => ControlReply::Noted,
            };
        };
        let twice = self.faults.duplicate;
        let log = self.logs.entry(thread.clone()).or_default();
        let appended = log.append(entries.clone());
        if twice && log.append(entries.clone()) != appended {
            self.broken(format!("two replies to one append of {} entries", entries.len()));
        }
        match appended {
            Ok(len) => ControlReply::Appended(len),
            Err(refusal) => {
                self.broken(refusal.to_string());
                ControlReply::Refused(refusal.to_string())
            }
        }
    }
}
