//! The flat turn result of the source, made from the end of a turn.

use harness_control::checks::SPARSE_EVIDENCE;
use harness_core::outcome::{Continuation, ContinuationKind, Purpose, ThinEvidence, TotalUsage};
use harness_core::{End, Evidence, Origin, Outcome, Stop, StopReason};
use serde_json::{Value, json};

use super::seen::object;
use super::{json_of, turn_id};

/// `outcome`, `stopReason`, `turnId`, `sessionId?`, `assistantMessage?`, `continuation?`, `traceSummary`, `usage`,
/// `metadata?`.
pub(super) fn turn_result(end: &End, origin: &Origin) -> Value {
    object([
        ("outcome", Some(json!(end.outcome().as_str()))),
        ("stopReason", Some(json!(end.reason().as_str()))),
        ("turnId", Some(json!(turn_id(origin, end.turns)))),
        ("sessionId", origin.session.as_ref().map(json_of)),
        ("assistantMessage", shown_text(end).map(|text| json!({ "text": text }))),
        ("continuation", end.continuation.as_deref().map(|made| continuation(made, &end.stop))),
        (
            "traceSummary",
            Some(json!({
                // The format counts the iteration that a limit refused, too.
                "iterationCount": end.refused_iteration.unwrap_or(end.iterations),
                "toolCallCount": end.usage.tool_calls,
                "hadContinuation": end.resumed || end.continuation.is_some(),
                "finalEventType": "turn_finished",
            })),
        ),
        ("usage", Some(totals(&end.usage))),
        ("metadata", metadata(&end.stop)),
    ])
}

/// The text for the user. The format has none with an approval, and of failures only with a refusal, thin evidence and
/// a cancellation.
fn shown_text(end: &End) -> Option<&str> {
    let shown = match end.outcome() {
        Outcome::Completed | Outcome::NeedsClarification | Outcome::Deferred => true,
        Outcome::AwaitingApproval => false,
        Outcome::Failed => {
            use StopReason::{Cancelled, EvidenceDensityViolation, ModelRefused};
            matches!(end.reason(), ModelRefused | EvidenceDensityViolation | Cancelled)
        }
    };
    end.answer.as_deref().filter(|_| shown)
}

fn totals(usage: &TotalUsage) -> Value {
    let answers = usage.of(Purpose::Answer);
    object([
        // The format counts answers.
        ("modelCalls", Some(json!(answers.model_calls - answers.failed_calls))),
        ("toolCalls", Some(json!(usage.tool_calls))),
        ("totalInputTokens", usage.input_tokens.map(|n| json!(n))),
        ("totalOutputTokens", usage.output_tokens.map(|n| json!(n))),
        ("totalCostUnits", usage.cost.as_ref().map(json_of)),
        ("totalLatencyMs", usage.latency_ms.map(|n| json!(n))),
    ])
}

/// The result's `metadata`, which holds the evidence; none for limits, loops and cancellations.
fn metadata(stop: &Stop) -> Option<Value> {
    if stop.reason == StopReason::RedundantToolLoop {
        return None;
    }
    Some(match &stop.evidence {
        Evidence::Invalid(invalid) => object([
            ("reason", Some(json!(invalid.reason))),
            ("kind", invalid.kind.as_ref().map(json_of)),
            ("httpStatus", invalid.http_status.map(|status| json!(status))),
            ("retriedAt", invalid.retried_at.as_ref().filter(|at| !at.is_empty()).map(json_of)),
        ]),
        Evidence::Tool { name, code } => {
            object([("toolName", Some(json_of(name))), ("code", code.as_ref().map(json_of))])
        }
        Evidence::Fault(fault) => json!({ "errorMessage": fault.message }),
        Evidence::ToolResult(evidence) => json!({ "clarification": json_of(evidence) }),
        Evidence::Density(thin) => json!({ "evidenceDensity": density(thin) }),
        Evidence::Approval(request) => json!({ "approvalRequest": json_of(request) }),
        Evidence::Held(requests) => json!({ "approvalRequests": json_of(requests) }),
        Evidence::Gate { gate, tool, reason, .. } => {
            json!({ "gateName": json_of(gate), "toolName": json_of(tool), "reason": reason })
        }
        Evidence::Guardrail { guardrail, stage, reason } => object([
            ("guardrailName", Some(json_of(guardrail))),
            ("stage", Some(json_of(stage))),
            ("reason", reason.as_ref().map(json_of)),
        ]),
        Evidence::None | Evidence::Limit(_) | Evidence::Loop { .. } | Evidence::Cancelled { .. } | _ => {
            return None;
        }
    })
}

/// An answer with too little evidence. The offset is that of the marker's name in the text, where it hardly ever
/// stands: 0.
#[expect(clippy::cast_precision_loss, reason = "the ratio is a double in the format")]
fn density(thin: &ThinEvidence) -> Value {
    let claims: Vec<_> = thin
        .claim_markers
        .iter()
        .map(|text| json!({ "text": text, "offset": 0, "category": SPARSE_EVIDENCE }))
        .collect();
    json!({
        "claimsCount": claims.len(),
        "evidenceUnits": thin.output_chars,
        "ratio": claims.len() as f64 / thin.output_chars.max(1) as f64,
        "violatingClaims": claims,
    })
}

fn continuation(continuation: &Continuation, stop: &Stop) -> Value {
    if let Some(given) = &continuation.replaced_by {
        return json_of(given);
    }
    let created_at = continuation.created_at.iso();
    object([
        ("id", Some(json_of(&continuation.id))),
        ("type", Some(json_of(&continuation.kind))),
        ("createdAt", Some(json!(created_at))),
        ("turnId", Some(json_of(&continuation.turn_id))),
        ("sessionId", continuation.session_id.as_ref().map(json_of)),
        (
            "resumeToken",
            Some(json!(format!("{}:{}:{created_at}", continuation.turn_id, continuation.kind.as_str()))),
        ),
        ("state", Some(state(continuation, stop))),
        (
            "metadata",
            Some(object([
                ("assistantId", Some(json!(continuation.assistant_id.as_deref().unwrap_or_default()))),
                ("threadId", continuation.thread_id.as_ref().map(json_of)),
            ])),
        ),
    ])
}

fn state(continuation: &Continuation, stop: &Stop) -> Value {
    let reason = ("stopReason", Some(json_of(&continuation.stop_reason)));
    match continuation.kind {
        ContinuationKind::Clarification => {
            let evidence = if let Evidence::ToolResult(evidence) = &stop.evidence {
                Some(json_of(evidence))
            } else {
                None
            };
            object([
                reason,
                ("question", continuation.question.as_ref().map(json_of)),
                ("toolEvidence", evidence),
            ])
        }
        ContinuationKind::Approval => {
            let pending = &continuation.pending;
            object([
                reason,
                ("request", continuation.request.as_ref().map(json_of)),
                ("pending", (!pending.is_empty()).then(|| json_of(pending))),
            ])
        }
        ContinuationKind::Deferred | _ => object([
            reason,
            ("iteration", Some(json!(continuation.iteration))),
            ("toolCallCount", Some(json!(continuation.tool_call_count))),
        ]),
    }
}
