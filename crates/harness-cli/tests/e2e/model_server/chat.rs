//! Chat completions, as opencode speaks them.

use serde_json::{Value, json};

use super::plan::{Asked, INPUT_TOKENS, OUTPUT_TOKENS, Say, list, string, text_of};
use super::server::Answers;
use crate::support::Answer;

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

pub(super) const ANSWERS: Answers = Answers { whole, stream };

/// The answer as one object.
fn whole(asked: &Asked, say: &Say) -> Value {
    let (message, reason) = match say {
        Say::Text(text) => (json!({ "role": "assistant", "content": text }), "stop"),
        Say::Call { name, arguments } => {
            let function = json!({ "name": name, "arguments": arguments.to_string() });
            let call = json!({ "index": 0, "id": "call_1", "type": "function", "function": function });
            (json!({ "role": "assistant", "content": null, "tool_calls": [call] }), "tool_calls")
        }
    };
    json!({
        "id": "chat-1", "object": "chat.completion", "created": 1, "model": asked.model,
        "choices": [{ "index": 0, "message": message, "finish_reason": reason }],
        "usage": {
            "prompt_tokens": INPUT_TOKENS, "completion_tokens": OUTPUT_TOKENS,
            "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
        },
    })
}

/// The answer as a stream of events.
fn stream(asked: &Asked, say: &Say) -> String {
    let answer = match say {
        Say::Text(text) => Answer::text(text),
        Say::Call { name, arguments } => Answer::call("call_1", name, arguments),
    };
    answer.body(&asked.model)
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
}
