//! Output items of a response, assembled from the events of its run.

use std::collections::HashMap;

use harness::core::CallId;
use harness::core::event::EventKind;
use harness::core::message::{Message, ToolCall, ToolResultMessage};
use harness::core::port::{DeltaPart, ProposedCall};
use harness::runtime::ThreadEvent;
use serde_json::{Value, json};

/// Name of the server in items of calls.
const SERVER: &str = "harness";

/// Kind of an item of text that grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Growing {
    Message,
    Reasoning,
}

/// An item of text that grows.
#[derive(Debug)]
struct Open {
    kind: Growing,
    index: usize,
    text: String,
}

/// Output items of a response, and the events about them.
#[derive(Debug)]
pub(super) struct Output {
    response: String,
    /// Whether the answer is JSON, of which only the valid one is an item.
    is_json: bool,
    items: Vec<Value>,
    open: Option<Open>,
    /// Whether the current model call has an item of text.
    has_text: bool,
    calls: HashMap<CallId, usize>,
    events: Vec<Value>,
}

impl Output {
    pub(super) fn new(response: &str, is_json: bool) -> Self {
        Self {
            response: response.to_owned(),
            is_json,
            items: Vec::new(),
            open: None,
            has_text: false,
            calls: HashMap::new(),
            events: Vec::new(),
        }
    }

