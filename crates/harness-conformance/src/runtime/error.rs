//! Results of flows in the suite's form.

use harness_core::Json;
use harness_runtime::flow::FlowError;
use serde_json::{Value, json};

use super::super::subset::put;

/// `{ok}` or `{error}`.
pub(super) fn result(done: &Result<Json, FlowError>) -> Value {
    match done {
        Ok(output) => json!({ "ok": output.to::<Value>().unwrap_or_default() }),
        Err(fault) => json!({ "error": error(fault) }),
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the suite has fields for these only")]
fn error(fault: &FlowError) -> Value {
    let mut error = json!({ "kind": fault.kind(), "message": fault.to_string() });
    match fault {
        FlowError::StepFailed { step, cause, retries_exhausted } => {
            put(&mut error, "stepId", json!(**step));
            put(&mut error, "cause", json!(cause));
            put(&mut error, "retriesExhausted", json!(retries_exhausted));
        }
        FlowError::ForkPartial { step, succeeded, failed } => {
            let outputs =
                succeeded.iter().map(|(id, output)| json!([**id, output.to::<Value>().unwrap_or_default()]));
            put(&mut error, "stepId", json!(**step));
            put(&mut error, "succeeded", outputs.collect());
            put(&mut error, "failed", failed.iter().map(|(id, error)| json!([**id, error.kind()])).collect());
        }
        FlowError::Cancelled { reason } => put(&mut error, "reason", json!(**reason)),
        // The source throws a bare error without a kind.
        FlowError::LoopExhausted { .. } => put(&mut error, "kind", Value::Null),
        _ => {}
    }
    error
}
