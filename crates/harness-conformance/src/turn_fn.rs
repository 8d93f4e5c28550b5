//! Vectors of kind `turn-fn`: functions beside the turn.

use harness_core::Json;
use harness_core::StopReason;
use harness_core::message::ToolCall;
use harness_core::reply::{ReplyOptions, stop_reason_to_user_message, truthful_failure_reply};
use harness_core::turn::evidence::{SPARSE_EVIDENCE, ToolOutput, exceeds_evidence_budget};
use serde_json::{Value, json};

use super::turn::convert::{self, at, list, text};
use super::turn::hooks;
use super::turn::spec::spec;
use crate::vector::Vector;
use crate::verdict::Verdict;

/// A name of no stop reason, as the vectors write it.
const UNKNOWN: &str = "something_new";

/// Runs every case of the file.
pub(crate) fn run(vector: &Vector) -> Verdict {
    judge(text(&vector.file, "fn"), &vector.value)
}

fn judge(function: &str, case: &Value) -> Verdict {
    let args = list(case, "args");
    let first = args.first().unwrap_or(&Value::Null);
    let options = args.get(1).unwrap_or(&Value::Null);
    let got = match function {
        "createHarness" => Ok(create_harness(first)),
        "detectToolEvidenceClarification" => detect(first, options),
        "exceedsEvidenceBudget" => Ok(density(first)),
        "stopReasonToUserMessage" => Ok(message(first, options)),
        "truthfulFailureReply" => Ok(reply(first, options)),
        other => Err(format!("`{other}` is no known function")),
    };
    let mut expected = at(case, "expect").clone();
    if let Some(map) = expected.as_object_mut() {
        // A text for people.
        map.shift_remove("message");
    }
    let same =
        got.and_then(
            |got| {
                if got == expected { Ok(()) } else { Err(format!("expected {expected}, got {got}")) }
            },
        );
    same.into()
}

fn create_harness(config: &Value) -> Value {
    match spec(config) {
        Ok(_) => json!({ "ok": true }),
        Err(_) => json!({ "ok": false, "error": "HarnessConfigError" }),
    }
}

fn detect(result: &Value, options: &Value) -> Result<Value, String> {
    let payload = result.get("structuredOutput").map(convert::json).transpose()?;
    let outcome = convert::outcome(result, payload)?;
    let tool = text(result, "toolName");
    let call = ToolCall::new(text(result, "callId"), tool, Json::empty_object());
    let question = hooks::evidence_hook(options)?.detect(&call, &outcome);
    let value = question.map(|question| hooks::question(&question, tool)).transpose()?;
    Ok(json!({ "value": value }))
}

fn density(input: &Value) -> Value {
    let chars = |call: &Value| call.get("outputChars").and_then(Value::as_u64).unwrap_or(0);
    let calls = list(input, "toolCalls").iter();
    let outputs: Vec<_> = calls
        .map(|call| ToolOutput::new(text(call, "name"), usize::try_from(chars(call)).unwrap_or(usize::MAX)))
        .collect();
    match exceeds_evidence_budget(&outputs, text(input, "assistantText")) {
        Some(thin) => json!({ "value": { "exceeds": true, "reason": SPARSE_EVIDENCE, "detail": thin } }),
        None => json!({ "value": { "exceeds": false } }),
    }
}

/// The names whose texts are compared, in the vectors' order.
fn names() -> impl Iterator<Item = &'static str> {
    StopReason::ALL.iter().map(|reason| reason.as_str()).chain([UNKNOWN])
}

fn message(reason: &Value, options: &Value) -> Value {
    let reason = reason.as_str().unwrap_or_default();
    let can_retry = options.get("canRetry") == Some(&Value::Bool(true));
    let said = stop_reason_to_user_message(reason, can_retry);
    let same = names().find(|name| stop_reason_to_user_message(name, can_retry) == said);
    json!({
        "nonEmpty": !said.is_empty(),
        "sameTextAs": same,
        "canRetryChangesText": said != stop_reason_to_user_message(reason, !can_retry),
    })
}

fn reply(reason: &Value, options: &Value) -> Value {
    let reason = reason.as_str().unwrap_or_default();
    let mut made = ReplyOptions::new().with_suffix(text(options, "suffix"));
    made.include_stop_reason = options.get("includeStopReason") == Some(&Value::Bool(true));
    let reply = truthful_failure_reply(reason, &made);
    json!({ "equalsMessagePlus": reply.strip_prefix(stop_reason_to_user_message(reason, false)) })
}
