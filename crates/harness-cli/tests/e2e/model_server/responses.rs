//! The Responses API, as Codex speaks it.

use serde_json::{Value, json};

use super::plan::{Asked, INPUT_TOKENS, OUTPUT_TOKENS, Say, list, string, text_of, words};
use super::server::Answers;
use super::sse;

/// Reads a request.
pub(super) fn read(body: &Value) -> Asked {
    let results = list(body, "input").filter(|item| string(item, "type") == "function_call_output");
    Asked {
        model: string(body, "model"),
        tools: list(body, "tools").map(|tool| string(tool, "name")).collect(),
        results: results.filter_map(|item| item.get("output")).map(text_of).collect(),
        streamed: body.get("stream") == Some(&Value::Bool(true)),
        json: body.pointer("/text/format/type").is_some_and(|kind| kind == "json_schema"),
    }
}

pub(super) const ANSWERS: Answers = Answers { whole, stream };

/// The answer as one object.
fn whole(asked: &Asked, say: &Say) -> Value {
    response(asked, "completed", &json!([item(say)]))
}

fn item(say: &Say) -> Value {
    match say {
        Say::Text(text) => json!({
            "type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
            "content": [{ "type": "output_text", "text": text, "annotations": [] }],
        }),
        Say::Call { name, arguments } => json!({
            "type": "function_call", "id": "fc_1", "call_id": "call_1", "status": "completed",
            "name": name, "arguments": arguments.to_string(),
        }),
    }
}

fn response(asked: &Asked, status: &str, output: &Value) -> Value {
    json!({
        "id": "resp_1", "object": "response", "created_at": 1, "status": status, "model": asked.model,
        "output": output,
        "usage": {
            "input_tokens": INPUT_TOKENS, "input_tokens_details": { "cached_tokens": 0 },
            "output_tokens": OUTPUT_TOKENS, "output_tokens_details": { "reasoning_tokens": 0 },
            "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
        },
    })
}

/// The answer as a stream of events.
fn stream(asked: &Asked, say: &Say) -> String {
    let begun = response(asked, "in_progress", &json!([]));
    let mut events = vec![
        json!({ "type": "response.created", "response": begun }),
        json!({ "type": "response.output_item.added", "output_index": 0, "item": item(say) }),
    ];
    match say {
        Say::Text(text) => events.extend(words(text).map(|word| {
            json!({
                "type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0,
                "content_index": 0, "delta": word,
            })
        })),
        Say::Call { arguments, .. } => events.push(json!({
            "type": "response.function_call_arguments.delta", "item_id": "fc_1", "output_index": 0,
            "delta": arguments.to_string(),
        })),
    }
    events.push(json!({ "type": "response.output_item.done", "output_index": 0, "item": item(say) }));
    events.push(json!({ "type": "response.completed", "response": whole(asked, say) }));
    let numbered = events.into_iter().enumerate().map(|(number, mut event)| {
        if let Value::Object(fields) = &mut event {
            fields.insert("sequence_number".to_owned(), json!(number));
        }
        event
    });
    sse::named(numbered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_and_results_are_read() {
        let body = json!({
            "model": "m", "tools": [{ "type": "function", "name": "shell" }],
            "input": [
                { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "x" }] },
                { "type": "function_call_output", "call_id": "call_1", "output": "seen" },
            ],
        });
        let asked = read(&body);
        assert_eq!((asked.tools, asked.results), (vec!["shell".to_owned()], vec!["seen".to_owned()]));
    }

    #[test]
    fn a_text_is_streamed_and_numbered() {
        let stream = stream(&Asked::default(), &Say::Text("two words".into()));
        let names: Vec<_> = stream.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
        let expected = [
            "response.created",
            "response.output_item.added",
            "response.output_text.delta",
            "response.output_text.delta",
            "response.output_item.done",
            "response.completed",
        ];
        assert_eq!(names, expected);
        assert!(stream.contains(r#""sequence_number":5"#), "{stream}");
    }
}
