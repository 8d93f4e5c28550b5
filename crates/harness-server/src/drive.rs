//! Runs on behalf of one request, which end with the connection of its client.

use std::convert::Infallible;
use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use harness::core::port::{Decision, ProposedCall};
use harness::core::{Outcome, ThreadId};
use harness::runtime::{ApprovalDecision, Prompt, Report, RuntimeError, StartAt, StreamItem, ThreadEvent};
use tokio::sync::mpsc;

use crate::app::{App, StreamPlace};
use crate::fault::Fault;

/// Frames between a run and the connection of its client.
const FRAMES: usize = 64;

/// Sending end of a response, closed when the client disconnects.
pub(crate) type Outlet = mpsc::Sender<Event>;

/// Creates the two ends of a response.
pub(crate) fn outlet() -> (Outlet, mpsc::Receiver<Event>) {
    mpsc::channel(FRAMES)
}

/// Translation of events into the frames of a protocol.
pub(crate) trait Translate: Send {
    /// Frames of an event of the run.
    fn event(&mut self, event: &ThreadEvent) -> Vec<Event>;
}

/// No frames, for responses that are sent whole.
pub(crate) struct Whole;

impl Translate for Whole {
    fn event(&mut self, _: &ThreadEvent) -> Vec<Event> {
        Vec::new()
    }
}

/// End of a run on behalf of a request.
pub(crate) enum Ended {
    /// It ended, with the calls that it left pending.
    Report { report: Arc<Report>, pending: Vec<ProposedCall> },
    /// It could not start, or its events were lost.
    Failed(Fault),
    /// The client disconnected, and the run was aborted.
    Gone,
}

/// A started run.
pub(crate) struct Job {
    app: Arc<App>,
    thread: ThreadId,
    events: BoxStream<'static, StreamItem>,
    /// Decisions on pending calls, with the calls that were shown.
    decisions: Vec<(ProposedCall, Decision)>,
    /// Whether the thread is deleted at the end.
    ephemeral: bool,
    /// Whether decisions continue it, so that it may take several runs.
    is_decided: bool,
}

impl Job {
    /// Starts a run. Calls that require approval are parked, except those with a decision. Decisions about calls of
    /// sub-agents continue the run where it is parked.
    pub(crate) async fn start(
        app: &Arc<App>,
        thread: ThreadId,
        prompt: Prompt,
        decisions: Vec<(ProposedCall, Decision)>,
        ephemeral: bool,
    ) -> Result<Self, Fault> {
        let events = app.threads.events_boxed(&thread, StartAt::Live).await?;
        let is_inside = |(shown, _): &(ProposedCall, Decision)| shown.origin.thread.as_ref() != Some(&thread);
        let is_decided = decisions.iter().any(is_inside);
        let mut job = Self { app: Arc::clone(app), thread, events, decisions, ephemeral, is_decided };
        let started = if is_decided {
            job.decide(&prompt).await
        } else {
            app.threads.start_boxed(&job.thread, prompt).await.map(drop).map_err(Fault::from)
        };
        match started {
            Ok(()) => Ok(job),
            Err(fault) => {
                tokio::spawn(job.finish());
                Err(fault)
            }
        }
    }

    /// Gives the decisions to the thread, which continues with them.
    async fn decide(&mut self, prompt: &Prompt) -> Result<(), Fault> {
        if !prompt.messages.is_empty() {
            let text = "messages and decisions on calls of sub-agents cannot be sent in one request";
            return Err(
                Fault::unreadable(text).hint("send the decisions first, and the messages after the answer")
            );
        }
        for (shown, decision) in std::mem::take(&mut self.decisions) {
            let decision = ApprovalDecision { approval: shown.id(), digest: shown.digest(), decision };
            self.app.threads.decide_boxed(&self.thread, decision).await?;
        }
        Ok(())
    }

