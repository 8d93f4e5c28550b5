//! Results of tools in the form of vectors.

use harness_core::message::ToolCall;
use harness_core::tool::ToolOutcome;
use serde_json::{Map, Value, json};

/// The text that a model reads of a success.
pub(super) fn output(outcome: &ToolOutcome) -> String {
    outcome.content.iter().filter_map(|block| block.as_text()).collect()
}

/// The result as the source writes it; absent fields are left out.
pub(super) fn result(call: &ToolCall, outcome: &ToolOutcome) -> Result<Value, String> {
    let mut result = Map::new();
    let mut put = |key: &str, value: Value| result.insert(key.to_owned(), value);
    put("callId", json!(call.id.as_str()));
    put("toolName", json!(call.name.as_str()));
    put("status", json!(if outcome.is_error() { "error" } else { "success" }));
    if !outcome.is_error() {
        put("output", json!(output(outcome)));
    }
    if let Some(data) = &outcome.structured {
        put("structuredOutput", data.to().map_err(|e| e.to_string())?);
    }
    if let Some(error) = &outcome.error {
        put("error", serde_json::to_value(error).map_err(|e| e.to_string())?);
    }
    if let Some(metadata) = &outcome.metadata {
        put("metadata", metadata.to().map_err(|e| e.to_string())?);
    }
    Ok(Value::Object(result))
}
