//! What is kept of a continuation.

use harness_core::continuation::{Continuation, ContinuationKind};
use harness_core::{Json, Time};
use serde::{Deserialize, Serialize};

/// Where a record stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It waits.
    Pending,
    /// Somebody is resuming it.
    Resuming,
    /// It was resumed, and the work is complete.
    Completed,
    /// It was given up.
    Cancelled,
    /// Its time is over.
    Expired,
    /// The conversation stopped at another place since.
    Superseded,
    /// Resuming it failed.
    Failed,
}

impl Status {
    /// Whether nothing more becomes of it.
    pub fn is_terminal(self) -> bool {
        !matches!(self, Self::Pending | Self::Resuming)
    }

    /// The wire name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Resuming => "resuming",
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
            Self::Superseded => "superseded",
            Self::Failed => "failed",
        }
    }
}

/// What it waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WaitFor {
    /// The user says something.
    UserReply,
    /// Somebody decides about this approval: the model's request, or the parked calls.
    ApprovalResolution {
        /// Which.
        #[serde(rename = "approvalId")]
        approval_id: String,
    },
    /// An operation outside gives its result.
    ExternalResult {
        /// Which.
        #[serde(rename = "operationId")]
        operation_id: String,
    },
    /// A time comes, or whoever schedules says that it has come.
    ScheduledWake,
}

impl WaitFor {
    /// What a continuation of a kind waits for.
    pub fn of(continuation: &Continuation) -> Self {
        match continuation.kind {
            ContinuationKind::Clarification => Self::UserReply,
            ContinuationKind::Approval => Self::ApprovalResolution {
                approval_id: continuation
                    .request
                    .as_ref()
                    .map_or_else(|| continuation.id.clone(), |request| request.id.clone()),
            },
            ContinuationKind::Deferred | _ => Self::ScheduledWake,
        }
    }

    /// The wire name.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::UserReply => "user_reply",
            Self::ApprovalResolution { .. } => "approval_resolution",
            Self::ExternalResult { .. } => "external_result",
            Self::ScheduledWake => "scheduled_wake",
        }
    }
}

/// How long it waits, and how often it may be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Bounds {
    /// The first moment at which it is too late.
    pub expires_at: Time,
    /// Attempts at most.
    pub max_resume_attempts: u32,
    /// Attempts so far.
    pub resume_attempts: u32,
}

impl Bounds {
    pub(super) fn new(expires_at: Time, max_resume_attempts: u32) -> Self {
        Self { expires_at, max_resume_attempts, resume_attempts: 0 }
    }
}

/// How far the telling of an outcome has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryStatus {
    /// It was not tried.
    #[default]
    Pending,
    /// It was told.
    Delivered,
    /// Telling it failed; it is tried once.
    Failed,
}

/// Where the outcome is to be told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Delivery {
    /// The host's own description of the place.
    pub target: Json,
    /// How far it has come.
    #[serde(default)]
    pub status: DeliveryStatus,
}

impl Delivery {
    /// To be told there.
    pub fn to(target: Json) -> Self {
        Self { target, status: DeliveryStatus::Pending }
    }
}

/// A continuation that waits, or has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ContinuationRecord {
    /// The version of this form: 1.
    #[serde(deserialize_with = "known_version")]
    pub version: u32,
    /// `cont_TURN_MILLISECONDS`.
    pub id: String,
    /// Counts the changes; every change names the revision that it was made from.
    pub revision: u64,
    /// Where it stands.
    pub status: Status,
    /// What it waits for.
    pub wait_for: WaitFor,
    /// What resumes the work.
    pub continuation: Continuation,
    /// Where the outcome is to be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Delivery>,
    /// How long it waits, and how often it may be tried.
    pub bounds: Bounds,
    /// When it was made.
    pub created_at: Time,
    /// When it changed last.
    pub updated_at: Time,
    /// Why nothing more becomes of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal_reason: Option<String>,
}

/// The version of [`ContinuationRecord`].
pub(super) const RECORD_VERSION: u32 = 1;

fn known_version<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let version = u32::deserialize(deserializer)?;
    if version == RECORD_VERSION {
        return Ok(version);
    }
    Err(serde::de::Error::custom(format_args!(
        "continuation record version {version} is not supported: this program reads version {RECORD_VERSION}"
    )))
}
