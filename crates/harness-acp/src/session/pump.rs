//! Pump of thread events to the client.

use std::path::PathBuf;
use std::sync::{Arc, Weak};

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    AvailableCommandsUpdate, CurrentModeUpdate, SessionId, SessionUpdate,
};
use harness::core::port::ApprovalAsk;
use harness::runtime::{StartAt, Stream, StreamItem, Thread};
use harness::tools::ThreadMode;
use tokio::sync::{mpsc, oneshot};

use super::permission::{self, Choice};
use super::update_mapper::UpdateMapper;
use super::{Line, Session};
use crate::{commands, stop};

/// Job of a pump, done after all earlier events.
pub(super) enum Job {
    /// Asks the client about a held call.
    Ask { ask: ApprovalAsk, answer: oneshot::Sender<Choice> },
    /// Sends the whole history.
    Replay { done: oneshot::Sender<Result<(), Error>> },
    /// The client knows the history.
    Passed { messages: usize },
    /// Sends the available commands.
    Commands,
    /// Completes when everything is sent, including `say`.
    Flush { say: Option<String>, done: oneshot::Sender<()> },
}

/// One per session, while the thread is open and the client connected. It is the only sender of the
/// session's updates, so their order is that of the events.
pub(super) struct Pump {
    id: SessionId,
    thread: Thread,
    session: Weak<Session>,
    mode: Option<ThreadMode>,
    /// Name of the mode that the client knows of.
    shown: Option<Arc<str>>,
    line: Line,
    mapper: UpdateMapper,
    events: Stream,
}

impl Pump {
    pub(super) fn new(session: &Arc<Session>, cwd: PathBuf, line: Line) -> Self {
        let mode = session.mode.clone();
        Self {
            id: session.id.clone(),
            thread: session.thread.clone(),
            session: Arc::downgrade(session),
            shown: mode.as_ref().map(|mode| Arc::clone(&mode.current().name)),
            mode,
            line,
            mapper: UpdateMapper::new(cwd),
            events: session.thread.events(StartAt::Live),
        }
    }

    /// Runs until the thread is closed, no jobs can arrive, or the client disconnects.
    pub(super) fn start(mut self, mut jobs: mpsc::Receiver<Job>) {
        tokio::spawn(async move {
            loop {
                let there = tokio::select! {
                    biased;
                    item = self.events.next() => match item {
                        Some(item) => self.take(item).await,
                        None => false,
                    },
                    job = jobs.recv() => match job {
                        Some(job) => self.perform(job).await,
                        None => false,
                    },
                };
                if !there {
                    return;
                }
            }
        });
    }

    async fn take(&mut self, item: StreamItem) -> bool {
        let updates = match item {
            StreamItem::Event { event, .. } => self.mapper.updates_of(&event),
            StreamItem::Lagged { missed } => {
                tracing::debug!(session = %self.id, missed, "the client is slow; the transcript is sent instead");
                self.caught_up().await
            }
            StreamItem::Held { .. } | _ => Vec::new(),
        };
        self.send(updates).await && self.send_mode().await
    }

    /// Updates of missed events from the transcript. The stream continues after them.
    async fn caught_up(&mut self) -> Vec<SessionUpdate> {
        self.events = self.thread.events(StartAt::Live);
        let Ok(transcript) = self.thread.messages().await else { return Vec::new() };
        let mut updates = self.mapper.catch_up(&transcript);
        while let Some(StreamItem::Event { event, .. }) = self.events.try_next() {
            updates.extend(self.mapper.updates_missed(&event));
        }
        updates
    }

    async fn send(&self, updates: Vec<SessionUpdate>) -> bool {
        for update in updates {
            if !self.line.send(&self.id, update).await {
                return false;
            }
        }
        true
    }

    /// The mode, when it was changed by the model or by the host.
    async fn send_mode(&mut self) -> bool {
        let Some(current) = self.mode.as_ref().map(|mode| Arc::clone(&mode.current().name)) else {
            return true;
        };
        if self.shown.as_ref() == Some(&current) {
            return true;
        }
        let update = CurrentModeUpdate::new(current.to_string());
        self.shown = Some(current);
        self.line.send(&self.id, SessionUpdate::CurrentModeUpdate(update)).await
    }

    async fn perform(&mut self, job: Job) -> bool {
        match job {
            Job::Ask { ask, answer } => {
                permission::request(&self.line, &self.session, &self.id, &self.mapper, ask, answer);
                true
            }
            Job::Replay { done } => self.replay(done).await,
            Job::Passed { messages } => {
                self.mapper.passed(messages);
                true
            }
            Job::Commands => {
                let commands = commands::of(&self.thread.config());
                let update = AvailableCommandsUpdate::new(commands);
                self.line.send(&self.id, SessionUpdate::AvailableCommandsUpdate(update)).await
            }
            Job::Flush { say, done } => {
                let updates = say.map(|text| self.mapper.say(&text)).unwrap_or_default();
                let there = self.send(updates).await;
                let _ = done.send(());
                there
            }
        }
    }

    async fn replay(&mut self, done: oneshot::Sender<Result<(), Error>>) -> bool {
        let transcript = match self.thread.messages().await {
            Ok(transcript) => transcript,
            Err(error) => {
                let _ = done.send(Err(stop::not_started(&error)));
                return true;
            }
        };
        let mut updates = self.mapper.replay(&transcript);
        // Each change of the plan sends all of it; the last one is enough.
        let is_plan = |update: &SessionUpdate| matches!(update, SessionUpdate::Plan(_));
        let last = updates.iter().rposition(is_plan).map(|at| updates.remove(at));
        updates.retain(|update| !is_plan(update));
        updates.extend(last);
        let there = self.send(updates).await;
        let _ = done.send(Ok(()));
        there
    }
}
