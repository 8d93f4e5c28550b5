//! Requests and replies of the port.

use std::sync::Arc;

use harness_core::message::Message;
use harness_core::port::{Decision, ProposedCall};
use harness_core::{ApprovalId, CallDigest, EntryId, Json, ThreadId, Time};
use serde::{Deserialize, Serialize};

use crate::prompt::MessageOptions;
use crate::queue::DeliveryMode;
use crate::thread::Status;

/// User, context values and data of the caller: of a thread, for runs whose messages have none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ThreadAttributes {
    /// User of its runs ([`Origin::user`](harness_core::Origin::user)).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<Arc<str>>,
    /// Values laid over the defaults of the descriptor's context, an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Json>,
    /// Data of the caller, an object ([`Origin::metadata`](harness_core::Origin::metadata)).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
}

/// A message for a thread.
///
/// ```
/// use harness_core::message::Message;
/// use harness_runtime::{ThreadMessage, DeliveryMode};
///
/// let steering = ThreadMessage::new(Message::user("Only the shoes."), DeliveryMode::BetweenRounds).quiet();
/// assert!(!steering.wakes);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadMessage {
    /// Id of the queue entry. Default: generated.
    pub entry: Option<EntryId>,
    /// Message to deliver.
    pub message: Arc<Message>,
    /// Time of delivery to a busy thread.
    pub mode: DeliveryMode,
    /// Whether an idle thread starts a run with it. Default: `true`.
    pub wakes: bool,
    /// Options of the run that it starts.
    pub options: MessageOptions,
}

impl ThreadMessage {
    /// A message that wakes an idle thread.
    pub fn new(message: impl Into<Message>, mode: DeliveryMode) -> Self {
        let message = Arc::new(message.into());
        Self { entry: None, message, mode, wakes: true, options: MessageOptions::default() }
    }

    /// Sets the id of the queue entry.
    #[must_use]
    pub fn named(mut self, entry: impl Into<EntryId>) -> Self {
        self.entry = Some(entry.into());
        self
    }

    /// Leaves an idle thread idle: its next run takes the message.
    #[must_use]
    pub fn quiet(mut self) -> Self {
        self.wakes = false;
        self
    }

    /// Sets options of the run that it starts.
    #[must_use]
    pub fn options(mut self, options: MessageOptions) -> Self {
        self.options = options;
        self
    }
}

/// State of a thread, without its transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadInfo {
    /// Status. A thread whose sub-agent awaits a decision awaits it, too.
    pub status: Status,
    /// Number of queued messages.
    pub waiting: usize,
    /// User, context values and data of the caller.
    pub attributes: ThreadAttributes,
    /// Hash of the descriptor of its agents.
    pub descriptor: Option<Arc<str>>,
    /// Number of the next event.
    pub next_seq: u64,
    /// Number of the first event of the current run, or of the last run of an idle thread.
    pub turn_seq: u64,
}

impl ThreadInfo {
    /// A thread in this status, without messages and events.
    pub fn new(status: Status) -> Self {
        let attributes = ThreadAttributes::default();
        Self { status, waiting: 0, attributes, descriptor: None, next_seq: 0, turn_seq: 0 }
    }
}

/// A thread in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadSummary {
    /// Id of the thread.
    pub id: ThreadId,
    /// Status, as in [`ThreadInfo`].
    pub status: Status,
    /// Number of queued messages.
    pub waiting: usize,
    /// User, context values and data of the caller.
    pub attributes: ThreadAttributes,
    /// Start of its first user message, if the service knows it without loading the transcript.
    pub title: Option<String>,
    /// Number of messages, if the service knows it without loading the transcript.
    pub messages: Option<usize>,
    /// When the thread was created, if the service knows it.
    pub created: Option<Time>,
    /// When its last run was started, if the service knows it.
    pub updated: Option<Time>,
}

impl ThreadSummary {
    /// A thread in this status, without messages.
    pub fn new(id: ThreadId, status: Status) -> Self {
        let attributes = ThreadAttributes::default();
        Self { id, status, waiting: 0, attributes, title: None, messages: None, created: None, updated: None }
    }
}

/// A call that waits for a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingApproval {
    /// Call as it was proposed.
    pub proposed: ProposedCall,
    /// Whether an earlier run parked it, so that a decision resumes the thread. Otherwise a run holds it.
    pub is_parked: bool,
}

/// A decision on the call that was shown under an approval and a digest. It applies to that call only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalDecision {
    /// Approval of the call ([`ProposedCall::id`]).
    pub approval: ApprovalId,
    /// Digest of the call that was shown ([`ProposedCall::digest`]).
    pub digest: CallDigest,
    /// Decision about the call.
    pub decision: Decision,
}