    /// Follows the run to its end, and aborts it if the client disconnects. Calls that it parked just then still wait.
    pub(crate) async fn run(mut self, translate: &mut impl Translate, out: &Outlet) -> Ended {
        let ended = self.follow(translate, out).await;
        let is_over = matches!(ended, Ended::Report { .. });
        if !is_over && parked(&self.app, &self.thread).await.unwrap_or_default().is_empty() {
            // A thread that is gone has no run.
            let _ = self.app.threads.abort_boxed(&self.thread, "client disconnected".into(), true).await;
        }
        self.finish().await;
        ended
    }

    async fn follow(&mut self, translate: &mut impl Translate, out: &Outlet) -> Ended {
        loop {
            let item = tokio::select! {
                biased;
                () = out.closed() => return Ended::Gone,
                item = self.events.next() => item,
            };
            match item {
                Some(StreamItem::Event { event, .. } | StreamItem::Transient { event }) => {
                    for frame in translate.event(&event) {
                        if out.send(frame).await.is_err() {
                            return Ended::Gone;
                        }
                    }
                    if let Some(ended) = self.ended(&event).await {
                        return ended;
                    }
                }
                Some(StreamItem::Held { calls }) => self.settle(calls).await,
                Some(StreamItem::Lagged { .. } | _) => return Ended::Failed(lagged()),
                None => return Ended::Failed(Fault::stopping()),
            }
        }
    }

    async fn ended(&mut self, event: &ThreadEvent) -> Option<Ended> {
        if let ThreadEvent::RunFailed { error, .. } = event {
            return Some(Ended::Failed(RuntimeError::clone(error).into()));
        }
        let ThreadEvent::RunEnded(report) = event else { return None };
        let threads = &self.app.threads;
        if threads.info_boxed(&self.thread).await.is_ok_and(|info| info.waiting == 0) {
            // The next request of the client must not find the thread busy.
            let _ = threads.wait_idle_boxed(&self.thread).await;
        }
        let waits = report.outcome() == Outcome::AwaitingApproval;
        let pending =
            if waits { parked(&self.app, &self.thread).await.unwrap_or_default() } else { Vec::new() };
        if waits && pending.is_empty() && self.is_decided {
            // All is decided: another run continues it.
            return None;
        }
        Some(Ended::Report { report: Arc::clone(report), pending })
    }

    /// Decides on the calls that the run holds.
    async fn settle(&mut self, calls: Vec<ProposedCall>) {
        for held in calls {
            let same = |(shown, _): &(ProposedCall, Decision)| same_call(shown, &held);
            let decision = match self.decisions.iter().position(same) {
                Some(at) => self.decisions.swap_remove(at).1,
                None => Decision::Later,
            };
            let decision = ApprovalDecision { approval: held.id(), digest: held.digest(), decision };
            // A call that is no longer held needs no decision.
            let _ = self.app.threads.decide_boxed(&self.thread, decision).await;
        }
    }

    async fn finish(self) {
        if self.ephemeral {
            self.app.discard(&self.thread).await;
        }
    }
}

/// Whether a held call is the one that was shown: a gate may have changed its arguments.
fn same_call(shown: &ProposedCall, held: &ProposedCall) -> bool {
    let (shown, held) = (&shown.call, &held.call);
    shown.id == held.id && shown.name == held.name && shown.arguments == held.arguments
}

/// Calls of a thread that an earlier run parked.
pub(crate) async fn parked(app: &App, thread: &ThreadId) -> Result<Vec<ProposedCall>, Fault> {
    let pending = app.threads.approvals_boxed(thread).await?;
    Ok(pending.into_iter().filter(|call| call.is_parked).map(|call| call.proposed).collect())
}

fn lagged() -> Fault {
    let message = "the client reads too slowly: events of the run were lost";
    Fault::new(StatusCode::INTERNAL_SERVER_ERROR, "server.lagged", message)
}

/// Response of server-sent events. The stream's slot is held until its end.
pub(crate) fn sse(app: &App, frames: mpsc::Receiver<Event>, place: StreamPlace) -> Response {
    let events = futures_util::stream::unfold((frames, place), |(mut frames, place)| async move {
        let frame = frames.recv().await?;
        Some((Ok::<_, Infallible>(frame), (frames, place)))
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(app.options.bounds.keep_alive)).into_response()
}
