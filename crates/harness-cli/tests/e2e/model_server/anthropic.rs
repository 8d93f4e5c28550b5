//! Anthropic's Messages API, as Claude Code speaks it.

use serde_json::{Value, json};

use super::plan::{Asked, INPUT_TOKENS, OUTPUT_TOKENS, Say, list, string, text_of, words};
use super::server::Answers;
use super::sse;

/// Reads a request.
pub(super) fn read(body: &Value) -> Asked {
    let blocks = list(body, "messages").flat_map(|message| list(message, "content"));
    let results = blocks.filter(|block| string(block, "type") == "tool_result");
    Asked {
        model: string(body, "model"),
        tools: list(body, "tools").map(|tool| string(tool, "name")).collect(),
        results: results.filter_map(|block| block.get("content")).map(text_of).collect(),
        streamed: body.get("stream") == Some(&Value::Bool(true)),
        json: body.pointer("/output_config/format/type").is_some_and(|kind| kind == "json_schema"),
    }
}

pub(super) const ANSWERS: Answers = Answers { whole, stream };

/// The answer as one object.
fn whole(asked: &Asked, say: &Say) -> Value {
    let (block, reason) = match say {
        Say::Text(text) => (json!({ "type": "text", "text": text }), "end_turn"),
        Say::Call { name, arguments } => {
            (json!({ "type": "tool_use", "id": "toolu_1", "name": name, "input": arguments }), "tool_use")
        }
    };
    message(asked, &json!([block]), &json!(reason))
}

fn message(asked: &Asked, content: &Value, reason: &Value) -> Value {
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": asked.model, "content": content,
        "stop_reason": reason, "stop_sequence": null,
        "usage": { "input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS },
    })
}

/// The answer as a stream of events.
fn stream(asked: &Asked, say: &Say) -> String {
    let delta = |delta| json!({ "type": "content_block_delta", "index": 0, "delta": delta });
    let (block, deltas, reason) = match say {
        Say::Text(text) => (
            json!({ "type": "text", "text": "" }),
            words(text).map(|word| delta(json!({ "type": "text_delta", "text": word }))).collect(),
            "end_turn",
        ),
        Say::Call { name, arguments } => (
            json!({ "type": "tool_use", "id": "toolu_1", "name": name, "input": {} }),
            vec![delta(json!({ "type": "input_json_delta", "partial_json": arguments.to_string() }))],
            "tool_use",
        ),
    };
    let start = json!({ "type": "message_start", "message": message(asked, &json!([]), &Value::Null) });
    let open = json!({ "type": "content_block_start", "index": 0, "content_block": block });
    let stop = json!({
        "type": "message_delta",
        "delta": { "stop_reason": reason, "stop_sequence": null },
        "usage": { "output_tokens": OUTPUT_TOKENS },
    });
    let close = json!({ "type": "content_block_stop", "index": 0 });
    let end = json!({ "type": "message_stop" });
    sse::named([start, open].into_iter().chain(deltas).chain([close, stop, end]))
}

/// The answer to a question about the size of a request.
pub(super) fn count() -> Value {
    json!({ "input_tokens": INPUT_TOKENS })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_and_results_are_read() {
        let body = json!({
            "model": "m", "stream": true, "tools": [{ "name": "Bash" }],
            "messages": [
                { "role": "user", "content": "hello" },
                { "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": "toolu_1", "content": "seen" },
                ] },
            ],
        });
        let expected = Asked {
            model: "m".into(),
            tools: vec!["Bash".into()],
            results: vec!["seen".into()],
            streamed: true,
            json: false,
        };
        assert_eq!(read(&body), expected);
    }

    #[test]
    fn a_call_is_streamed() {
        let say = Say::Call { name: "Bash".into(), arguments: json!({}) };
        let stream = stream(&Asked::default(), &say);
        let names: Vec<_> = stream.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
        let expected = [
            "message_start",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop",
        ];
        assert_eq!(names, expected);
    }
}
