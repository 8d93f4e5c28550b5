//! Decisions in the source's form.

use harness_control::{ControlState, Feedback, RunStatus, StopCode, StopDecision};
use harness_core::{End, Evidence};
use serde_json::{Map, Value, json};

/// Event of a decision; none for a turn that simply continues. The source also reports when it let
/// the signal go.
pub(super) fn events(decision: &StopDecision, strict: bool, error: &str) -> Vec<Value> {
    let event = |data: Value| json!({ "event_type": "stop_decision", "data": data });
    let turn = decision.turn;
    if decision.stops {
        let waived = decision.waived.then(|| {
            event(json!({
                "decision": "stop", "reason": "work_complete_retries_exhausted", "turn": turn,
                "retries": decision.retries,
            }))
        });
        let stop = json!({
            "status": status(decision), "reason": reason(decision, strict, error), "turn_count": turn,
        });
        return waived.into_iter().chain([event(stop)]).collect();
    }
    if matches!(decision.code, StopCode::AgentWorking | StopCode::ContinuationPrompt) {
        return Vec::new();
    }
    let mut data = Map::new();
    data.insert("decision".to_owned(), json!("continue"));
    data.insert("reason".to_owned(), json!(decision.code));
    data.insert("turn".to_owned(), json!(turn));
    if decision.code == StopCode::WorkCompleteNotCalled {
        data.insert("retry".to_owned(), json!(decision.retries));
        data.insert("max_retries".to_owned(), json!(decision.max_retries));
    } else if decision.code == StopCode::WorkCompleteRequiredStrict {
        data.insert("retries".to_owned(), json!(decision.retries));
        data.insert("max_retries".to_owned(), json!(decision.max_retries));
    } else if let Some(gaps) = &decision.gaps {
        data.insert("gaps".to_owned(), json!(gaps));
    } else if let Some(Feedback::HookBlock { reason, .. }) = &decision.feedback {
        data.insert("hook_reason".to_owned(), json!(reason));
    } else if let Some(Feedback::ControlInvariant { failed_checks, .. }) = &decision.feedback {
        data.insert("failed_checks".to_owned(), json!(failed_checks));
    }
    vec![event(Value::Object(data))]
}

/// The status word of a run after a decision.
pub(super) fn status(decision: &StopDecision) -> &'static str {
    if decision.stops { RunStatus::of(decision.code).as_str() } else { "running" }
}

/// The stop reason of the source.
#[expect(clippy::wildcard_enum_match_arm, reason = "of the others the source has no words")]
pub(super) fn reason(decision: &StopDecision, strict: bool, error: &str) -> Value {
    let (turn, mut details) = (decision.turn, Map::new());
    details.insert("turn".to_owned(), json!(turn));
    let message = match decision.code {
        StopCode::AgentDone => {
            for (key, verified) in [
                ("contract_verified", decision.contract_verified),
                ("work_items_verified", decision.work_items_verified),
            ] {
                if verified == Some(true) {
                    details.insert(key.to_owned(), json!(true));
                }
            }
            "Agent completed task".to_owned()
        }
        StopCode::Failed => {
            details.insert("error".to_owned(), json!(error));
            format!("Agent turn failed: {error}")
        }
        StopCode::MaxTurns => {
            details.insert("max_turns".to_owned(), json!(decision.max_turns));
            if let Some(gate) = decision.first_unmet.filter(|_| strict) {
                details.insert("completion_gate".to_owned(), json!(gate));
            }
            format!("Reached maximum of {} turns", decision.max_turns)
        }
        StopCode::Stalled => {
            details.insert("stall_turns".to_owned(), json!(decision.stall_turns));
            format!("No progress detected for {} turns", decision.stall_turns.unwrap_or(0))
        }
        other => other.to_string(),
    };
    json!({ "kind": decision.code, "message": message, "details": details })
}

/// Facts in the guidance for the model.
pub(super) fn feedback(decision: &StopDecision) -> Value {
    match &decision.feedback {
        None => Value::Null,
        Some(Feedback::ContractGap { unmet, questions, .. }) => {
            json!({ "kind": "contract_gap", "unmet": unmet, "questions": questions })
        }
        Some(Feedback::WorkItemsIncomplete { item_ids }) => {
            json!({ "kind": "work_items_incomplete", "item_ids": item_ids })
        }
        Some(Feedback::HookBlock { reason, .. }) => json!({ "kind": "hook_block", "reason": reason }),
        Some(Feedback::ControlInvariant { failed_checks, item_ids }) => {
            json!({ "kind": "control_invariant", "failed_checks": failed_checks, "item_ids": item_ids })
        }
        Some(Feedback::StallNudge { turns }) => json!({ "kind": "stall_nudge", "turns": turns }),
        Some(other) => json!({ "kind": other.kind() }),
    }
}

/// The deliverables of a run.
pub(super) fn deliverables(state: &ControlState) -> Value {
    json!(state.ledger().deliverables())
}

/// Errors of the turn that ended a run; empty without any.
pub(super) fn error_of(end: &End) -> String {
    if let Evidence::Fault(fault) = &end.stop.evidence { fault.message.clone() } else { String::new() }
}
