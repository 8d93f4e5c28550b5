//! Views of threads.

use std::sync::Arc;

use harness::core::message::Message;
use harness::core::port::{CompactionNote, ProposedCall};
use harness::core::{AgentId, ApprovalId, CallDigest, CallId, EntryId, Json, RunId, ThreadId, Time};
use harness::runtime::{
    DeliveryState, PartialBlock, QueueEntry, Snapshot, Status, ThreadAttributes, ThreadInfo,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::input::Delivery;
use super::schema::library;
use crate::stored::StoredThread;

/// State of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ThreadState {
    /// No run.
    Idle,
    /// No run, and messages that the next run delivers. Events report it as `idle`.
    Queued,
    /// A run is in progress.
    Generating,
    /// Its run waits for a decision.
    AwaitingApproval,
    /// Its run is being stopped.
    Aborting,
    /// Its transcript is being compacted.
    Compacting,
}

/// Status of a thread.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StatusView {
    /// State of the thread.
    state: ThreadState,
    /// Id of the current run.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<RunId>,
    /// Start of this status, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<Time>,
}

impl From<&Status> for StatusView {
    fn from(status: &Status) -> Self {
        let (state, run, since) = match status {
            Status::Generating { run, since } => (ThreadState::Generating, Some(run.clone()), Some(*since)),
            Status::AwaitingApproval { run, since } => {
                (ThreadState::AwaitingApproval, Some(run.clone()), Some(*since))
            }
            Status::Aborting { run } => (ThreadState::Aborting, Some(run.clone()), None),
            Status::Compacting => (ThreadState::Compacting, None, None),
            Status::Idle | _ => (ThreadState::Idle, None, None),
        };
        Self { state, run, since }
    }
}

impl StatusView {
    /// Status of a thread with that many queued messages.
    pub(crate) fn new(status: &Status, waiting: usize) -> Self {
        let view = Self::from(status);
        if *status == Status::Idle && waiting > 0 {
            Self { state: ThreadState::Queued, ..view }
        } else {
            view
        }
    }
}

/// A thread in a list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ThreadLine {
    /// Id of the thread.
    #[schema(value_type = String)]
    pub(crate) id: ThreadId,
    /// Status of the thread.
    pub(crate) status: StatusView,
    /// Name of its session, or the start of its first user message.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// User of its runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    user: Option<Arc<str>>,
    /// Data of the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    metadata: Option<Json>,
    /// Time of its creation as ISO text, if it has a session or is on an engine.
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<String>,
    /// Time of the last message of its session as ISO text; on an engine, of the start of its last run.
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_at: Option<String>,
    /// Number of messages, if known from its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<usize>,
    /// Reason why its session cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

impl ThreadLine {
    pub(crate) fn new(status: StatusView, attributes: ThreadAttributes, stored: StoredThread) -> Self {
        let StoredThread { id, title, created, updated, messages, problem, .. } = stored;
        let ThreadAttributes { user, metadata, .. } = attributes;
        Self {
            id,
            status,
            title,
            user,
            metadata,
            created_at: created,
            updated_at: updated,
            messages,
            problem,
        }
    }

    pub(crate) fn state(&self) -> ThreadState {
        self.status.state
    }

    pub(crate) fn has_user(&self, user: &str) -> bool {
        self.user.as_deref() == Some(user)
    }

    /// Whether the data of the caller has these entries.
    pub(crate) fn has_metadata(&self, entries: &Map<String, Value>) -> bool {
        let data: Option<Map<String, Value>> = self.metadata.as_ref().and_then(|data| data.to().ok());
        entries.is_empty()
            || data.is_some_and(|data| entries.iter().all(|(name, value)| data.get(name) == Some(value)))
    }
}

/// Threads, by name.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ThreadList {
    /// Threads of the page.
    pub(crate) threads: Vec<ThreadLine>,
    /// Value of `after` for the next page; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(crate) next: Option<ThreadId>,
}

/// State of a thread.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ThreadView {
    /// Id of the thread.
    #[schema(value_type = String)]
    id: ThreadId,
    /// Status of the thread.
    status: StatusView,
    /// User of its runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    user: Option<Arc<str>>,
    /// Values laid over the defaults of the descriptor's context.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    context: Option<Json>,
    /// Data of the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    metadata: Option<Json>,
    /// The model of the next run.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// Number of messages in its transcript, including those of the current run.
    messages: usize,
    /// Number of queued messages.
    waiting: usize,
    /// Number of pending calls.
    approvals: usize,
    /// Blocks of the answer in progress; absent if no model call is in flight.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<Vec<Coming>>,
    /// Calls in flight, in the order of their start.
    #[schema(value_type = Vec<String>)]
    pending_calls: Vec<CallId>,
    /// Error of the last run.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The number of the next event.
    next_seq: u64,
}

impl ThreadView {
    pub(crate) fn new(id: ThreadId, info: ThreadInfo, snapshot: Snapshot, approvals: usize) -> Self {
        let ThreadAttributes { user, context, metadata, .. } = info.attributes;
        Self {
            id,
            user,
            context,
            metadata,
            status: StatusView::new(&snapshot.status, snapshot.waiting),
            model: snapshot.model.map(|model| model.as_str().to_owned()),
            messages: snapshot.messages.len(),
            waiting: snapshot.waiting,
            approvals,
            answer: snapshot.answer.map(|blocks| blocks.iter().map(Coming::from).collect()),
            pending_calls: snapshot.pending_calls,
            error: snapshot.error,
            next_seq: info.next_seq,
        }
    }
}

