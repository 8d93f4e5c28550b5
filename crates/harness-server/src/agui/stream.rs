//! Events of a run in the form of AG-UI.

use std::collections::HashMap;

use axum::response::sse;
use harness::core::event::{Event, EventKind};
use harness::core::message::{Message, ToolCall, ToolResultMessage};
use harness::core::port::{DeltaPart, ProposedCall};
use harness::core::{AgentId, CallId, Json, ThreadId};
use harness::runtime::{Report, ThreadEvent};
use serde_json::{Value, json};

use super::resume;
use crate::drive::{Ended, Job, Outlet, Translate};
use crate::fault::Fault;
use crate::openai::usage::Tokens;
use crate::openai::verdict::{RunDetail, Verdict};
use crate::wire::ApprovalView;

/// Kind of a message that grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Growing {
    Text,
    Reasoning,
}

/// An iteration of an agent.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    agent: AgentId,
    turn: u32,
    iteration: u32,
}

/// Translation of a run into events of AG-UI.
pub(super) struct AgUiRun {
    thread: ThreadId,
    /// Id of the client for the run.
    run: String,
    /// Start of the ids of messages.
    prefix: String,
    messages: usize,
    /// The message that grows, with its id.
    open: Option<(Growing, String)>,
    /// Message of the current model call, to which its tool calls belong.
    parent: Option<String>,
    /// Whether the current model call has sent text.
    has_text: bool,
    step: Option<Step>,
    /// Arguments of the calls without a result, as they were sent.
    calls: HashMap<CallId, Json>,
    events: Vec<Value>,
}

impl AgUiRun {
    pub(super) fn new(thread: ThreadId, run: String, prefix: String) -> Self {
        Self {
            thread,
            run,
            prefix,
            messages: 0,
            open: None,
            parent: None,
            has_text: false,
            step: None,
            calls: HashMap::new(),
            events: Vec::new(),
        }
    }

    /// Sends the events of a run.
    pub(super) async fn send(mut self, job: Job, out: &Outlet) {
        self.events.push(json!({ "type": "RUN_STARTED", "threadId": self.thread, "runId": self.run }));
        for frame in self.frames() {
            // A client that has disconnected is noticed by the run.
            let _ = out.send(frame).await;
        }
        let ended = job.run(&mut self, out).await;
        self.end(ended);
        for frame in self.frames() {
            if out.send(frame).await.is_err() {
                return;
            }
        }
    }

    fn frames(&mut self) -> Vec<sse::Event> {
        self.events.drain(..).map(|event| sse::Event::default().data(event.to_string())).collect()
    }

