//! A session: a thread, and its updates for the client.

mod permission;
mod pump;
mod update_mapper;

use std::path::PathBuf;
use std::sync::Arc;

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    SessionId, SessionMode, SessionModeState, SessionNotification, SessionUpdate, StopReason,
};
use agent_client_protocol::{Client, Error, RequestCancellation};
use harness::core::message::UserMessage;
use harness::core::{Cancel, Outcome};
use harness::runtime::{Report, Thread};
use harness::tools::{StandingApprovals, ThreadMode};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, mpsc, oneshot};

use self::permission::EditorAsker;
use self::pump::{Job, Pump};
use crate::host::Opened;
use crate::stop;

/// How many requests to a session's pump may wait.
const MOST_JOBS: usize = 64;

/// Outgoing channel to the client.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) connection: ConnectionTo<Client>,
    /// One for each update that may wait to be written.
    pub(crate) permits: Arc<Semaphore>,
}

impl Line {
    /// Sends an update when there is room. Returns whether the client is connected.
    async fn send(&self, session: &SessionId, update: SessionUpdate) -> bool {
        let Ok(permit) = self.permits.acquire().await else { return false };
        permit.forget();
        self.connection.send_notification(SessionNotification::new(session.clone(), update)).is_ok()
    }
}

/// A conversation that the client has open.
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) thread: Thread,
    mode: Option<ThreadMode>,
    jobs: mpsc::Sender<Job>,
    /// Stops the prompt that is being answered.
    prompting: Mutex<Option<Cancel>>,
}

impl Session {
    /// Follows the thread from now on, and asks the client about the calls that it holds.
    pub(crate) fn open(opened: Opened, cwd: PathBuf, line: Line) -> Arc<Self> {
        let Opened { thread, mode, approver } = opened;
        let (jobs, waiting) = mpsc::channel(MOST_JOBS);
        let id = SessionId::from(thread.id().as_str().to_owned());
        let asker = EditorAsker::new(jobs.clone());
        let asks = StandingApprovals::new(asker);
        if !approver.is_some_and(|approver| approver.connect(asks.clone())) {
            thread.configure(|config| config.ports.approver = Some(Arc::new(asks)));
        }
        let session = Arc::new(Self { id, thread, mode, jobs, prompting: Mutex::default() });
        Pump::new(&session, cwd, line).start(waiting);
        session
    }

    /// Takes the session for one prompt.
    pub(crate) fn claim(&self) -> Result<Cancel, Error> {
        let mut prompting = self.prompting.lock();
        if prompting.is_some() {
            let why = format!("session `{}` is answering a prompt already", self.id);
            return Err(Error::new(Error::invalid_request().code, why));
        }
        let cancel = Cancel::new();
        *prompting = Some(cancel.clone());
        Ok(cancel)
    }

    /// Stops the prompt that is being answered, if there is one.
    pub(crate) fn cancel(&self) {
        if let Some(cancel) = &*self.prompting.lock() {
            cancel.cancel();
        }
    }

    /// Prompts the thread, and responds to the request after all its updates are sent.
    pub(crate) async fn prompt(
        &self,
        message: UserMessage,
        cancel: Cancel,
        request: RequestCancellation,
    ) -> Result<StopReason, Error> {
        let (ended, cancelled) = self.run(message, &cancel, &request).await;
        let question = ended.as_ref().ok().and_then(question);
        self.flush(question).await;
        *self.prompting.lock() = None;
        if cancelled || cancel.is_cancelled() {
            return Ok(StopReason::Cancelled);
        }
        ended.map_err(|error| stop::not_started(&error)).and_then(|report| stop::reason(&report))
    }

    async fn run(
        &self,
        message: UserMessage,
        cancel: &Cancel,
        request: &RequestCancellation,
    ) -> (Result<Report, harness::runtime::RuntimeError>, bool) {
        let mut prompt = std::pin::pin!(self.thread.prompt(message));
        tokio::select! {
            biased;
            ended = &mut prompt => return (ended, false),
            () = cancel.cancelled() => {}
            () = request.cancelled() => {}
        }
        self.thread.abort("cancelled by the client");
        (prompt.await, true)
    }

    /// Completes when all earlier events are sent.
    async fn flush(&self, say: Option<String>) {
        let (done, ended) = oneshot::channel();
        if self.jobs.send(Job::Flush { say, done }).await.is_ok() {
            let _ = ended.await;
        }
    }

    /// Sends the whole history.
    pub(crate) async fn replay(&self) -> Result<(), Error> {
        let (done, ended) = oneshot::channel();
        let gone = |_| Error::internal_error().data("the session was closed");
        self.jobs.send(Job::Replay { done }).await.map_err(|_| Error::internal_error())?;
        ended.await.map_err(gone)?
    }

    /// The history is known to the client.
    pub(crate) async fn pass(&self) -> Result<(), Error> {
        let messages = self.thread.messages().await.map_err(|error| stop::not_started(&error))?;
        let _ = self.jobs.send(Job::Passed { messages: messages.len() }).await;
        Ok(())
    }

    /// Sends the available commands, after earlier updates.
    pub(crate) async fn send_commands(&self) {
        let _ = self.jobs.send(Job::Commands).await;
    }

    /// The modes as the client lists them.
    pub(crate) fn modes(&self) -> Option<SessionModeState> {
        let mode = self.mode.as_ref()?;
        let all = mode.all().iter().map(|mode| {
            SessionMode::new(mode.name.to_string(), mode.name.to_string()).description(mode.meaning.clone())
        });
        Some(SessionModeState::new(mode.current().name.to_string(), all.collect()))
    }

    /// Another mode.
    pub(crate) fn set_mode(&self, name: &str) -> Result<(), Error> {
        let Some(mode) = &self.mode else {
            return Err(Error::invalid_params().data(format!("session `{}` has no modes", self.id)));
        };
        mode.set(name).map_err(|error| Error::invalid_params().data(error.to_string()))
    }

    /// Stops the current run and waits for its end.
    pub(crate) async fn stop(&self, why: &str) {
        self.cancel();
        self.thread.abort(why).ended().await;
    }
}

/// The question that a run ended with.
fn question(report: &Report) -> Option<String> {
    let asked = report.end.outcome() == Outcome::NeedsClarification;
    asked.then(|| report.answer().to_owned())
}