/// A block of an answer in progress.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
pub(crate) enum Coming {
    Text {
        text: String,
    },
    Thinking {
        thinking: String,
    },
    ToolCall {
        index: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        name: String,
        arguments: String,
    },
    Unknown {},
}

impl From<&PartialBlock> for Coming {
    fn from(block: &PartialBlock) -> Self {
        match block {
            PartialBlock::Text(text) => Self::Text { text: text.clone() },
            PartialBlock::Thinking(thinking) => Self::Thinking { thinking: thinking.clone() },
            PartialBlock::Call { index, id, name, arguments } => Self::ToolCall {
                index: *index,
                id: id.as_ref().map(|id| id.as_str().to_owned()),
                name: name.as_str().to_owned(),
                arguments: arguments.clone(),
            },
            _ => Self::Unknown {},
        }
    }
}

/// A part of a transcript.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MessageList {
    /// The messages, each tagged by `role`.
    #[schema(value_type = Vec<library::Message>)]
    pub(crate) messages: Vec<Arc<Message>>,
    /// Position of the first message.
    pub(crate) from: usize,
    /// Number of messages in the transcript.
    pub(crate) total: usize,
}

/// A started run.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Started {
    /// Id of the run.
    #[schema(value_type = String)]
    pub(crate) run: RunId,
}

/// A queued message.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Queued {
    /// Id of the queue entry.
    #[schema(value_type = String)]
    pub(crate) entry: EntryId,
}

/// Result of an abort.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Aborted {
    /// Whether a run was aborted.
    pub(crate) stopped: bool,
}

/// Result of a compaction.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Compacted {
    /// Whether the transcript was compacted.
    pub(crate) compacted: bool,
    /// Actions of the compaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<library::CompactionNote>)]
    pub(crate) note: Option<Arc<CompactionNote>>,
}

/// An entry of the queue.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EntryView {
    /// Id of the entry.
    #[schema(value_type = String)]
    id: EntryId,
    /// Queued message.
    #[schema(value_type = library::Message)]
    message: Arc<Message>,
    /// Time of delivery.
    delivery: Delivery,
    /// `waiting`, or `delivering` if a run has accepted it but not yet added it to the transcript.
    state: &'static str,
    /// When it was queued, in milliseconds since 1970.
    #[schema(value_type = i64)]
    queued_at: Time,
    /// Whether an idle thread starts a run with it.
    wakes: bool,
}

impl From<QueueEntry> for EntryView {
    fn from(entry: QueueEntry) -> Self {
        let state = if entry.state == DeliveryState::Waiting { "waiting" } else { "delivering" };
        Self {
            id: entry.id,
            message: entry.message,
            delivery: entry.mode.into(),
            state,
            queued_at: entry.queued_at,
            wakes: entry.wakes,
        }
    }
}

/// Lists the queued messages in the order of their delivery.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Queue {
    /// Queued messages.
    pub(crate) entries: Vec<EntryView>,
}

/// A pending call.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ApprovalView {
    /// Id of its thread.
    #[schema(value_type = String)]
    pub(crate) thread: ThreadId,
    /// Id of the approval, used in the path of the decision.
    #[schema(value_type = String)]
    id: ApprovalId,
    /// Binds a decision to this call, with these arguments, in this run.
    #[schema(value_type = String)]
    digest: CallDigest,
    /// Id of the call.
    #[schema(value_type = String)]
    call_id: CallId,
    /// Agent that proposed the call.
    #[schema(value_type = String)]
    agent: AgentId,
    /// Call of the parent agent; present if the agent is a sub-agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    parent_call: Option<CallId>,
    /// Name of the tool.
    tool: String,
    /// Arguments of the call.
    #[schema(value_type = Object)]
    arguments: Json,
    /// Reason for the approval; absent if it is not known any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// `held` in a run that awaits the decision, or `parked` in the session by an earlier run: the
    /// decision resumes the thread.
    state: &'static str,
    /// The run that holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    run: Option<RunId>,
}

impl ApprovalView {
    pub(crate) fn held(thread: ThreadId, proposed: ProposedCall) -> Self {
        let run = proposed.origin.run.clone();
        Self { run, state: "held", ..Self::parked(thread, proposed) }
    }

    pub(crate) fn parked(thread: ThreadId, proposed: ProposedCall) -> Self {
        Self {
            thread,
            id: proposed.id(),
            digest: proposed.digest(),
            call_id: proposed.call.id.clone(),
            agent: proposed.agent,
            parent_call: proposed.origin.parent.as_ref().map(|parent| parent.call.clone()),
            tool: proposed.call.name.as_str().to_owned(),
            arguments: proposed.call.arguments.clone(),
            reason: Some(proposed.reason).filter(|reason| !reason.is_empty()),
            state: "parked",
            run: None,
        }
    }
}

/// Pending calls.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ApprovalList {
    /// The calls in the order in which they were held.
    pub(crate) approvals: Vec<ApprovalView>,
}
