//! The adapters that are asked over HTTP, and `execution` among them: a whole turn as one request to a model as a
//! backend.

use std::sync::Arc;
use std::time::Duration;

use harness::adapters::chat::{ChatModel, ChatTimeouts};
use harness::adapters::execution::{ExecutionAdapter, ExecutionCx, ModelBackend};
use harness_core::Cancel;
use harness_core::Json;
use serde_json::{Map, Value};

use super::clock::Steps;
use super::model;
use super::words::{ChatAdapter, ChatConfig, Request, Step};
use crate::Done;
use crate::case::block_on;

/// Default request of a vector.
const MINIMAL: &str = r#"{"assistantId":"asst-1","turnId":"turn-1","message":{"id":"msg-1","text":"hi"},"instructions":{"systemPrompt":"s"}}"#;

/// The model where a vector names none.
const MODEL: &str = "openai/gpt-5-mini";

impl ChatAdapter {
    /// One question to the server at `url`; the result in the source's form.
    pub(super) fn play(self, config: &ChatConfig, input: Option<&Json>, url: &str) -> Done<Value> {
        let step = || input.map_or_else(|| Ok(Step::default()), Json::to).map_err(|e| e.to_string());
        match self {
            Self::Execution => play(config, input, url),
            Self::Model => model::play(config, step()?, url),
            Self::SingleShot => model::ask(config, step()?, url),
        }
    }
}

/// One turn against the server at `url`. Additional reports of the product are omitted: usage, a cut by
/// the token limit, and the wait that an endpoint asks for.
fn play(config: &ChatConfig, input: Option<&Json>, url: &str) -> Done<Value> {
    let backend = ModelBackend::new("openrouter-api", chat(config, MODEL, url)?, Arc::new(Steps::default()));
    let request = match input {
        Some(input) => input.to(),
        None => Json::parse(MINIMAL).and_then(|input| input.to()),
    };
    let Request(request) = request.map_err(|e| e.to_string())?;
    let cancel = Cancel::never();
    let result = block_on(backend.execute(request, ExecutionCx::new(&(), &cancel)))?;
    serde_json::to_value(&result).map(without_additions).map_err(|e| e.to_string())
}

/// The model of a vector's settings, asked for whole replies.
pub(super) fn chat(config: &ChatConfig, model: &str, url: &str) -> Done<ChatModel> {
    let mut builder =
        ChatModel::compatible(url, config.model.as_deref().unwrap_or(model)).without_streaming();
    if let Some(key) = &config.api_key {
        builder = builder.key(key.clone());
    }
    if let Some(limit) = config.timeout_ms {
        let mut timeouts = ChatTimeouts::default();
        timeouts.total = Duration::from_millis(limit);
        builder = builder.timeouts(timeouts);
    }
    if let Some(temperature) = &config.default_temperature {
        let settings = format!(r#"{{"temperature":{temperature}}}"#);
        builder = builder.settings(Json::parse(&settings).map_err(|e| e.to_string())?);
    }
    builder.build().map_err(|e| e.to_string())
}

fn without_additions(mut result: Value) -> Value {
    let drop = |map: &mut Map<String, Value>, key: &str, told: &[&str]| {
        if let Some(data) = map.get_mut(key).and_then(Value::as_object_mut) {
            data.retain(|key, _| !told.contains(&key.as_str()));
            if data.is_empty() {
                map.remove(key);
            }
        }
    };
    if let Some(result) = result.as_object_mut() {
        drop(result, "metadata", &["usage", "truncated"]);
        if let Some(error) = result.get_mut("error").and_then(Value::as_object_mut) {
            drop(error, "metadata", &["usage", "retryAfterMs"]);
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(result: Value, expected: Value) {
        assert_eq!(without_additions(result), expected);
    }

    #[test]
    fn only_what_is_told_in_addition_is_left_out() {
        check(json!({ "metadata": { "usage": {}, "truncated": true } }), json!({}));
        let id = json!({ "metadata": { "responseId": "a" } });
        check(json!({ "metadata": { "responseId": "a", "usage": {} } }), id);
        let wait = json!({ "error": { "metadata": { "status": 429, "retryAfterMs": 7000 } } });
        check(wait, json!({ "error": { "metadata": { "status": 429 } } }));
    }
}
