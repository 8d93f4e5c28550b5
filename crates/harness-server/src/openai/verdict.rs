//! Ends of runs as the APIs of OpenAI name them.

use axum::http::StatusCode;
use harness::core::message::FinishReason;
use harness::core::{Outcome, StopReason};
use harness::runtime::Report;
use serde::Serialize;
use utoipa::ToSchema;

use super::error::INSUFFICIENT_QUOTA;
use crate::fault::Fault;

/// End of a run, with what the APIs distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// An answer or a question.
    Answered,
    /// A limit was reached; there may be a partial answer.
    Limited,
    /// A budget of the user, the tenant or everyone is used up.
    OverBudget,
    /// A guardrail or a policy ended the run.
    Filtered,
    /// The model refused.
    Refused,
    /// A call requires approval.
    Pending,
    /// The run was cancelled.
    Cancelled,
    /// The run failed.
    Failed,
}

impl Verdict {
    pub(crate) fn of(report: &Report, pending: usize) -> Self {
        match report.outcome() {
            Outcome::AwaitingApproval if pending > 0 => Self::Pending,
            Outcome::Completed | Outcome::NeedsClarification | Outcome::AwaitingApproval => {
                if is_cut(report) { Self::Limited } else { Self::Answered }
            }
            Outcome::Deferred if report.end.stop.is_over_shared_budget() => Self::OverBudget,
            Outcome::Deferred => Self::Limited,
            Outcome::Failed => failure(report.reason()),
        }
    }
}

/// Error for a run without an answer, with the code that OpenAI has for a budget that is used up.
pub(super) fn failed(verdict: Verdict, report: &Report) -> Fault {
    let message = report.problem().unwrap_or_else(|| "the run failed".to_owned());
    if verdict == Verdict::OverBudget {
        return Fault::new(StatusCode::TOO_MANY_REQUESTS, INSUFFICIENT_QUOTA, message);
    }
    Fault::new(StatusCode::INTERNAL_SERVER_ERROR, report.reason().as_str(), message)
}

#[expect(clippy::wildcard_enum_match_arm, reason = "all other failures are errors of the server")]
fn failure(reason: StopReason) -> Verdict {
    match reason {
        StopReason::ModelRefused => Verdict::Refused,
        StopReason::PolicyDenied | StopReason::GuardrailTriggered => Verdict::Filtered,
        StopReason::Cancelled => Verdict::Cancelled,
        _ => Verdict::Failed,
    }
}

/// Whether the output limit of the model cut the answer.
fn is_cut(report: &Report) -> bool {
    let last = report.messages().rev().find_map(|message| message.as_assistant());
    last.is_some_and(|answer| answer.stop_reason == FinishReason::Length)
}

/// End of the run in the words of harness.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct RunDetail {
    /// Id of the run.
    run: String,
    /// Outcome: `completed`, `needs_clarification`, `awaiting_approval`, `deferred` or `failed`.
    outcome: &'static str,
    /// Stop reason, as a stable code.
    stop_reason: &'static str,
    /// Human-readable problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

impl RunDetail {
    pub(crate) fn of(report: &Report) -> Self {
        Self {
            run: report.run.as_str().to_owned(),
            outcome: report.outcome().as_str(),
            stop_reason: report.reason().as_str(),
            problem: report.problem(),
        }
    }
}
