//! Gemini's `generateContent` and `streamGenerateContent`, as Gemini CLI speaks them.

use serde_json::{Value, json};

use super::plan::{Asked, INPUT_TOKENS, OUTPUT_TOKENS, Say, list, string, text_of, words};
use super::server::Answers;
use super::sse;

/// Reads a request; the model stands in the path.
pub(super) fn read(model: &str, streamed: bool, body: &Value) -> Asked {
    let declared = list(body, "tools").flat_map(|tool| list(tool, "functionDeclarations"));
    let parts = list(body, "contents").flat_map(|content| list(content, "parts"));
    let results = parts.filter_map(|part| part.pointer("/functionResponse/response"));
    Asked {
        model: model.to_owned(),
        tools: declared.map(|tool| string(tool, "name")).collect(),
        results: results.map(text_of).collect(),
        streamed,
        json: body
            .pointer("/generationConfig/responseMimeType")
            .is_some_and(|kind| kind == "application/json"),
    }
}

pub(super) const ANSWERS: Answers = Answers { whole, stream };

/// The answer as one object.
fn whole(asked: &Asked, say: &Say) -> Value {
    let part = match say {
        Say::Text(text) => json!({ "text": text }),
        Say::Call { name, arguments } => json!({ "functionCall": { "name": name, "args": arguments } }),
    };
    finished(asked, &part)
}

fn finished(asked: &Asked, part: &Value) -> Value {
    json!({
        "candidates": [{ "content": { "role": "model", "parts": [part] }, "finishReason": "STOP", "index": 0 }],
        "usageMetadata": {
            "promptTokenCount": INPUT_TOKENS, "candidatesTokenCount": OUTPUT_TOKENS,
            "totalTokenCount": INPUT_TOKENS + OUTPUT_TOKENS,
        },
        "modelVersion": asked.model, "responseId": "r1",
    })
}

/// The answer as a stream of events; the last one says that it is the last.
fn stream(asked: &Asked, say: &Say) -> String {
    let Say::Text(text) = say else { return sse::unnamed([whole(asked, say)]) };
    let parts = words(text).map(|word| {
        let content = json!({ "role": "model", "parts": [{ "text": word }] });
        json!({ "candidates": [{ "content": content, "index": 0 }], "modelVersion": asked.model })
    });
    sse::unnamed(parts.chain([finished(asked, &json!({ "text": "" }))]))
}

/// The answer to a question about the size of a request.
pub(super) fn count() -> Value {
    json!({ "totalTokens": INPUT_TOKENS })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_and_results_are_read() {
        let body = json!({
            "tools": [{ "functionDeclarations": [{ "name": "run_shell_command" }] }],
            "contents": [{ "role": "user", "parts": [
                { "functionResponse": { "name": "run_shell_command", "response": { "output": "seen" } } },
            ] }],
        });
        let asked = read("m", true, &body);
        let expected = (vec!["run_shell_command".to_owned()], vec!["seen".to_owned()]);
        assert_eq!((asked.tools, asked.results), expected);
    }

    #[test]
    fn only_the_last_event_has_a_finish_reason() {
        let stream = stream(&Asked::default(), &Say::Text("two words".into()));
        let finished: Vec<bool> = stream
            .lines()
            .filter(|line| !line.is_empty())
            .map(|line| line.contains("finishReason"))
            .collect();
        assert_eq!(finished, [false, false, true]);
    }
}
