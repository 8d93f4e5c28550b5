//! Chunks of chat completions.

use axum::response::sse::Event;
use harness::core::event::EventKind;
use harness::core::port::DeltaPart;
use harness::runtime::{Report, ThreadEvent};
use serde_json::{Value, json};

use super::super::error::OpenAiError;
use super::super::usage::Tokens;
use super::super::verdict::{RunDetail, Verdict};
use super::problem;
use super::view::{ChatUsage, Head, finish_reason};
use crate::drive::{Ended, Job, Outlet, Translate};
use crate::fault::Fault;

/// Translation of a run into chunks.
pub(super) struct Chunks {
    head: Head,
    has_usage: bool,
    is_json: bool,
    /// Whether the current model call has sent text.
    has_text: bool,
    /// Whether earlier model calls have sent text, which needs a separator.
    has_earlier: bool,
}

impl Chunks {
    pub(super) fn new(head: Head, has_usage: bool, is_json: bool) -> Self {
        Self { head, has_usage, is_json, has_text: false, has_earlier: false }
    }

    /// Sends the chunks of a run.
    pub(super) async fn send(mut self, job: Job, out: &Outlet) {
        let first = self.chunk(&json!({ "role": "assistant", "content": "" }), None);
        // A client that has disconnected is noticed by the run.
        let _ = out.send(first).await;
        let ended = job.run(&mut self, out).await;
        for frame in self.end(&ended) {
            if out.send(frame).await.is_err() {
                return;
            }
        }
    }

    /// An answer starts.
    fn start(&mut self) -> Vec<Event> {
        self.has_earlier |= self.has_text;
        self.has_text = false;
        Vec::new()
    }

    fn text(&mut self, text: &str) -> Vec<Event> {
        let separator = if self.has_earlier && !self.has_text { "\n\n" } else { "" };
        self.has_text = true;
        vec![self.chunk(&json!({ "content": format!("{separator}{text}") }), None)]
    }

    fn end(&mut self, ended: &Ended) -> Vec<Event> {
        match ended {
            Ended::Gone => Vec::new(),
            Ended::Failed(fault) => vec![failed(fault)],
            Ended::Report { report, pending } => match Verdict::of(report, pending.len()) {
                verdict @ (Verdict::Pending | Verdict::OverBudget | Verdict::Cancelled | Verdict::Failed) => {
                    vec![failed(&problem(verdict, report, pending))]
                }
                verdict @ (Verdict::Answered | Verdict::Limited | Verdict::Filtered | Verdict::Refused) => {
                    self.finish(verdict, report)
                }
            },
        }
    }

    fn finish(&mut self, verdict: Verdict, report: &Report) -> Vec<Event> {
        let mut frames = Vec::new();
        let answer = report.answer();
        if verdict == Verdict::Refused {
            frames.push(self.chunk(&json!({ "refusal": answer }), None));
        } else if !self.has_text && !answer.is_empty() {
            frames.extend(self.text(answer));
        }
        let mut last = self.body(&json!({}), Some(finish_reason(verdict)));
        if let Some(map) = last.as_object_mut() {
            map.insert("harness".to_owned(), json!(RunDetail::of(report)));
        }
        frames.push(data(&last));
        if self.has_usage {
            let usage = Tokens::of(report).map(ChatUsage::from);
            let mut chunk = self.body(&json!({}), None);
            if let Some(map) = chunk.as_object_mut() {
                map.insert("choices".to_owned(), json!([]));
                map.insert("usage".to_owned(), json!(usage));
            }
            frames.push(data(&chunk));
        }
        frames.push(Event::default().data("[DONE]"));
        frames
    }

    fn body(&self, delta: &Value, finish_reason: Option<&str>) -> Value {
        let Head { id, created, model } = &self.head;
        json!({
            "id": id, "object": "chat.completion.chunk", "created": created, "model": model,
            "choices": [{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason }],
        })
    }

    fn chunk(&self, delta: &Value, finish_reason: Option<&str>) -> Event {
        data(&self.body(delta, finish_reason))
    }
}

impl Translate for Chunks {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the other events have no place in the API")]
    fn event(&mut self, event: &ThreadEvent) -> Vec<Event> {
        match event {
            ThreadEvent::Delta(DeltaPart::Text(text)) if !self.is_json && !text.is_empty() => self.text(text),
            // Sent text cannot be taken back: an answer that starts again follows it.
            ThreadEvent::AnswerRestarted => self.start(),
            ThreadEvent::Event(event) if matches!(event.kind, EventKind::ModelStepStarted { .. }) => {
                self.start()
            }
            _ => Vec::new(),
        }
    }
}

fn data(value: &Value) -> Event {
    Event::default().data(value.to_string())
}

/// Error in a stream, which the official clients raise.
fn failed(fault: &Fault) -> Event {
    data(&json!(OpenAiError::of(fault)))
}