    fn new_message(&mut self) -> String {
        self.messages += 1;
        format!("{}-{}", self.prefix, self.messages)
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the other events have no place in the protocol")]
    fn see(&mut self, event: &Event) {
        match &event.kind {
            EventKind::ModelStepStarted { agent, .. } => {
                self.close();
                (self.parent, self.has_text) = (None, false);
                self.enter(Step { agent: agent.clone(), turn: event.turn, iteration: event.iteration });
            }
            EventKind::ToolRequested { calls, .. } => calls.iter().for_each(|call| self.call(call)),
            EventKind::ToolStarted { call } => self.changed(call),
            EventKind::MessageAppended { message, .. } => match &**message {
                Message::Assistant(answer) => {
                    self.close();
                    let text = answer.joined_text();
                    // A model that sends no deltas; the last answer is added at the end.
                    if answer.tool_calls().next().is_some() && !self.has_text && !text.is_empty() {
                        self.whole(&text);
                    }
                }
                Message::ToolResult(result) => self.result(result),
                Message::System(_) | Message::User(_) | Message::Custom(_) | _ => {}
            },
            _ => {}
        }
    }

    /// Starts a step, unless it is in progress.
    fn enter(&mut self, step: Step) {
        if self.step.as_ref() == Some(&step) {
            return;
        }
        self.leave();
        self.events.push(json!({ "type": "STEP_STARTED", "stepName": step.agent }));
        self.step = Some(step);
    }

    fn leave(&mut self) {
        if let Some(step) = self.step.take() {
            self.events.push(json!({ "type": "STEP_FINISHED", "stepName": step.agent }));
        }
    }

    fn grow(&mut self, kind: Growing, delta: &str) {
        if delta.is_empty() {
            return;
        }
        let id = match self.open.take() {
            Some((open, id)) if open == kind => id,
            other => {
                self.open = other;
                self.close();
                self.start(kind)
            }
        };
        let name = match kind {
            Growing::Text => "TEXT_MESSAGE_CONTENT",
            Growing::Reasoning => "REASONING_MESSAGE_CONTENT",
        };
        self.events.push(json!({ "type": name, "messageId": id, "delta": delta }));
        self.open = Some((kind, id));
    }

    fn start(&mut self, kind: Growing) -> String {
        let id = self.new_message();
        match kind {
            Growing::Text => {
                self.has_text = true;
                self.parent.get_or_insert_with(|| id.clone());
                self.events
                    .push(json!({ "type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant" }));
            }
            Growing::Reasoning => {
                self.events.push(json!({ "type": "REASONING_START", "messageId": id }));
                self.events
                    .push(json!({ "type": "REASONING_MESSAGE_START", "messageId": id, "role": "reasoning" }));
            }
        }
        id
    }

    /// Ends the message that grows.
    fn close(&mut self) {
        let Some((kind, id)) = self.open.take() else { return };
        let names: &[&str] = match kind {
            Growing::Text => &["TEXT_MESSAGE_END"],
            Growing::Reasoning => &["REASONING_MESSAGE_END", "REASONING_END"],
        };
        self.events.extend(names.iter().map(|name| json!({ "type": name, "messageId": id })));
    }

    /// Adds a message with its whole text.
    fn whole(&mut self, text: &str) {
        self.grow(Growing::Text, text);
        self.close();
    }

    fn call(&mut self, call: &ToolCall) {
        self.close();
        let parent = match self.parent.clone() {
            Some(parent) => parent,
            None => self.new_message(),
        };
        self.parent = Some(parent.clone());
        let (id, name) = (&call.id, &call.name);
        self.events.extend([
            json!({ "type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": name, "parentMessageId": parent }),
            json!({ "type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": call.arguments.text() }),
            json!({ "type": "TOOL_CALL_END", "toolCallId": id }),
        ]);
        self.calls.insert(id.clone(), call.arguments.clone());
    }

    /// Reports arguments that a gate has changed.
    fn changed(&mut self, call: &ToolCall) {
        if self.calls.get(&call.id).is_some_and(|sent| *sent != call.arguments) {
            let value = json!({ "toolCallId": call.id, "tool": call.name, "arguments": call.arguments });
            self.events.push(json!({ "type": "CUSTOM", "name": "harness.call_changed", "value": value }));
        }
    }

    fn result(&mut self, result: &ToolResultMessage) {
        self.calls.remove(&result.tool_call_id);
        let text = Message::from(result.clone()).joined_text();
        let mut event = json!({ "type": "TOOL_CALL_RESULT", "messageId": self.new_message(),
            "toolCallId": result.tool_call_id, "content": text, "role": "tool" });
        if result.is_error
            && let Some(event) = event.as_object_mut()
        {
            event.insert("metadata".to_owned(), json!({ "harness": { "isError": true } }));
        }
        self.events.push(event);
    }

    fn end(&mut self, ended: Ended) {
        match ended {
            Ended::Gone => {}
            Ended::Failed(fault) => {
                self.close();
                self.leave();
                self.failed(&fault);
            }
            Ended::Report { report, pending } => self.report(&report, pending),
        }
    }

    fn report(&mut self, report: &Report, pending: Vec<ProposedCall>) {
        let verdict = Verdict::of(report, pending.len());
        let has_answer =
            !matches!(verdict, Verdict::Pending | Verdict::OverBudget | Verdict::Cancelled | Verdict::Failed);
        if has_answer && !self.has_text {
            self.whole(report.answer());
        }
        self.close();
        self.leave();
        match verdict {
            Verdict::Answered if report.outcome() != harness::core::Outcome::AwaitingApproval => {
                self.finish(report, &json!({ "type": "success" }));
            }
            Verdict::Pending => {
                let interrupts: Vec<Value> = pending.iter().map(interrupt).collect();
                for call in pending {
                    let call = ApprovalView::parked(self.thread.clone(), call);
                    self.events.push(
                        json!({ "type": "CUSTOM", "name": "harness.approval_requested", "value": call }),
                    );
                }
                self.finish(report, &json!({ "type": "interrupt", "interrupts": interrupts }));
            }
            Verdict::Cancelled => self.finish(report, &json!({ "type": "cancelled" })),
            Verdict::Answered
            | Verdict::Limited
            | Verdict::OverBudget
            | Verdict::Filtered
            | Verdict::Refused
            | Verdict::Failed => self.stopped(report),
        }
    }

    fn finish(&mut self, report: &Report, outcome: &Value) {
        let event = json!({ "type": "RUN_FINISHED", "threadId": self.thread, "runId": self.run,
            "outcome": outcome, "result": RunDetail::of(report), "usage": usage(report) });
        self.events.push(event);
    }

    /// Ends a run that did not complete.
    fn stopped(&mut self, report: &Report) {
        let (code, fallback) = match report.outcome() {
            harness::core::Outcome::Completed | harness::core::Outcome::NeedsClarification => {
                ("length", "the output limit of the model cut the answer")
            }
            harness::core::Outcome::AwaitingApproval => {
                (report.reason().as_str(), "a call requires approval: list the approvals of the thread")
            }
            harness::core::Outcome::Deferred | harness::core::Outcome::Failed => {
                (report.reason().as_str(), "the run failed")
            }
        };
        let message = report.problem().unwrap_or_else(|| fallback.to_owned());
        self.events
            .push(json!({ "type": "RUN_ERROR", "message": message, "code": code, "usage": usage(report) }));
    }

    fn failed(&mut self, fault: &Fault) {
        let detail = fault.detail();
        let hint = detail.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
        let message = format!("{}{hint}", detail.message);
        self.events.push(json!({ "type": "RUN_ERROR", "message": message, "code": detail.kind }));
    }
}

impl Translate for AgUiRun {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the other events have no place in the protocol")]
    fn event(&mut self, event: &ThreadEvent) -> Vec<sse::Event> {
        match event {
            ThreadEvent::Delta(DeltaPart::Text(text)) => self.grow(Growing::Text, text),
            ThreadEvent::Delta(DeltaPart::Thinking(text)) => self.grow(Growing::Reasoning, text),
            // The answer is another message.
            ThreadEvent::AnswerRestarted => {
                self.close();
                (self.parent, self.has_text) = (None, false);
            }
            ThreadEvent::Event(event) if event.origin.parent.is_none() => self.see(event),
            _ => {}
        }
        self.frames()
    }
}

fn interrupt(call: &ProposedCall) -> Value {
    json!({
        "id": call.id(), "reason": "tool_call", "message": format!("`{}` requires approval", call.call.name),
        "toolCallId": call.call.id, "responseSchema": resume::schema(),
        "metadata": { "harness": { "digest": call.digest() } },
    })
}

/// Tokens of a run, as a list of at most one entry for all models.
fn usage(report: &Report) -> Vec<Value> {
    let entry = |tokens: Tokens| {
        json!({ "inputTokens": tokens.input, "outputTokens": tokens.output, "totalTokens": tokens.total(),
            "reasoningTokens": tokens.reasoning, "cachedInputTokens": tokens.cached })
    };
    Tokens::of(report).map(entry).into_iter().collect()
}
