//! Portable data that resumes a stopped turn.

use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::{StopReason, TotalUsage};
use crate::ids::{AgentId, CallDigest, CallId, RunId, SessionId, ThreadId, ToolName, TurnId};
use crate::json::Json;
use crate::message::{ApprovalRequest, Message};
use crate::time::Time;

/// Version that this crate writes, and the only one that it reads.
pub(crate) const CONTINUATION_VERSION: u32 = 1;

/// Maximum number of messages of a continuation.
pub(crate) const WAITING: usize = 256;

crate::wire_enum! {
    /// Kind of input that a continuation needs.
    #[non_exhaustive]
    pub enum ContinuationKind {
        /// Answer of the user.
        Clarification = "clarification",
        /// Decision of an approver.
        Approval = "approval",
        /// Higher limit, or simply another attempt.
        Deferred = "deferred",
    }
}

/// Call without a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PendingCall {
    /// Call id.
    pub call_id: CallId,
    /// Position of its assistant message in the transcript.
    pub message: u64,
    /// Reason why it is held.
    pub reason: String,
    /// Called tool.
    #[serde(default)]
    pub tool: ToolName,
    /// Digest that an approval must match. Empty matches nothing.
    #[serde(default)]
    pub digest: CallDigest,
    /// Run of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// Arguments to execute; `None` in data of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Json>,
    /// Work of the call, if it has started: the decisions are about that. `None` for a call that is held before it starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Box<PendingWork>>,
}

/// Work of a call, such as that of a sub-agent, that waits for approval.
///
/// ```
/// use harness_core::outcome::PendingWork;
///
/// /// What a person has to decide.
/// fn asked(work: &PendingWork) -> Vec<&str> {
///     work.requests.iter().map(|request| request.summary.as_str()).collect()
/// }
/// # let _ = asked;
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[non_exhaustive]
pub struct PendingWork {
    /// Attempt of the call, from 1. It is performed again under the same number.
    pub attempt: u32,
    /// Requests of the work ([`Ongoing::approvals`](crate::tool::Ongoing::approvals)).
    pub requests: Vec<ApprovalRequest>,
}

impl PendingWork {
    pub(crate) fn new(attempt: u32, requests: Vec<ApprovalRequest>) -> Self {
        Self { attempt, requests }
    }
}

/// Data that resumes a stopped turn, version 1. Newer versions are rejected.
///
/// Refers to the session's transcript by length, so its size does not grow with the transcript.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Continuation {
    /// Version of the format.
    #[serde(deserialize_with = "known_version")]
    pub version: u32,
    /// `TURN:KIND`.
    pub id: String,
    /// Kind of input that it needs.
    #[serde(rename = "type")]
    pub kind: ContinuationKind,
    /// Time of creation.
    pub created_at: Time,
    /// Stopped turn.
    pub turn_id: TurnId,
    /// Session with the transcript.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<ThreadId>,
    /// Assistant, as the caller names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assistant_id: Option<String>,
    /// Hash of the turn's descriptor; resuming with a different one is the caller's explicit choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub descriptor_hash: Option<String>,
    /// Stop reason of the turn.
    pub stop_reason: StopReason,
    /// Active agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// Length of the transcript.
    pub transcript_len: u64,
    /// Question, of a clarification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// Request of the model, of an approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<ApprovalRequest>,
    /// Held calls, of an approval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<PendingCall>,
    /// Iteration of the stop.
    pub iteration: u32,
    /// Tool calls of the turn.
    pub tool_call_count: u32,
    /// Usage of the turn.
    pub usage: TotalUsage,
    /// Queued messages: an open call must be followed by its result, so they are appended after it. At most the oldest
    /// 256.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<Arc<Message>>,
    /// Replacement by the approver, to be stored and sent by the host instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<Json>,
}

fn known_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let version = u32::deserialize(deserializer)?;
    if version == CONTINUATION_VERSION {
        return Ok(version);
    }
    Err(D::Error::custom(format_args!(
        "continuation version {version} is not supported: this program reads version {CONTINUATION_VERSION}; \
         use the program that wrote it, or a newer one"
    )))
}
