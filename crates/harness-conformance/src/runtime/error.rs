//! Results of flows in the suite's form.

use harness_core::Json;
use harness_flow::FlowError;
use serde_json::{Value, json};

use super::super::subset::put;
use crate::Done;
use crate::case::plain;

/// `{ok}` or `{error}`.
pub(super) fn result(done: &Result<Json, FlowError>) -> Done<Value> {
    Ok(match done {
        Ok(output) => json!({ "ok": plain(output)? }),
        Err(fault) => json!({ "error": error(fault)? }),
    })
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the suite has fields for these only")]
fn error(fault: &FlowError) -> Done<Value> {
    let mut error = json!({ "kind": fault.kind(), "message": fault.to_string() });
    match fault {
        FlowError::StepFailed { step, retries_exhausted, .. } => {
            put(&mut error, "stepId", json!(**step));
            put(&mut error, "retriesExhausted", json!(retries_exhausted));
        }
        FlowError::ForkPartial { succeeded, failed, .. } => {
            let outputs = succeeded.iter().map(|(id, output)| Ok(json!([**id, plain(output)?])));
            put(&mut error, "succeeded", outputs.collect::<Done<_>>()?);
            put(&mut error, "failed", failed.iter().map(|(id, error)| json!([**id, error.kind()])).collect());
        }
        _ => {}
    }
    Ok(error)
}
