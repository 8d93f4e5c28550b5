//! The flat trace and the flat stream of the source, made from the events of the product.

use harness_core::Time;
use harness_core::event::{Event, EventKind, ResultNote, Seen, Subscription};
use harness_core::message::{AssistantMessage, Block, ModelOutput, ToolCall, Usage};
use harness_core::port::DeltaPart;
use harness_core::tool::ToolOutcome;
use serde_json::{Map, Value, json};

use super::result::turn_result;
use super::seen::object;
use super::{json_of, turn_id};

/// Makes trace events from events; give it every event in order, for it counts.
#[derive(Debug, Default)]
pub(super) struct Trace {
    started: Time,
    tool_calls: u32,
    /// Whether it is the source's later line, which also has `tool_batch_started`.
    pub(super) later: bool,
    pub(super) told: Vec<Value>,
}

impl Trace {
    pub(super) fn of(later: bool) -> Self {
        Self { later, ..Self::default() }
    }

    pub(super) fn take(&mut self, event: &Event) {
        if let EventKind::TurnStarted { .. } = event.kind {
            (self.started, self.tool_calls) = (event.at, 0);
        } else if let EventKind::ToolStarted { .. } = event.kind {
            self.tool_calls += 1;
        }
        if let Some(fields) = fields(&event.kind) {
            self.tell(event.kind.name(), event, fields);
        }
        if let (true, EventKind::ToolRequested { calls, parallel: Some(parallel) }) =
            (self.later, &event.kind)
        {
            let mode = if *parallel { "parallel" } else { "sequential" };
            let fields = object([("mode", Some(json!(mode))), ("callCount", Some(json!(calls.len())))]);
            self.tell("tool_batch_started", event, fields);
        }
    }

    fn tell(&mut self, kind: &str, event: &Event, fields: Value) {
        let origin = &*event.origin;
        let own = fields.get("metadata").is_some();
        let mut told = object([
            ("type", Some(json!(kind))),
            ("timestamp", Some(json!(event.at.iso()))),
            ("assistantId", Some(json!(origin.assistant.as_deref().unwrap_or_default()))),
            ("turnId", Some(json!(turn_id(origin, event.turn)))),
            ("workspaceId", origin.workspace.as_ref().map(json_of)),
            ("sessionId", origin.session.as_ref().map(json_of)),
            ("iteration", Some(json!(event.iteration))),
            ("toolCallCount", Some(json!(self.tool_calls))),
            ("elapsedMs", Some(json!(event.at.since(self.started).0))),
            ("metadata", origin.metadata.as_ref().filter(|_| !own).map(json_of)),
        ]);
        extend(&mut told, fields);
        self.told.push(told);
    }
}

fn extend(object: &mut Value, fields: Value) {
    if let (Value::Object(object), Value::Object(fields)) = (object, fields) {
        object.extend(fields);
    }
}

/// The fields of a trace event beyond the base; `None` when the format has no such event.
#[expect(clippy::wildcard_enum_match_arm, reason = "the format has few of the product's events")]
fn fields(kind: &EventKind) -> Option<Value> {
    Some(match kind {
        EventKind::TurnStarted { .. } | EventKind::ModelStepStarted { .. } => Value::Object(Map::new()),
        EventKind::ModelStepFinished { output_type, usage: used, .. } => {
            object([("outputType", Some(json_of(output_type))), ("usage", used.as_deref().map(usage))])
        }
        EventKind::ToolRequested { calls, .. } => {
            json!({ "calls": calls.iter().map(|asked| call(asked)).collect::<Vec<_>>() })
        }
        EventKind::ToolStarted { call: started } => json!({ "call": call(started) }),
        EventKind::ToolRetried { call: failed, attempt, max_attempts, backoff, previous_error } => object([
            ("call", Some(call(failed))),
            ("attempt", Some(json!(attempt))),
            ("maxAttempts", Some(json!(max_attempts))),
            ("backoffMs", Some(json_of(backoff))),
            ("previousError", previous_error.as_ref().map(json_of)),
        ]),
        EventKind::ToolFinished { note: Some(ResultNote::Late), .. } => return None,
        EventKind::ToolFinished { call, outcome, .. }
        | EventKind::ToolFailed { call, outcome, ran: true, fault: None, note: None, .. } => {
            json!({ "result": result(call, outcome) })
        }
        EventKind::ClarificationRequested { question } => json!({ "question": question }),
        EventKind::ApprovalRequested { request, .. } => json!({ "request": json_of(request) }),
        EventKind::LimitReached { reason, .. } => json!({ "stopReason": reason.as_str() }),
        EventKind::TurnFinished { end } => {
            json!({ "outcome": end.outcome().as_str(), "stopReason": end.reason().as_str() })
        }
        _ => return None,
    })
}

