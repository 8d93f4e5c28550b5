//! Requests to a thread, its replies, and what it sends.

use std::sync::Arc;

use harness::core::machine::{CallDecision, Resume};
use harness::core::message::{Message, ToolCall};
use harness::core::outcome::{Continuation, PendingCall};
use harness::core::port::ProposedCall;
use harness::core::tool::ToolDef;
use harness::core::{AgentId, CallId, EntryId, Json, Redactor, RunId, ThreadId, Time, ToolName};
use harness::runtime::{DeliveryMode, QueueEntry};
use serde::{Deserialize, Serialize};

use super::context::{ControlAsk, ControlReply, DriveInput};
use super::thread::ChildReport;

/// Options of the run that a message begins. A message that joins a run uses the options of that run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RunOptions {
    /// The user ([`Origin::user`](harness::core::Origin::user)).
    pub user: Option<Arc<str>>,
    /// The caller's own data ([`Origin::metadata`](harness::core::Origin::metadata)).
    pub metadata: Option<Json>,
    /// The tools that it may use ([`Origin::allowed_tools`](harness::core::Origin::allowed_tools)).
    pub allowed_tools: Option<Arc<[ToolName]>>,
    /// The agent that it begins with. Default: the one that the conversation is with.
    pub agent: Option<AgentId>,
    /// Settings for its agents.
    #[serde(skip_serializing_if = "AgentSettings::is_default")]
    pub agents: AgentSettings,
}

/// Settings of a message for the agents of its run. They travel with the run, because any worker assembles them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentSettings {
    /// Values laid over the defaults of the descriptor's context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Json>,
    /// JSON Schema that the answer must match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
}

impl AgentSettings {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// These settings; what they leave open is as in `defaults`.
    fn over(self, defaults: &Self) -> Self {
        Self {
            context: self.context.or_else(|| defaults.context.clone()),
            output: self.output.or_else(|| defaults.output.clone()),
        }
    }
}

impl RunOptions {
    /// These options; what they leave open is as in `defaults`.
    pub(super) fn over(&self, defaults: &Self) -> Self {
        let Self { user, metadata, allowed_tools, agent, agents } = self.clone();
        Self {
            user: user.or_else(|| defaults.user.clone()),
            metadata: metadata.or_else(|| defaults.metadata.clone()),
            allowed_tools: allowed_tools.or_else(|| defaults.allowed_tools.clone()),
            agent,
            agents: agents.over(&defaults.agents),
        }
    }
}

/// A message that waits.
pub type Queued = QueueEntry<RunOptions>;

/// A call that waits for a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The call, with the reason.
    pub proposed: ProposedCall,
    /// Since when it waits.
    pub since: Time,
}

impl Held {
    /// The id of the call.
    pub fn call(&self) -> &CallId {
        &self.proposed.call.id
    }

    /// The request of the model at which a run was parked: a call without arguments of what it names.
    pub(super) fn requested(parked: &Continuation, since: Time) -> Option<Self> {
        let request = parked.request.as_ref().filter(|_| parked.pending.is_empty())?;
        let call = ToolCall::new(&*request.id, &*request.kind, Json::empty_object());
        Some(Self::of(call, parked, &request.summary, since))
    }

    /// A pending call whose own work waits, with the first request of that.
    pub(super) fn working(parked: &Continuation, pending: &PendingCall, since: Time) -> Option<Self> {
        let request = pending.work.as_ref()?.requests.first()?;
        let arguments = pending.arguments.clone().unwrap_or_else(Json::empty_object);
        let call = ToolCall::new(pending.call_id.clone(), pending.tool.clone(), arguments);
        Some(Self::of(call, parked, &request.summary, since))
    }

    fn of(call: ToolCall, parked: &Continuation, reason: &str, since: Time) -> Self {
        let (def, agent) = (ToolDef::new(call.name.clone(), ""), parked.agent.clone().unwrap_or_default());
        let proposed = ProposedCall::new(Arc::new(call), def, agent, parked.iteration);
        Self { proposed: proposed.held(reason), since }
    }
}

/// The status of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ThreadStatus {
    /// No run.
    #[default]
    Idle,
    /// A run is at work, or waits for a decision. A compaction on request is like a run.
    Running(RunId),
    /// A run was ended because it waits for decisions; the next decision starts another.
    Parked(RunId),
}

/// A run that stopped, and how to resume it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResumeAsk {
    /// Where it stopped: from its [`End`](harness::core::End).
    pub continuation: Continuation,
    /// An answer, decisions, or more of a limit; `None` if the messages are the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<Resume>,
}

impl ResumeAsk {
    /// A request to resume this run.
    pub fn new(continuation: Continuation, resume: Option<Resume>) -> Self {
        Self { continuation, resume }
    }
}

