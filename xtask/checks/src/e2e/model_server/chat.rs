//! Chat completions, as opencode speaks them.

use serde_json::{Value, json};

use super::plan::{Asked, INPUT_TOKENS, OUTPUT_TOKENS, Say, list, string, text_of, words};
use super::sse;

/// Reads a request.
pub(super) fn read(body: &Value) -> Asked {
    let results = list(body, "messages").filter(|message| string(message, "role") == "tool");
    let named = |tool: &Value| tool.get("function").map(|function| string(function, "name"));
    Asked {
        model: string(body, "model"),
        tools: list(body, "tools").filter_map(named).collect(),
        results: results.filter_map(|message| message.get("content")).map(text_of).collect(),
        streamed: body.get("stream") == Some(&Value::Bool(true)),
        json: body.get("response_format").is_some(),
    }
}

/// The answer as one object.
pub(super) fn whole(asked: &Asked, say: &Say) -> Value {
    let (message, reason) = match say {
        Say::Text(text) => (json!({ "role": "assistant", "content": text }), "stop"),
        Say::Call { .. } => {
            (json!({ "role": "assistant", "content": null, "tool_calls": [call(say)] }), "tool_calls")
        }
    };
    json!({
        "id": "chat-1", "object": "chat.completion", "created": 1, "model": asked.model,
        "choices": [{ "index": 0, "message": message, "finish_reason": reason }], "usage": usage(),
    })
}

fn call(say: &Say) -> Value {
    let Say::Call { name, arguments } = say else { return Value::Null };
    let function = json!({ "name": name, "arguments": arguments.to_string() });
    json!({ "index": 0, "id": "call_1", "type": "function", "function": function })
}

fn usage() -> Value {
    json!({
        "prompt_tokens": INPUT_TOKENS, "completion_tokens": OUTPUT_TOKENS,
        "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
    })
}

/// The answer as a stream of events.
pub(super) fn stream(asked: &Asked, say: &Say) -> String {
    let chunk = |choices| {
        json!({
            "id": "chat-1", "object": "chat.completion.chunk", "created": 1, "model": asked.model,
            "choices": choices,
        })
    };
    let choice = |delta, reason| chunk(json!([{ "index": 0, "delta": delta, "finish_reason": reason }]));
    let part = |delta| choice(delta, Value::Null);
    let mut events = vec![part(json!({ "role": "assistant", "content": "" }))];
    let reason = match say {
        Say::Text(text) => {
            events.extend(words(text).map(|word| part(json!({ "content": word }))));
            "stop"
        }
        Say::Call { .. } => {
            events.push(part(json!({ "tool_calls": [call(say)] })));
            "tool_calls"
        }
    };
    events.push(choice(json!({}), json!(reason)));
    let mut last = chunk(json!([]));
    if let Value::Object(fields) = &mut last {
        fields.insert("usage".to_owned(), usage());
    }
    events.push(last);
    sse::unnamed(events) + "data: [DONE]\n\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_and_results_are_read() {
        let body = json!({
            "model": "m", "tools": [{ "type": "function", "function": { "name": "bash" } }],
            "messages": [
                { "role": "user", "content": "hello" },
                { "role": "tool", "tool_call_id": "call_1", "content": "seen" },
            ],
        });
        let asked = read(&body);
        assert_eq!((asked.tools, asked.results), (vec!["bash".to_owned()], vec!["seen".to_owned()]));
    }

    #[test]
    fn a_stream_ends_with_its_usage() {
        let say = Say::Call { name: "bash".into(), arguments: json!({}) };
        let stream = stream(&Asked::default(), &say);
        assert!(stream.contains(r#""finish_reason":"tool_calls""#), "{stream}");
        assert!(stream.contains(r#""total_tokens":120"#) && stream.ends_with("data: [DONE]\n\n"), "{stream}");
    }
}
