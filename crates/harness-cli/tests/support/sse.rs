//! Answers in the form in which an OpenAI-compatible endpoint streams them.

use serde_json::{Value, json};

/// A streamed answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    text: Vec<String>,
    calls: Vec<(String, String, String)>,
}

impl Answer {
    /// Text, streamed word by word.
    pub(crate) fn text(text: &str) -> Self {
        Self { text: text.split_inclusive(' ').map(str::to_owned).collect(), calls: Vec::new() }
    }

    /// A tool call.
    pub(crate) fn call(id: &str, name: &str, arguments: &Value) -> Self {
        Self::default().and_call(id, name, arguments)
    }

    /// One more tool call in the same answer.
    pub(crate) fn and_call(mut self, id: &str, name: &str, arguments: &Value) -> Self {
        let mut arguments = arguments.clone();
        arguments.sort_all_objects();
        self.calls.push((id.to_owned(), name.to_owned(), arguments.to_string()));
        self
    }

    /// The event stream: one event per word, a call's arguments in two pieces, then the usage.
    pub(crate) fn body(&self, model: &str) -> String {
        let chunk = |delta: Value, finish: Value| {
            json!({
                "id": "chat-1", "object": "chat.completion.chunk", "created": 1, "model": model,
                "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }],
            })
        };
        let mut events = vec![chunk(json!({ "role": "assistant", "content": "" }), Value::Null)];
        events.extend(self.text.iter().map(|word| chunk(json!({ "content": word }), Value::Null)));
        for (index, (id, name, arguments)) in self.calls.iter().enumerate() {
            let (first, second) = arguments.split_at(arguments.len() / 2);
            let begin = json!({ "index": index, "id": id, "type": "function",
                "function": { "name": name, "arguments": first } });
            let more = json!({ "index": index, "function": { "arguments": second } });
            events.extend([begin, more].map(|call| chunk(json!({ "tool_calls": [call] }), Value::Null)));
        }
        let finish = if self.calls.is_empty() { "stop" } else { "tool_calls" };
        events.push(chunk(json!({}), json!(finish)));
        let words = self.text.len() + 7 * self.calls.len();
        events.push(json!({
            "id": "chat-1", "object": "chat.completion.chunk", "created": 1, "model": model, "choices": [],
            "usage": { "prompt_tokens": 100, "completion_tokens": words, "total_tokens": 100 + words,
                "cost": 0.0001 },
        }));
        let lines = events.iter().map(|event| format!("data: {event}\n\n"));
        lines.chain(["data: [DONE]\n\n".to_owned()]).collect()
    }
}
