//! The port between a driver and an engine, and the data that crosses it.

use std::sync::Arc;

use harness::core::limits::Amount;
use harness::core::machine::{CallDecision, Input, Op, Reply};
use harness::core::message::Message;
use harness::core::outcome::StopMode;
use harness::core::outcome::TotalUsage;
use harness::core::port::{CompactionNote, DrainPoint};
use harness::core::{AgentId, CallId, End, EntryId, Fault, Json, OpId, Origin, RunId, ThreadId, Time};
use harness::runtime::DeliveryRules;
use serde::{Deserialize, Serialize};

use super::blob::BlobHash;
use super::child::{ChildEnd, Delegation};
use super::log::LogEntry;
use super::request::{AgentSettings, Held, ResumeAsk};

/// Reason why an invocation ends without a result. Code that receives it returns at once.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stopped {
    /// The attempt is over: its process stops, or the engine continues the invocation elsewhere. Nothing of the attempt
    /// counts from here on.
    #[error("this attempt is over; the engine continues the work elsewhere")]
    Over,
    /// The thread or its log refused a request: the run is not theirs. Another attempt would be refused, too, so the
    /// engine ends the invocation.
    #[error("the run was refused: {0}")]
    Refused(String),
}

/// Something that a driver waits for: a step, a child, a timer or a doorbell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Handle(pub u64);

/// The result of a [`Handle`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Woken {
    /// The reply of a step.
    Step(Box<StepReply>),
    /// A child ended, or its invocation did.
    Child(Box<Driven>),
    /// The time of a timer has come.
    Timer,
    /// The doorbell rang, once or several times.
    Rang,
}

/// The result of one invocation of a driver, for the driver of its caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Driven {
    /// The run ended at this time, or could not begin, for a reason.
    Ended(Time, Result<Arc<End>, String>),
    /// The run continues in another invocation, with this input.
    Next(Box<DriveInput>),
}

/// An input of the machine, with its time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimedInput {
    /// When it arrived.
    pub at: Time,
    /// Input of the machine. An agent in it is sealed.
    pub input: Input,
    /// The name of its agent in the store of the thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<BlobHash>,
    /// States of layers and tools that the segment changed, with its last input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub states: Option<Json>,
}

/// Work inside of one journal entry. It may run again after a crash.
pub trait SegmentWork: Send + 'static {
    /// Does the work. The result is journaled, and stands for the work on a replay.
    fn run(self) -> impl Future<Output = Vec<TimedInput>> + Send;
}

/// One invocation of a driver, on an engine with a journal.
///
/// Each method that waits writes a journal entry; on a replay it returns what the entry holds. So the order of the calls
/// must depend on journaled data alone.
pub trait DurableContext: Send {
    /// Does quick work inside of one entry.
    ///
    /// # Errors
    /// [`Stopped::Over`], as all other methods.
    fn segment<W: SegmentWork>(
        &mut self,
        work: W,
    ) -> impl Future<Output = Result<Vec<TimedInput>, Stopped>> + Send;

    /// Starts a step on any worker. It is journaled before anything later.
    fn start(&mut self, step: StepAsk) -> Result<Handle, Stopped>;

    /// Starts an invocation of a child's run. It is journaled before anything later.
    fn call(&mut self, child: DriveInput) -> Result<Handle, Stopped>;

    /// Starts a durable timer.
    fn timer(&mut self, at: Time) -> Result<Handle, Stopped>;

    /// Waits for the next ring of the run's doorbell. Rings carry nothing and may be lost.
    fn doorbell(&mut self) -> Result<Handle, Stopped>;

    /// The first result of the handles that are waited for, in the order of the journal. A handle has one result.
    fn next(&mut self) -> impl Future<Output = Result<(Handle, Woken), Stopped>> + Send;

    /// Asks the worker of a step to cancel its operation and to reply with what it has, or the thread of a child to stop
    /// its run ([`ThreadAsk::StopRun`](super::ThreadAsk::StopRun)). Best effort, not journaled.
    fn stop(&mut self, handle: Handle);

    /// Gives a handle up, but for that of a child: it has no result from here on.
    fn cancel(&mut self, handle: Handle);

    /// Calls the thread or its log.
    fn control(&mut self, ask: ControlAsk) -> impl Future<Output = Result<ControlReply, Stopped>> + Send;

    /// Ends the invocation; the next one continues with `next`.
    fn roll_over(self, next: DriveInput) -> impl Future<Output = Result<(), Stopped>> + Send;
}