    /// Events since the last call, without their sequence numbers.
    pub(super) fn take_events(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.events)
    }

    pub(super) fn into_items(self) -> Vec<Value> {
        self.items
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the other events are not part of the output")]
    pub(super) fn see(&mut self, event: &ThreadEvent) {
        match event {
            ThreadEvent::Delta(DeltaPart::Text(text)) if !self.is_json => self.grow(Growing::Message, text),
            ThreadEvent::Delta(DeltaPart::Thinking(text)) => self.grow(Growing::Reasoning, text),
            ThreadEvent::AnswerRestarted => self.start(),
            ThreadEvent::Event(event) if event.origin.parent.is_none() => self.see_event(&event.kind),
            _ => {}
        }
    }

    /// An answer starts, or starts again: its text is another item.
    fn start(&mut self) {
        self.close();
        self.has_text = false;
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the other events are not part of the output")]
    fn see_event(&mut self, event: &EventKind) {
        match event {
            EventKind::ModelStepStarted { .. } => self.start(),
            EventKind::ToolStarted { call } => self.start_call(call),
            EventKind::MessageAppended { message, .. } => match &**message {
                Message::Assistant(answer) => {
                    self.close();
                    let text = answer.joined_text();
                    // A model that sends no deltas; the last answer is added at the end.
                    if answer.tool_calls().next().is_some()
                        && !self.has_text
                        && !self.is_json
                        && !text.is_empty()
                    {
                        self.whole(&text);
                    }
                }
                Message::ToolResult(result) => self.end_call(result),
                Message::System(_) | Message::User(_) | Message::Custom(_) | _ => {}
            },
            _ => {}
        }
    }

    /// Adds the end of the run: the answer, if it is not there, and the calls that require approval.
    pub(super) fn end(&mut self, answer: Option<&str>, refusal: Option<&str>, pending: &[ProposedCall]) {
        self.close();
        if let Some(answer) = answer.filter(|answer| !self.has_text && !answer.is_empty()) {
            self.whole(answer);
        }
        if let Some(refusal) = refusal.filter(|refusal| !refusal.is_empty()) {
            let item = json!({ "type": "message", "role": "assistant", "status": "completed",
                "content": [{ "type": "refusal", "refusal": refusal }] });
            self.add_done("msg", item);
        }
        for call in pending {
            let item = json!({ "type": "mcp_approval_request", "server_label": SERVER,
                "name": call.call.name, "arguments": call.call.arguments.text() });
            let index = self.push(call.id().as_str().to_owned(), item);
            self.event("response.output_item.done", index, json!({ "item": self.items.get(index) }));
        }
    }

    fn grow(&mut self, kind: Growing, delta: &str) {
        if delta.is_empty() {
            return;
        }
        if self.open.as_ref().is_none_or(|open| open.kind != kind) {
            self.close();
            self.open_item(kind);
        }
        let Some(open) = &mut self.open else { return };
        open.text.push_str(delta);
        let index = open.index;
        match kind {
            Growing::Message => self.event(
                "response.output_text.delta",
                index,
                json!({ "content_index": 0, "delta": delta, "logprobs": [] }),
            ),
            Growing::Reasoning => self.event(
                "response.reasoning_summary_text.delta",
                index,
                json!({ "summary_index": 0, "delta": delta }),
            ),
        }
    }

    fn open_item(&mut self, kind: Growing) {
        let index = match kind {
            Growing::Message => {
                self.has_text = true;
                self.add(
                    "msg",
                    json!({ "type": "message", "role": "assistant", "status": "in_progress", "content": [] }),
                )
            }
            Growing::Reasoning => self.add("rs", json!({ "type": "reasoning", "summary": [] })),
        };
        self.open = Some(Open { kind, index, text: String::new() });
        match kind {
            Growing::Message => self.event(
                "response.content_part.added",
                index,
                json!({ "content_index": 0, "part": text_part("") }),
            ),
            Growing::Reasoning => self.event(
                "response.reasoning_summary_part.added",
                index,
                json!({ "summary_index": 0, "part": summary_part("") }),
            ),
        }
    }

    fn close(&mut self) {
        let Some(Open { kind, index, text }) = self.open.take() else { return };
        match kind {
            Growing::Message => {
                let part = text_part(&text);
                self.event(
                    "response.output_text.done",
                    index,
                    json!({ "content_index": 0, "text": text, "logprobs": [] }),
                );
                self.event("response.content_part.done", index, json!({ "content_index": 0, "part": part }));
                self.finish(index, &[("status", json!("completed")), ("content", json!([part]))]);
            }
            Growing::Reasoning => {
                let part = summary_part(&text);
                self.event(
                    "response.reasoning_summary_text.done",
                    index,
                    json!({ "summary_index": 0, "text": text }),
                );
                self.event(
                    "response.reasoning_summary_part.done",
                    index,
                    json!({ "summary_index": 0, "part": part }),
                );
                self.finish(index, &[("summary", json!([part]))]);
            }
        }
    }

    /// Adds a message with its whole text.
    fn whole(&mut self, text: &str) {
        self.grow(Growing::Message, text);
        self.close();
    }

    fn start_call(&mut self, call: &ToolCall) {
        self.close();
        let arguments = call.arguments.text();
        let index = self.add(
            "mcp",
            json!({ "type": "mcp_call", "server_label": SERVER, "name": call.name,
            "arguments": arguments, "status": "in_progress", "output": null, "error": null }),
        );
        self.calls.insert(call.id.clone(), index);
        self.event("response.mcp_call.in_progress", index, json!({}));
        self.event("response.mcp_call_arguments.done", index, json!({ "arguments": arguments }));
    }

    fn end_call(&mut self, result: &ToolResultMessage) {
        let Some(index) = self.calls.remove(&result.tool_call_id) else { return };
        let text = Message::from(result.clone()).joined_text();
        let (status, name) = if result.is_error { ("failed", "error") } else { ("completed", "output") };
        self.event(&format!("response.mcp_call.{status}"), index, json!({}));
        self.finish(index, &[("status", json!(status)), (name, json!(text))]);
    }

    /// Adds an item with a generated id.
    fn add(&mut self, prefix: &str, item: Value) -> usize {
        let id = format!("{prefix}_{}_{}", self.response, self.items.len());
        self.push(id, item)
    }

    fn push(&mut self, id: String, mut item: Value) -> usize {
        set(&mut item, "id", json!(id));
        let index = self.items.len();
        self.items.push(item.clone());
        self.events
            .push(json!({ "type": "response.output_item.added", "output_index": index, "item": item }));
        index
    }

    fn add_done(&mut self, prefix: &str, item: Value) {
        let index = self.add(prefix, item);
        self.finish(index, &[]);
    }

    /// Completes an item.
    fn finish(&mut self, index: usize, fields: &[(&str, Value)]) {
        let Some(item) = self.items.get_mut(index) else { return };
        for (name, value) in fields {
            set(item, name, value.clone());
        }
        let item = item.clone();
        self.events.push(json!({ "type": "response.output_item.done", "output_index": index, "item": item }));
    }

    fn event(&mut self, kind: &str, index: usize, mut event: Value) {
        let id = json!(self.items.get(index).and_then(|item| item.get("id")));
        set(&mut event, "type", json!(kind));
        set(&mut event, "output_index", json!(index));
        set(&mut event, "item_id", id);
        self.events.push(event);
    }
}

fn text_part(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
}

fn summary_part(text: &str) -> Value {
    json!({ "type": "summary_text", "text": text })
}

fn set(value: &mut Value, name: &str, field: Value) {
    if let Some(map) = value.as_object_mut() {
        map.insert(name.to_owned(), field);
    }
}
