//! Events of a thread, in the source's form.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "what the vectors have no word for is passed over, whatever is added"
)]

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use harness_core::CallId;
use harness_core::event::{Event, EventKind};
use harness_core::message::{AssistantMessage, Block, FinishReason, Message, ToolCall};
use harness_core::port::DeltaPart;
use harness_core::tool::ToolOutcome;
use harness_runtime::{Status, ThreadEvent};
use serde_json::{Map, Value, json};

/// Turns the one into the other.
#[derive(Default)]
pub(super) struct Wire {
    running: bool,
    /// Whether a turn of the source is open.
    in_turn: bool,
    /// The block of an answer that is coming.
    block: Option<(&'static str, usize)>,
    blocks: usize,
    answering: bool,
    /// The answer whose calls are not all answered.
    answer: Option<Value>,
    calls: usize,
    /// The arguments that the model gave to its calls; tools may be called with others.
    arguments: HashMap<CallId, Value>,
    results: Vec<String>,
    /// Calls whose start was reported.
    started: VecDeque<String>,
    /// Results that wait for the end of their call, and ends that came before their results.
    waiting: VecDeque<(String, Value)>,
    ended: VecDeque<String>,
    appended: Vec<Value>,
}

impl Wire {
    /// Converts an event of the thread to events of the source.
    pub(super) fn take(&mut self, event: &ThreadEvent, out: &mut Vec<Value>) {
        match event {
            ThreadEvent::Status(Status::Generating { .. }) if !self.running => {
                *self = Self { running: true, ..Self::default() };
                out.push(json!({"type": "agent_start"}));
            }
            ThreadEvent::Status(Status::Idle) if self.running => {
                self.running = false;
                let messages = std::mem::take(&mut self.appended);
                out.push(json!({"type": "agent_end", "messages": messages}));
            }
            ThreadEvent::Event(event) => self.event(event, out),
            ThreadEvent::Delta(part) => self.delta(part, out),
            ThreadEvent::ToolUpdate { call, content } => out.push(self.updated(call, content)),
            _ => {}
        }
    }

    fn event(&mut self, event: &Event, out: &mut Vec<Value>) {
        if let EventKind::MessageAppended { message, .. } = &event.kind {
            self.message(message, out);
        } else if let EventKind::ToolRequested { calls, parallel: Some(true) } = &event.kind {
            for call in calls {
                self.start(call, out);
            }
        } else if let EventKind::ToolStarted { call } = &event.kind {
            self.start_once(call, out);
        } else if let EventKind::ToolFinished { call, outcome, .. }
        | EventKind::ToolFailed { call, outcome, .. } = &event.kind
        {
            self.start_once(call, out);
            self.end(call, outcome, out);
        }
    }

    fn begin_turn(&mut self, out: &mut Vec<Value>) {
        if !std::mem::replace(&mut self.in_turn, true) {
            out.push(json!({"type": "turn_start"}));
        }
    }

    fn delta(&mut self, part: &DeltaPart, out: &mut Vec<Value>) {
        self.begin_turn(out);
        if !std::mem::replace(&mut self.answering, true) {
            out.push(json!({"type": "message_start", "message": {"role": "assistant", "text": ""}}));
        }
        let (kind, delta) = match part {
            DeltaPart::Text(text) => ("text", Some(text)),
            DeltaPart::Thinking(text) => ("thinking", Some(text)),
            DeltaPart::CallStarted { .. } => ("toolcall", None),
            _ => return,
        };
        if kind == "toolcall" || self.block.is_none_or(|(open, _)| open != kind) {
            self.close_block(out);
            self.block = Some((kind, self.blocks));
            self.blocks += 1;
            out.push(update(kind, "start", self.blocks - 1, None));
        }
        if let Some(delta) = delta {
            out.push(update(kind, "delta", self.blocks - 1, Some(delta)));
        }
    }

    fn close_block(&mut self, out: &mut Vec<Value>) {
        if let Some((kind, at)) = self.block.take() {
            out.push(update(kind, "end", at, None));
        }
    }

    fn message(&mut self, message: &Arc<Message>, out: &mut Vec<Value>) {
        let short = short(message);
        self.appended.push(short.clone());
        match &**message {
            Message::Assistant(answer) => self.answer(answer, short, out),
            Message::ToolResult(result) => {
                let id = result.tool_call_id.to_string();
                match self.ended.iter().position(|ended| *ended == id) {
                    Some(at) => {
                        self.ended.remove(at);
                        self.result(id, &short, out);
                    }
                    None => self.waiting.push_back((id, short)),
                }
            }
            _ => {
                self.begin_turn(out);
                pair(&short, out);
            }
        }
    }

