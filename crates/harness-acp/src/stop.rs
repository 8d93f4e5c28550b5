//! Stop reasons for the client.

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::StopReason as AcpStopReason;
use harness::core::limits::Limit;
use harness::core::message::FinishReason;
use harness::core::{Evidence, StopReason};
use harness::runtime::{ErrorClass, Report, RuntimeError};
use serde_json::json;

/// Response to a prompt.
///
/// | stop reason | answer |
/// |---|---|
/// | `answer_finalized`, `completion_waived` | `end_turn`; `max_tokens` when the model was cut off at its output limit |
/// | `clarification_required` | `end_turn`: the question is the answer, and the next prompt answers it |
/// | `max_iterations_reached`, `max_tool_calls_reached`, `max_turns_reached` | `max_turn_requests` |
/// | `budget_reached` by tokens, `context_overflow` | `max_tokens` |
/// | `model_refused` | `refusal` |
/// | `cancelled` | `cancelled` |
/// | all others | an error with the cause; its data contains outcome and stop reason |
pub(crate) fn reason(report: &Report) -> Result<AcpStopReason, Error> {
    let reason = report.end.reason();
    match reason {
        StopReason::AnswerFinalized | StopReason::CompletionWaived => {
            Ok(if was_cut_off(report) { AcpStopReason::MaxTokens } else { AcpStopReason::EndTurn })
        }
        StopReason::ClarificationRequired => Ok(AcpStopReason::EndTurn),
        StopReason::MaxIterationsReached | StopReason::MaxToolCallsReached | StopReason::MaxTurnsReached => {
            Ok(AcpStopReason::MaxTurnRequests)
        }
        StopReason::ContextOverflow => Ok(AcpStopReason::MaxTokens),
        StopReason::BudgetReached if is_of_tokens(&report.end.stop.evidence) => Ok(AcpStopReason::MaxTokens),
        StopReason::ModelRefused => Ok(AcpStopReason::Refusal),
        StopReason::Cancelled => Ok(AcpStopReason::Cancelled),
        StopReason::BudgetReached
        | StopReason::ApprovalRequired
        | StopReason::TimeoutReached
        | StopReason::Stalled
        | StopReason::BackendDeferred
        | StopReason::RedundantToolLoop
        | StopReason::ToolUnavailable
        | StopReason::ToolErrorUnrecoverable
        | StopReason::ModelInvalidResponse
        | StopReason::InvalidOutput
        | StopReason::RuntimeError
        | StopReason::EvidenceDensityViolation
        | StopReason::PolicyDenied
        | StopReason::GuardrailTriggered
        | StopReason::InternalInvariant
        | _ => Err(in_the_way(report)),
    }
}

fn was_cut_off(report: &Report) -> bool {
    let last = report.messages().rev().find_map(|message| message.as_assistant());
    last.is_some_and(|answer| answer.stop_reason == FinishReason::Length)
}

fn is_of_tokens(evidence: &Evidence) -> bool {
    matches!(evidence, Evidence::Limit(reached) if reached.limit == Limit::Tokens)
}

fn in_the_way(report: &Report) -> Error {
    let stop = &report.end.stop;
    let message = report.problem().unwrap_or_else(|| stop.reason.meaning().to_owned());
    Error::new(Error::internal_error().code, message)
        .data(json!({ "outcome": stop.outcome().as_str(), "stopReason": stop.reason.as_str() }))
}

/// Error of a run that could not start.
pub(crate) fn not_started(error: &RuntimeError) -> Error {
    let code = match error.class() {
        ErrorClass::Invalid
        | ErrorClass::NotFound
        | ErrorClass::Conflict
        | ErrorClass::Closed
        | ErrorClass::Full
        | ErrorClass::Unsupported
        | ErrorClass::Elsewhere => Error::invalid_request().code,
        ErrorClass::Failed => Error::internal_error().code,
    };
    Error::new(code, error.to_string()).data(json!({ "kind": error.kind() }))
}
