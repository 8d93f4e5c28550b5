//! Runs on behalf of one request, which end with the connection of its client.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::FutureExt as _;
use harness::core::Outcome;
use harness::core::port::{Decision, ProposedCall};
use harness::runtime::{Approvals, Prompt, Report, StartAt, Stream, StreamItem, Thread, ThreadEvent};
use tokio::sync::mpsc;

use crate::app::{App, StreamPlace};
use crate::fault::Fault;
use crate::held;

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
    thread: Thread,
    events: Stream,
    /// Decisions on pending calls, with the calls that were shown.
    decisions: Vec<(ProposedCall, Decision)>,
    /// Whether the thread is deleted at the end.
    ephemeral: bool,
}

impl Job {
    /// Starts a run. Calls that require approval are parked, except those with a decision.
    pub(crate) fn start(
        app: &Arc<App>,
        thread: Thread,
        prompt: Prompt,
        decisions: Vec<(ProposedCall, Decision)>,
        ephemeral: bool,
    ) -> Result<Self, Fault> {
        let events = thread.events(StartAt::Live);
        let started = held::begin(thread.prompt(prompt));
        let job = Self { app: Arc::clone(app), thread, events, decisions, ephemeral };
        match started {
            Ok(()) => Ok(job),
            Err(error) => {
                tokio::spawn(job.finish());
                Err(error.into())
            }
        }
    }

    /// Follows the run to its end, and aborts it if the client disconnects.
    pub(crate) async fn run(mut self, translate: &mut impl Translate, out: &Outlet) -> Ended {
        let ended = self.follow(translate, out).await;
        if !matches!(ended, Ended::Report { .. }) {
            self.thread.abort("client disconnected").ended().await;
        }
        self.finish().await;
        ended
    }

    async fn follow(&mut self, translate: &mut impl Translate, out: &Outlet) -> Ended {
        let approvals = self.app.options.approvals.clone().unwrap_or_default();
        loop {
            let mut changed = pin!(approvals.changed());
            // From here on no change is missed.
            let _ = changed.as_mut().now_or_never();
            self.settle(&approvals);
            let item = tokio::select! {
                biased;
                () = out.closed() => return Ended::Gone,
                item = self.events.next() => item,
                () = changed => continue,
            };
            match item {
                Some(StreamItem::Event { event, .. }) => {
                    for frame in translate.event(&event) {
                        if out.send(frame).await.is_err() {
                            return Ended::Gone;
                        }
                    }
                    if let Some(ended) = self.ended(&event).await {
                        return ended;
                    }
                }
                Some(StreamItem::Lagged { .. } | _) => return Ended::Failed(lagged()),
                None => return Ended::Failed(Fault::stopping()),
            }
        }
    }

    async fn ended(&self, event: &ThreadEvent) -> Option<Ended> {
        if let ThreadEvent::RunFailed { error, .. } = event {
            return Some(Ended::Failed(harness::runtime::RuntimeError::clone(error).into()));
        }
        let ThreadEvent::RunEnded(report) = event else { return None };
        if self.thread.queue_len() == 0 {
            // The next request of the client must not find the thread busy.
            self.thread.wait_idle().await;
        }
        let pending = if report.outcome() == Outcome::AwaitingApproval {
            held::parked(&self.thread).await.unwrap_or_default()
        } else {
            Vec::new()
        };
        Some(Ended::Report { report: Arc::clone(report), pending })
    }

    /// Decides on the calls that the run holds.
    fn settle(&mut self, approvals: &Approvals) {
        for held in approvals.held(self.thread.id()) {
            let same = |(shown, _): &(ProposedCall, Decision)| held::same_call(shown, &held);
            let decision = match self.decisions.iter().position(same) {
                Some(at) => self.decisions.swap_remove(at).1,
                None => Decision::Later,
            };
            // A call that is no longer held needs no decision.
            let _ = approvals.decide(self.thread.id(), &held.id(), &held.digest(), decision);
        }
    }

    async fn finish(self) {
        if self.ephemeral {
            self.app.discard(&self.thread).await;
        }
    }
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
