//! The adapters `execution` and `single-shot`: a whole turn, or a question, as one request.

use std::sync::Arc;
use std::time::Duration;

use harness::adapters::ApiKey;
use harness::adapters::execution::{
    OpenRouterExecutionAdapter, OpenRouterSingleShotAdapter, Said, SingleShot, SingleShotRequest,
};
use harness_core::Json;
use harness_core::cancel::Cancel;
use harness_core::port::{ExecutionAdapter, ExecutionCx, ExecutionRequest};
use serde_json::{Map, Value, json};

use super::clock::Steps;
use super::vectors;
use crate::turn::convert::{Done, at, list, text};

/// What a vector that names no request sends.
const MINIMAL: &str = r#"{"assistantId":"asst-1","turnId":"turn-1","message":{"id":"msg-1","text":"hi"},"instructions":{"systemPrompt":"s"}}"#;

/// One turn against the server at `url`. What the product tells in addition is left out: usage, a cut by
/// the token limit, and the wait that an endpoint asks for.
pub(super) fn play(vector: &Value, url: &str) -> Done<Value> {
    let config = at(vector, "config");
    let clock = Arc::new(Steps::default());
    let mut builder = OpenRouterExecutionAdapter::builder(key(config), clock).base_url(url);
    if let Some(model) = config.get("model").and_then(Value::as_str) {
        builder = builder.model(model);
    }
    if let Some(limit) = limit(config) {
        builder = builder.timeout(limit);
    }
    let adapter = builder.build().map_err(|e| e.to_string())?;
    let request: ExecutionRequest = input(vector)?;
    let result =
        on_a_runtime(async { adapter.execute(request, ExecutionCx::new(&(), &Cancel::never())).await })?;
    serde_json::to_value(&result).map(without_additions).map_err(|e| e.to_string())
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

/// One question to the server at `url`: `{text, usage?}`, or `{error}` with the source's text.
pub(super) fn ask(vector: &Value, url: &str) -> Done<Value> {
    let config = at(vector, "config");
    let mut builder = OpenRouterSingleShotAdapter::builder(key(config)).base_url(url);
    if let Some(model) = config.get("model").and_then(Value::as_str) {
        builder = builder.model(model);
    }
    if let Some(limit) = limit(config) {
        builder = builder.timeout(limit);
    }
    let temperature = ["temperature", "defaultTemperature"].iter().find_map(|key| config.get(*key)?.as_f64());
    if let Some(temperature) = temperature {
        builder = builder.temperature(temperature);
    }
    let adapter = builder.build().map_err(|e| e.to_string())?;
    let question = question(&input(vector)?);
    Ok(match on_a_runtime(async { adapter.generate(question, &Cancel::never()).await })? {
        Ok(answer) => match answer.usage {
            None => json!({ "text": answer.text }),
            Some(used) => {
                let counts = json!({ "inputTokens": used.input, "outputTokens": used.output });
                json!({ "text": answer.text, "usage": counts })
            }
        },
        Err(fault) => json!({ "error": fault.to_string() }),
    })
}

/// The input as it is written, its keys in their order; a minimal one when the vector has none.
fn input<T: serde::de::DeserializeOwned>(vector: &Value) -> Done<T> {
    let written = vector.get(vectors::WRITTEN_INPUT).and_then(Value::as_str).unwrap_or(MINIMAL);
    Json::parse(written).and_then(|input| input.to()).map_err(|e| e.to_string())
}

fn on_a_runtime<T>(play: impl Future<Output = T>) -> Done<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    Ok(runtime.map_err(|e| e.to_string())?.block_on(play))
}

fn key(config: &Value) -> Option<ApiKey> {
    config.get("apiKey").and_then(Value::as_str).map(ApiKey::from)
}

fn limit(config: &Value) -> Option<Duration> {
    config.get("timeoutMs").and_then(Value::as_u64).map(Duration::from_millis)
}

fn question(input: &Value) -> SingleShotRequest {
    let instructions = at(input, "instructions");
    let mut request =
        SingleShotRequest::new(text(instructions, "systemPrompt"), text(at(input, "message"), "text"));
    request.developer_prompt = instructions.get("developerPrompt").and_then(Value::as_str).map(str::to_owned);
    let said = list(input, "threadHistory").iter();
    let said = said.map(|said| (text(said, "role").to_owned(), text(said, "content").to_owned()));
    request.history = said.map(|(role, content)| Said { role, content }).collect();
    request
}

#[cfg(test)]
mod tests {
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