/// The input of one invocation of the run service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DriveInput {
    /// The ids of the work: thread, run, descriptor.
    pub origin: Origin,
    /// Beginning of the run.
    pub begin: Begin,
    /// When the thread started it.
    pub at: Time,
    /// The first log entry of the conversation: those before it are forgotten.
    #[serde(default)]
    pub first: u64,
    /// Log entries before the invocation: its transcript is made of these.
    pub log: u64,
    /// Messages before the first one, of a thread without a log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Arc<Message>>,
    /// State of an earlier invocation that no invocation reads: it is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<BlobHash>,
    /// The number of the next request to the thread ([`ControlAsk::Take`]).
    pub takes: u64,
    /// Messages of the queue that are in the transcript, and of which the thread does not know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub injected: Vec<EntryId>,
    /// Settings for the agents by its message.
    #[serde(default, skip_serializing_if = "AgentSettings::is_default")]
    pub agents: AgentSettings,
    /// The call that it works for; `None` for a thread that no call started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegation: Option<Arc<Delegation>>,
    /// Messages of the queue that the run begins with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub began: Vec<EntryId>,
    /// States of layers and tools that it begins with: those of its thread, of its caller, or of the invocation before this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub states: Option<Json>,
    /// Treatment of an end that a check rejects, as the run began with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<StopMode>,
    /// Reason of an abort before its start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Arc<str>>,
}

impl DriveInput {
    /// Thread of the run; empty if the origin names none.
    pub fn thread(&self) -> ThreadId {
        self.origin.thread.clone().unwrap_or_default()
    }

    /// The state that it continues from.
    pub fn state(&self) -> Option<&BlobHash> {
        if let Begin::Saved { state, .. } = &self.begin { Some(state) } else { None }
    }

    /// Whether the call has started in an earlier run, and its work waits for approval.
    pub(super) fn is_pending(&self, call: &CallId, attempt: u32) -> bool {
        let Begin::Resumed { from, .. } = &self.begin else { return false };
        let mut pending = from.continuation.pending.iter().filter(|pending| pending.call_id == *call);
        pending.any(|pending| pending.work.as_ref().is_some_and(|work| work.attempt == attempt))
    }

    /// Id of the run; empty if the origin names none.
    pub fn run(&self) -> RunId {
        self.origin.run.clone().unwrap_or_default()
    }
}

/// Beginning of an invocation of the run service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Begin {
    /// Messages, and those that arrived while calls were pending.
    Messages {
        /// The messages of the queue.
        prompt: Vec<Arc<Message>>,
        /// Messages for behind the results of pending calls.
        waiting: Vec<Arc<Message>>,
        /// The agent that the conversation is with; `None` is the entry agent.
        agent: Option<AgentId>,
    },
    /// A run that stopped and is resumed.
    Resumed {
        /// Where it stopped, and how it is resumed.
        from: Box<ResumeAsk>,
        /// Messages after that.
        prompt: Vec<Arc<Message>>,
        /// The agent of the run; `None` is the one that stopped.
        agent: Option<AgentId>,
    },
    /// The run of a child that is parked: its thread says where it stopped.
    Parked,
    /// A compaction on request in place of a run.
    Compact {
        /// Information that a summary must keep.
        instructions: Option<String>,
    },
    /// The state that the invocation before this one left, at the boundary of an iteration.
    Saved {
        /// Version of the state.
        version: u32,
        /// Messages of the transcript.
        messages: u64,
        /// The state ([`Run::hand_over`](harness::core::run::Run::hand_over)) in the store of the thread.
        state: BlobHash,
    },
}

/// One slow operation, with everything that a worker needs to perform it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepAsk {
    /// The ids of the work.
    pub origin: Origin,
    /// The number of the operation in its run. With the run it names the step.
    pub op: OpId,
    /// Operation to perform. An agent in it is sealed: it has its id alone.
    pub what: Op,
    /// The name of its agent in the store of the thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<BlobHash>,
    /// The first log entry of the conversation.
    #[serde(default)]
    pub first: u64,
    /// Log entries before the step: its transcript is made of these.
    pub log: u64,
    /// Log entries with the events of its start, which are appended right after it starts. 0 in steps of builds before this
    /// field.
    #[serde(default)]
    pub shown: u64,
    /// The turn of the run, from 1.
    pub turn: u32,
    /// When the operation is cut off; `None` for never.
    pub deadline: Option<Time>,
    /// Rest of the budgets, for model calls that ports make.
    pub left: Amount,
    /// Settings for the agents by the message of the run.
    #[serde(default, skip_serializing_if = "AgentSettings::is_default")]
    pub agents: AgentSettings,
    /// The call that the run works for; `None` for a thread that no call started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegation: Option<Arc<Delegation>>,
    /// The end of the child that the call handed its work to: the step makes the result of the call from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<Box<ChildEnd>>,
    /// States of layers and tools, of operations that ask layers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub states: Option<Json>,
}

