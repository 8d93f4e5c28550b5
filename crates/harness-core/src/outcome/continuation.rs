//! The portable data that resumes a turn which stopped before its end.

use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::{StopReason, TotalUsage};
use crate::ids::{AgentId, ApprovalId, CallDigest, CallId, RunId, SessionId, ThreadId, ToolName, TurnId};
use crate::json::Json;
use crate::message::{ApprovalRequest, Message};
use crate::time::Time;

/// The version that this crate writes, and the only one it reads.
pub(crate) const CONTINUATION_VERSION: u32 = 1;

/// Messages that a continuation carries at most.
pub(crate) const WAITING: usize = 256;

/// What a continuation waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContinuationKind {
    /// An answer of the user.
    Clarification,
    /// A decision.
    Approval,
    /// More of what ran out.
    Deferred,
}

impl ContinuationKind {
    /// The wire name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Clarification => "clarification",
            Self::Approval => "approval",
            Self::Deferred => "deferred",
        }
    }
}

/// A call that waits for a decision, by its place in the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PendingCall {
    /// The call.
    pub call_id: CallId,
    /// The position of its assistant message in the transcript.
    pub message: u64,
    /// Why it was held.
    pub reason: String,
    /// What it calls.
    #[serde(default = "unnamed")]
    pub tool: ToolName,
    /// What an approval of it is bound to. Empty matches nothing.
    #[serde(default = "no_digest")]
    pub digest: CallDigest,
    /// The run in which it was parked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The arguments that would be executed; `None` when an earlier version parked it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Json>,
}

impl PendingCall {
    /// Names the question whether it may run.
    pub fn approval_id(&self) -> ApprovalId {
        self.digest.approval()
    }
}

fn no_digest() -> CallDigest {
    CallDigest::from("")
}

fn unnamed() -> ToolName {
    ToolName::from("")
}

/// Resumes a turn that stopped before its end, version 1.
///
/// Refers to the session's transcript by length instead of holding it, so its size does not grow with
/// the work. A newer version is refused when read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Continuation {
    /// The version that this crate writes.
    #[serde(deserialize_with = "known_version")]
    pub version: u32,
    /// `TURN:KIND`.
    pub id: String,
    /// What it waits for.
    #[serde(rename = "type")]
    pub kind: ContinuationKind,
    /// When it was made.
    pub created_at: Time,
    /// The turn that stopped.
    pub turn_id: TurnId,
    /// The session that holds its transcript.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<ThreadId>,
    /// The assistant of the turn's caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assistant_id: Option<String>,
    /// The descriptor that the turn ran under; resuming under another is the caller's explicit choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub descriptor_hash: Option<String>,
    /// Why the turn stopped.
    pub stop_reason: StopReason,
    /// The active agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// Messages in the transcript when it was made.
    pub transcript_len: u64,
    /// The question, of a clarification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// The request, of an approval that the model asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<ApprovalRequest>,
    /// The calls that wait, of an approval that a gate asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<PendingCall>,
    /// The iteration in which the turn stopped.
    pub iteration: u32,
    /// Tool calls of the turn.
    pub tool_call_count: u32,
    /// What the turn used.
    pub usage: TotalUsage,
    /// Messages that were pushed in while calls were parked: behind an open call nothing may stand but its
    /// result, so they come after it. The oldest 256 of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<Arc<Message>>,
    /// What the approver gave in its place; then this is what a host stores and sends.
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