    fn answer(&mut self, answer: &AssistantMessage, short: Value, out: &mut Vec<Value>) {
        self.begin_turn(out);
        self.close_block(out);
        if !std::mem::take(&mut self.answering) {
            out.push(json!({"type": "message_start", "message": short}));
        }
        self.blocks = 0;
        out.push(json!({"type": "message_end", "message": short}));
        let broken = matches!(answer.stop_reason, FinishReason::Error | FinishReason::Aborted);
        self.calls = if broken { 0 } else { answer.tool_calls().count() };
        let calls = answer.tool_calls();
        self.arguments =
            calls.map(|call| (call.id.clone(), call.arguments.to().unwrap_or_default())).collect();
        (self.answer, self.results) = (Some(short), Vec::new());
        self.end_turn(out);
    }

    fn end_turn(&mut self, out: &mut Vec<Value>) {
        if self.results.len() < self.calls {
            return;
        }
        if let Some(answer) = self.answer.take() {
            let results = std::mem::take(&mut self.results);
            out.push(json!({"type": "turn_end", "message": answer, "toolResults": results}));
        }
        (self.calls, self.in_turn) = (0, false);
    }

    fn start(&mut self, call: &ToolCall, out: &mut Vec<Value>) {
        self.started.push_back(call.id.to_string());
        out.push(json!({
            "type": "tool_execution_start",
            "toolCallId": call.id,
            "toolName": call.name,
            "args": self.arguments.get(&call.id),
        }));
    }

    fn updated(&self, call: &ToolCall, content: &[Block]) -> Value {
        let text: String = content.iter().filter_map(Block::as_text).collect();
        json!({
            "type": "tool_execution_update",
            "toolCallId": call.id,
            "toolName": call.name,
            "args": self.arguments.get(&call.id),
            "text": text,
        })
    }

    fn start_once(&mut self, call: &ToolCall, out: &mut Vec<Value>) {
        if !self.started.iter().any(|id| *id == *call.id.as_str()) {
            self.start(call, out);
        }
    }

    fn end(&mut self, call: &ToolCall, outcome: &ToolOutcome, out: &mut Vec<Value>) {
        let id = call.id.to_string();
        if let Some(at) = self.started.iter().position(|started| *started == id) {
            self.started.remove(at);
        }
        let mut text: String = outcome.content.iter().filter_map(Block::as_text).collect();
        if let Some(error) = outcome.error.as_ref().filter(|_| text.is_empty()) {
            text.clone_from(&error.message);
        }
        let mut event = json!({
            "type": "tool_execution_end",
            "toolCallId": id,
            "toolName": call.name,
            "isError": outcome.is_error(),
            "text": text,
        });
        if outcome.terminate
            && let Some(event) = event.as_object_mut()
        {
            event.insert("terminate".to_owned(), json!(true));
        }
        out.push(event);
        match self.waiting.iter().position(|(waiting, _)| *waiting == id) {
            Some(at) => {
                let short = self.waiting.remove(at).map(|(_, short)| short).unwrap_or_default();
                self.result(id, &short, out);
            }
            None => self.ended.push_back(id),
        }
    }

    fn result(&mut self, id: String, short: &Value, out: &mut Vec<Value>) {
        pair(short, out);
        self.results.push(id);
        self.end_turn(out);
    }
}

fn pair(message: &Value, out: &mut Vec<Value>) {
    out.extend(["message_start", "message_end"].map(|kind| json!({"type": kind, "message": message})));
}

fn update(kind: &str, part: &str, at: usize, delta: Option<&String>) -> Value {
    let mut event = json!({"type": "message_update", "update": format!("{kind}_{part}"), "contentIndex": at});
    if let (Some(delta), Some(event)) = (delta, event.as_object_mut()) {
        event.insert("delta".to_owned(), json!(delta));
    }
    event
}

/// A message in the vectors' short form.
fn short(message: &Message) -> Value {
    let mut short = Map::from_iter([
        ("role".to_owned(), json!(message.role())),
        ("text".to_owned(), json!(message.joined_text())),
    ]);
    let images = message.content().iter().filter(|block| matches!(block, Block::Image(_))).count();
    if images > 0 {
        short.insert("images".to_owned(), json!(images));
    }
    if let Some(answer) = message.as_assistant() {
        let calls: Vec<_> = answer.tool_calls().map(|call| call.id.as_str()).collect();
        if !calls.is_empty() {
            short.insert("toolCalls".to_owned(), json!(calls));
        }
        short.insert("stopReason".to_owned(), json!(answer.stop_reason));
        let error = answer.error_message.as_ref();
        short.extend(error.map(|error| ("errorMessage".to_owned(), json!(error))));
    }
    if let Some(result) = message.as_tool_result() {
        short.insert("toolCallId".to_owned(), json!(result.tool_call_id));
        short.insert("isError".to_owned(), json!(result.is_error));
    }
    Value::Object(short)
}