/// The reply of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepReply {
    /// The worker's time at the end of the operation.
    pub at: Time,
    /// The reply for the machine.
    pub reply: Reply,
    /// Its size in the journal, in bytes.
    pub bytes: u64,
    /// Usage of models by the port, and by attempts that were lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<TotalUsage>,
    /// States that the operation changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub states: Option<Json>,
}

/// A request of a driver to its thread or its log. Each may be delivered twice, with equal replies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ControlAsk {
    /// Takes messages of the queue at a point of the turn, and reads what was decided.
    Take {
        /// Run that asks.
        run: RunId,
        /// The number of the request in its run.
        number: u64,
        /// The point of the turn; `None` takes no messages.
        point: Option<DrainPoint>,
        /// Messages that are in the transcript now: they leave the queue.
        injected: Vec<EntryId>,
        /// How the thread delivers messages.
        #[serde(default, skip_serializing_if = "DeliveryRules::is_default")]
        delivery: DeliveryRules,
    },
    /// Says that calls wait for a decision.
    Hold {
        /// Run that asks.
        run: RunId,
        /// The calls that wait now, all of them.
        calls: Vec<Held>,
    },
    /// Ends the run.
    Ended {
        /// Run that asks.
        run: RunId,
        /// The end, or the reason why the run could not begin.
        end: Result<Arc<End>, String>,
        /// When it ended.
        at: Time,
        /// Messages of the queue that are in the transcript.
        injected: Vec<EntryId>,
        /// Log entries after the run.
        log: u64,
        /// The state that its last invocation started with. It stays until the next run has started.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<BlobHash>,
        /// States of tools that belong to the thread; `None` leaves those that it has.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        states: Option<Json>,
    },
    /// Ends a compaction on request.
    Compacted {
        /// Its id, in place of that of a run.
        run: RunId,
        /// The changes; `None` if there was nothing to do.
        result: Result<Option<Arc<CompactionNote>>, Fault>,
        /// Log entries after it.
        log: u64,
    },
    /// Says that a child begins, before it does.
    Delegate {
        /// Run that asks.
        run: RunId,
        /// Thread of the child.
        child: ThreadId,
        /// Run of the child.
        begins: RunId,
    },
    /// Begins a child's run in its thread, or continues one that is parked. What the thread has from earlier calls stays in
    /// its log, and is not part of the conversation.
    BeginChild {
        /// The ids of the work.
        origin: Box<Origin>,
        /// Thread of the caller.
        parent: ThreadId,
        /// Run of the caller.
        #[serde(default)]
        caller: RunId,
        /// Whether it continues a parked run, and must not begin anew.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        continues: bool,
        /// When it started.
        at: Time,
    },
    /// Appends entries to the log. Entries that it has are ignored.
    Append {
        /// The entries, in order.
        entries: Vec<LogEntry>,
    },
}

/// A child's run that waited for decisions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ParkedRun {
    /// The first log entry of its conversation.
    pub first: u64,
    /// Where it stopped, and what was decided.
    pub from: ResumeAsk,
}

/// The reply to a [`ControlAsk`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ControlReply {
    /// Of [`ControlAsk::Take`].
    Taken {
        /// The thread's time.
        at: Time,
        /// Messages of the queue.
        entries: Vec<(EntryId, Arc<Message>)>,
        /// The part that stops the run; `None` while it may continue.
        stop: Option<Arc<str>>,
        /// The decisions about held calls so far.
        decisions: Vec<CallDecision>,
    },
    /// Of [`ControlAsk::Hold`], [`ControlAsk::Ended`], [`ControlAsk::Compacted`] and [`ControlAsk::Delegate`].
    Noted,
    /// Of [`ControlAsk::BeginChild`].
    Began {
        /// Entries of the log before the run.
        log: u64,
        /// State of an earlier run that no invocation reads.
        spent: Option<BlobHash>,
        /// The parked run that it continues.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parked: Option<Box<ParkedRun>>,
        /// States of tools that belong to the thread, from an earlier run for the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        states: Option<Json>,
    },
    /// Of [`ControlAsk::Append`]: entries of the log.
    Appended(u64),
    /// The request does not fit, which is an error of the program.
    Refused(String),
}
