//! Runs of responses, sent whole or as typed events.

use std::sync::Arc;

use axum::response::sse::Event;
use harness::runtime::ThreadEvent;
use serde_json::{Value, json};

use super::super::verdict::{self, Verdict};
use super::output::Output;
use super::store::StoredResponse;
use super::view::{Problem, ResponseView};
use crate::app::App;
use crate::drive::{Ended, Job, Outlet, Translate};
use crate::fault::Fault;

/// A response whose run is in progress.
pub(super) struct Running {
    app: Arc<App>,
    view: ResponseView,
    output: Output,
    thread: harness::core::ThreadId,
    owns_thread: bool,
    is_streamed: bool,
    sequence: u64,
}

impl Running {
    pub(super) fn new(
        app: &Arc<App>,
        view: ResponseView,
        target: &super::target::Target,
        is_streamed: bool,
    ) -> Self {
        let output = Output::new(&view.id, target.prompt.options.output.is_some());
        Self {
            app: Arc::clone(app),
            output,
            thread: target.thread.clone(),
            owns_thread: target.owns_thread,
            is_streamed,
            view,
            sequence: 0,
        }
    }

    /// Follows the run to its end, and stores the response.
    pub(super) async fn run(mut self, job: Job, out: &Outlet) -> Result<ResponseView, Fault> {
        for kind in ["response.created", "response.in_progress"] {
            let frame = self.frame(json!({ "type": kind, "response": self.view }));
            self.send(vec![frame], out).await;
        }
        let (report, pending) = match job.run(&mut self, out).await {
            Ended::Report { report, pending } => (report, pending),
            Ended::Failed(fault) => {
                (self.view.status, self.view.error) =
                    ("failed", Some(Problem::new(fault.detail().message.clone())));
                let frame = self.frame(json!({ "type": "response.failed", "response": self.view }));
                self.send(vec![frame], out).await;
                return Err(fault);
            }
            Ended::Gone => return Err(Fault::stopping()),
        };
        self.view.end(&report, pending.len());
        let answer = Some(report.answer());
        let verdict = Verdict::of(&report, pending.len());
        if verdict == Verdict::OverBudget && !self.is_streamed {
            if self.owns_thread {
                self.app.discard(&self.thread).await;
            }
            return Err(verdict::failed(verdict, &report));
        }
        let (answer, refusal) = match verdict {
            Verdict::Refused => (None, answer),
            Verdict::Answered | Verdict::Limited | Verdict::Filtered => (answer, None),
            Verdict::Pending | Verdict::OverBudget | Verdict::Cancelled | Verdict::Failed => (None, None),
        };
        self.output.end(answer, refusal, &pending);
        let frames = self.frames();
        self.send(frames, out).await;
        let output = Output::new(&self.view.id, false);
        self.view.output = std::mem::replace(&mut self.output, output).into_items();
        self.store(report.transcript.len()).await;
        let kind = format!("response.{}", self.view.status);
        let frame = self.frame(json!({ "type": kind, "response": self.view }));
        self.send(vec![frame], out).await;
        Ok(self.view)
    }

    async fn store(&self, end: usize) {
        if !self.view.store {
            return;
        }
        let stored = StoredResponse {
            thread: self.thread.clone(),
            end,
            owns_thread: self.owns_thread,
            body: Arc::new(json!(self.view)),
        };
        for orphan in self.app.responses.insert(self.view.id.clone(), stored) {
            self.app.discard(&orphan).await;
        }
    }

    fn frames(&mut self) -> Vec<Event> {
        let events = self.output.take_events();
        events.into_iter().map(|event| self.frame(event)).collect()
    }

    fn frame(&mut self, mut event: Value) -> Event {
        let kind = event.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        if let Some(map) = event.as_object_mut() {
            map.insert("sequence_number".to_owned(), json!(self.sequence));
        }
        self.sequence += 1;
        Event::default().event(kind).data(event.to_string())
    }

    async fn send(&self, frames: Vec<Event>, out: &Outlet) {
        for frame in frames {
            // A client that has disconnected is noticed by the run.
            if !self.is_streamed || out.send(frame).await.is_err() {
                return;
            }
        }
    }
}

impl Translate for Running {
    fn event(&mut self, event: &ThreadEvent) -> Vec<Event> {
        self.output.see(event);
        let frames = self.frames();
        if self.is_streamed { frames } else { Vec::new() }
    }
}
