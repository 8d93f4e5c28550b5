//! Results of workers, in whatever form they come.

use harness_adapters::execution::{
    ExecutionError, ExecutionErrorCode, ExecutionOutput, ExecutionResult, ExecutionStatus,
};
use harness_core::{Json, JsonObject};

/// The backend of a worker that does not say what it is.
const UNNAMED: &str = "agent-relay-worker";

/// Reads a result: a canonical one as it is, a shorthand by its keys. `None` for what is neither.
///
/// A shorthand failure counts without a text when it says what went wrong or has a status
/// of failure at all (W43): waiting for the timeout would only hide it.
pub(super) fn normalized(value: &Json) -> Option<ExecutionResult> {
    let object = JsonObject::of(value)?;
    canonical(&object).or_else(|| shorthand(&object))
}

/// A result with a backend and one of the six statuses. Other fields pass as they are: one that cannot be
/// read is kept among those that this version does not know.
fn canonical(object: &JsonObject) -> Option<ExecutionResult> {
    let head = ["backendId", "status"];
    let heads: Option<Vec<_>> = head.iter().map(|key| Some((*key, object.get(key)?.clone()))).collect();
    let heads: JsonObject = heads?.into_iter().collect();
    if let Ok(whole) = object.json().to() {
        return Some(whole);
    }
    let mut readable = heads.clone();
    let mut strange = Vec::new();
    heads.json().to::<ExecutionResult>().ok()?;
    for (key, value) in object.entries().filter(|(key, _)| !head.contains(key)) {
        let alone: JsonObject = heads.entries().chain([(key, value)]).map(|(k, v)| (k, v.clone())).collect();
        if alone.json().to::<ExecutionResult>().is_ok() {
            readable.set(key, value.clone());
        } else {
            strange.push((key, value.clone()));
        }
    }
    let mut result: ExecutionResult = readable.json().to().ok()?;
    for (key, value) in strange {
        result.extra.push(key, value);
    }
    Some(result)
}

fn shorthand(object: &JsonObject) -> Option<ExecutionResult> {
    let status = status(object.present("status")?);
    let text = ["text", "answer", "output_text", "outputText", "result"]
        .iter()
        .find_map(|key| object.filled_text(key))
        .or_else(|| nested(object));
    let error = match (&text, status) {
        (None, ExecutionStatus::Failed) => Some(failure(object)),
        (None, _) => return None,
        (Some(_), _) => None,
    };
    let backend = ["backendId", "backend_id", "backend"].iter().find_map(|key| object.filled_text(key));
    let mut result = ExecutionResult::new(backend.unwrap_or_else(|| UNNAMED.to_owned()), status);
    let structured = structured(object);
    if text.is_some() || structured.is_some() {
        let mut output = ExecutionOutput::default();
        (output.text, output.structured) = (text, structured);
        result.output = Some(output);
    }
    result.error = error;
    let marked: JsonObject =
        [("normalizedFromRelayWorker", Json::of(&true).unwrap_or_default())].into_iter().collect();
    result.metadata = Some(marked.json());
    Some(result)
}

/// The status of a shorthand; whatever is not known is a failure.
fn status(value: &Json) -> ExecutionStatus {
    match value.to::<String>().as_deref() {
        Ok("ok" | "success" | "done") => ExecutionStatus::Completed,
        Ok(_) | Err(_) => value.to().unwrap_or(ExecutionStatus::Failed),
    }
}

fn nested(object: &JsonObject) -> Option<String> {
    let output = object.object("output")?;
    ["text", "answer", "output_text", "outputText"].iter().find_map(|key| output.filled_text(key))
}

fn structured(object: &JsonObject) -> Option<Json> {
    let mut all = object.object("structured").unwrap_or_default();
    for key in ["toolCalls", "tool_calls"] {
        if let Some(calls) = object.get(key) {
            all.set(key, calls.clone());
        }
    }
    (!all.is_empty()).then(|| all.json())
}

/// Message of a failure without a text.
fn failure(object: &JsonObject) -> ExecutionError {
    let told = object.object("error");
    let message = object
        .filled_text("error")
        .or_else(|| told.as_ref()?.filled_text("message"))
        .or_else(|| object.filled_text("message"))
        .unwrap_or_else(|| "The Relay worker reported a failure without saying why.".to_owned());
    let field = |key: &str| told.as_ref().and_then(|told| told.present(key));
    let code = field("code").and_then(|code| code.to().ok());
    let code = code.filter(|code| *code != ExecutionErrorCode::Other);
    let mut error = ExecutionError::new(code.unwrap_or(ExecutionErrorCode::BackendExecutionError), message);
    error.retryable = field("retryable").and_then(|retryable| retryable.to().ok());
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: &str, expected: &str) {
        let result = normalized(&Json::parse(value).unwrap()).map(|result| Json::of(&result).unwrap());
        assert_eq!(result.map_or("-".to_owned(), |result| result.to_string()), expected);
    }

    #[test]
    fn w43_a_failure_counts_without_a_text() {
        let failed = |error: &str| {
            format!(
                r#"{{"backendId":"agent-relay-worker","status":"failed","error":{error},"metadata":{{"normalizedFromRelayWorker":true}}}}"#
            )
        };
        check(
            r#"{"status":"error","error":{"message":"boom","code":"timeout","retryable":true}}"#,
            &failed(r#"{"code":"timeout","message":"boom","retryable":true}"#),
        );
        check(
            r#"{"status":"failed","error":"boom"}"#,
            &failed(r#"{"code":"backend_execution_error","message":"boom"}"#),
        );
        check(
            r#"{"status":"failed"}"#,
            &failed(
                r#"{"code":"backend_execution_error","message":"The Relay worker reported a failure without saying why."}"#,
            ),
        );
    }

    #[test]
    fn a_success_without_a_text_is_no_result() {
        check(r#"{"status":"ok"}"#, "-");
        check(r#"{"status":"needs_clarification"}"#, "-");
        check(r#"{"text":"A"}"#, "-");
        check("[]", "-");
    }

    #[test]
    fn a_canonical_result_passes_as_it_is() {
        let strange =
            r#"{"backendId":"b","status":"completed","metadata":{"n":1.50},"output":"text","new":[]}"#;
        check(
            strange,
            r#"{"backendId":"b","status":"completed","metadata":{"n":1.50},"new":[],"output":"text"}"#,
        );
    }
}