fn call(call: &ToolCall) -> Value {
    json!({ "id": call.id.as_str(), "name": call.name.as_str(), "input": json_of(&call.arguments) })
}

fn usage(usage: &Usage) -> Value {
    object([
        ("inputTokens", usage.input.map(|n| json!(n))),
        ("outputTokens", usage.output.map(|n| json!(n))),
        ("costUnits", usage.total_cost().as_ref().map(json_of)),
        ("latencyMs", usage.latency_ms.map(|n| json!(n))),
    ])
}

fn result(call: &ToolCall, outcome: &ToolOutcome) -> Value {
    let said: String = outcome.content.iter().filter_map(Block::as_text).collect();
    object([
        ("callId", Some(json!(call.id.as_str()))),
        ("toolName", Some(json!(call.name.as_str()))),
        ("status", Some(json!(if outcome.is_error() { "error" } else { "success" }))),
        ("output", (!outcome.content.is_empty()).then(|| json!(said))),
        ("structuredOutput", outcome.structured.as_ref().map(json_of)),
        ("error", outcome.error.as_ref().map(json_of)),
        ("usage", outcome.usage.as_deref().map(usage)),
        ("metadata", outcome.metadata.as_ref().map(json_of)),
        ("terminate", outcome.terminate.then(|| json!(true))),
    ])
}

/// Items of a flat stream of the turn: `text_delta`, `step_finished`, `tool_started`, `tool_finished`,
/// `tool_failed` and `turn_finished`. A model that does not stream gives its text as one `text_delta` behind its step.
pub(super) fn streamed(mut seen: Subscription) -> Vec<Value> {
    let mut stream = Stream::default();
    while let Some(seen) = seen.try_next() {
        match seen {
            Seen::Event(event) => stream.event(&event),
            Seen::Delta(delta) => {
                if let DeltaPart::Text(text) = &delta.part {
                    stream.streamed = true;
                    stream.delta(text, None);
                }
            }
            Seen::Lagged { .. } | _ => {}
        }
    }
    stream.told
}

#[derive(Default)]
struct Stream {
    iteration: u32,
    /// Whether the model of this iteration streamed text.
    streamed: bool,
    said: Option<String>,
    told: Vec<Value>,
}

impl Stream {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the stream has few of the product's events")]
    fn event(&mut self, event: &Event) {
        self.iteration = event.iteration;
        match &event.kind {
            EventKind::ModelStepStarted { .. } => (self.streamed, self.said) = (false, None),
            EventKind::MessageAppended { message, .. } => {
                if let Some(answer) = message.as_assistant() {
                    self.said = said(answer);
                }
            }
            EventKind::ModelStepFinished { output_type, .. } => {
                self.tell("step_finished", event);
                if let Some(text) = self.said.take().filter(|_| !self.streamed) {
                    self.delta(&text, Some(output_type));
                }
            }
            EventKind::TurnFinished { end } => {
                self.told.push(json!({ "type": "turn_finished", "result": turn_result(end, &event.origin) }));
            }
            kind if matches!(kind.name(), "tool_started" | "tool_finished" | "tool_failed") => {
                self.tell(kind.name(), event);
            }
            _ => {}
        }
    }

    fn tell(&mut self, kind: &str, event: &Event) {
        if let Some(fields) = fields(&event.kind) {
            let mut told = json!({ "type": kind, "iteration": event.iteration });
            extend(&mut told, fields);
            self.told.push(told);
        }
    }

    fn delta(&mut self, text: &str, output_type: Option<&str>) {
        self.told.push(object([
            ("type", Some(json!("text_delta"))),
            ("iteration", Some(json!(self.iteration))),
            ("text", Some(json!(text))),
            ("outputType", output_type.map(|kind| json!(kind))),
        ]));
    }
}

/// Returns the text of a response for the user.
fn said(answer: &AssistantMessage) -> Option<String> {
    match answer.output() {
        ModelOutput::FinalAnswer => Some(answer.joined_text()),
        ModelOutput::Clarification { question } => Some(question),
        ModelOutput::Refusal { reason } => Some(reason.to_owned()),
        ModelOutput::ToolRequest | ModelOutput::ApprovalRequest(_) | ModelOutput::Invalid(_) | _ => None,
    }
}