/// A request to a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ThreadAsk {
    /// Delivers a message. The name is the client's, and makes the request repeatable.
    Deliver {
        /// The name of the message.
        entry: EntryId,
        /// Content of the message.
        message: Arc<Message>,
        /// When it is delivered.
        mode: DeliveryMode,
        /// Whether it makes an idle thread begin: steering and follow-ups do not.
        wakes: bool,
        /// Options of the run that it begins.
        #[serde(default)]
        options: RunOptions,
    },
    /// Stops the run at hand; what waits stays.
    Abort {
        /// The reason, which the run ends with. Default `caller`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<Arc<str>>,
    },
    /// Decides about a call. The first decision about a call counts.
    Decide(CallDecision),
    /// Changes a message that waits.
    Edit {
        /// The name of the message.
        entry: EntryId,
        /// The new message.
        message: Arc<Message>,
    },
    /// Moves a message that waits to the n-th place, from 0.
    Reorder {
        /// The name of the message.
        entry: EntryId,
        /// New place in the queue, from 0.
        place: usize,
    },
    /// Removes a message that waits.
    Cancel {
        /// The name of the message.
        entry: EntryId,
    },
    /// Sets the options of later runs, where their messages have none. It replaces what was set before, but for the agent:
    /// the conversation continues with that one.
    Configure(RunOptions),
    /// Gives a new thread a history, which its first run stores. It replaces one that was given before.
    Seed {
        /// The messages, in which each call has its result.
        messages: Vec<Arc<Message>>,
    },
    /// Starts a run of an idle thread with messages, before those that wait, or resumes a run that asked a question or stopped
    /// at a limit. Calls of a parked run are decided with [`Decide`](Self::Decide).
    Start {
        /// The name of the first message. The others have it with their number behind it. It makes the request repeatable.
        entry: EntryId,
        /// The messages; at least one if no run is resumed.
        messages: Vec<Arc<Message>>,
        /// The run to resume, and how. If it does not fit, the new run ends with an error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resume: Option<Box<ResumeAsk>>,
        /// Options of the run.
        #[serde(default)]
        options: RunOptions,
    },
    /// Starts a run of an idle thread that continues its transcript without a message. After an answer, the run
    /// begins with waiting steering, else with the next message; if nothing waits after a completed run, the request is refused.
    Continue {
        /// Options of the run.
        options: RunOptions,
    },
    /// Compacts the transcript of an idle thread permanently.
    Compact {
        /// The name of the request, which makes it repeatable.
        entry: EntryId,
        /// Information that a summary must keep.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instructions: Option<String>,
    },
    /// Denies calls without a decision. Sent by the thread itself.
    Expire {
        /// The run that was parked.
        run: RunId,
        /// When it started, or was continued: a child's run may be parked several times.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<Time>,
    },
    /// Forgets the conversation: stops the run at hand, and removes messages, decisions, options, log and texts. The thread
    /// takes no other requests until this is done. What stays are its ids and the number of its runs.
    Forget,
    /// Says that the log and the texts are removed. Sent by the engine.
    Forgotten {
        /// Entries of the log that were removed.
        before: u64,
    },
    /// Ends the run at hand, which no driver has any longer. Its messages that are not in the transcript wait again.
    Settle {
        /// Run to end.
        run: RunId,
        /// Reason why it has no end: the thread's last result.
        why: String,
        /// Messages of the queue that are in the transcript ([`delivered`](super::delivered)).
        injected: Vec<EntryId>,
        /// Entries of the log.
        log: u64,
    },
    /// Stops a run that works for a call, also a parked one. Sent by the driver of the caller, or its thread.
    StopRun(RunId),
    /// Report of a child. Sent by the thread of the child.
    Child(Box<ChildReport>),
    /// A request of the thread's own run.
    Run(ControlAsk),
}

impl ThreadAsk {
    /// The request without known secrets. A front end does this before it sends the request, because an engine keeps
    /// requests before a worker sees them; the thread does it once more.
    ///
    /// # Errors
    /// When what is left is not a request.
    pub fn redacted(self, redactor: Option<&Redactor>) -> Result<Self, String> {
        let Some(redactor) = redactor.filter(|_| !matches!(self, Self::Run(_))) else { return Ok(self) };
        let unreadable =
            |_| "secret_withheld: the request cannot be read without a secret that it holds".to_owned();
        let json = Json::of(&self).map_err(unreadable)?;
        let clean = redactor.json(&json);
        if clean == json { Ok(self) } else { clean.to().map_err(unreadable) }
    }
}

/// The reply of a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ThreadReply {
    /// It is done and stored. The run at hand, if any.
    Accepted(Option<RunId>),
    /// It is not done, with the reason.
    Refused(String),
    /// To the run.
    Run(ControlReply),
}

/// A message of a thread to others, sent with the state that is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ThreadSend {
    /// Starts a run.
    Drive(Box<DriveInput>),
    /// Rings the doorbell of a run.
    Ring(RunId),
    /// Removes the first entries of the log and all texts, and then notifies the thread ([`ThreadAsk::Forgotten`]). Each
    /// invocation of the thread has ended by then, because one that is replayed reads the log.
    Forget {
        /// Entries of the log that are removed: all of them.
        before: u64,
    },
    /// A request to the thread itself, later.
    Later(Time, Box<ThreadAsk>),
    /// A request to another thread: its parent, or a child.
    Tell(ThreadId, Box<ThreadAsk>),
}
