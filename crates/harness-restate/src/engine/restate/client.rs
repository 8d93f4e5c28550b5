//! The client of threads.

use std::ops::Range;
use std::sync::Arc;

use harness::core::port::Ids as _;
use harness::core::transcript::Prefix;
use harness::core::{Cancel, EntryId, Fault, FaultSource, Redactor, RunId, ThreadId};
use harness::runtime::RuntimeError;
use harness::system::{SystemClock, SystemIds};
use serde::de::DeserializeOwned;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::call::ReadReply;
use super::engine::{Engine, EngineError};
use super::list::Titles;
use super::relay::{FeedReader, RelayHub};
use super::service::THREAD;
use super::store::{EngineStore, read};
use super::thread::handler_of;
use crate::durable::{
    LogEntry, Reader, Stopped, ThreadAsk, ThreadReply, ThreadState, ThreadStatus, delivered,
};

/// Threads on an engine, as a [`ThreadService`](harness::runtime::ThreadService).
///
/// A thread exists from its first request on. Requests return when they are stored. A dropped future may have sent its
/// request. A message with an [entry id](harness::runtime::ThreadMessage::entry) may be sent again: a thread accepts an id once.
///
/// Events have no changes of the queue, and deltas of answers and progress of tools only with a [`relay`](Self::relay). Numbers of events have gaps.
/// Starting from a checkpoint is not supported ([`RuntimeError::Unsupported`]). Calls of a parked run
/// are decided, not resumed (`engine.refused`). A run that resumes a continuation which does not fit ends with the error. A
/// given history has up to 128 KiB. Lists of all threads or approvals need [`Engine::admin`]: `engine.no_admin`.
/// They omit threads with a `/` in their id, which are those of sub-agents: other threads need ids without one.
///
/// ```no_run
/// use harness::core::message::Message;
/// use harness::runtime::{ThreadMessage, DeliveryMode, RuntimeError, ThreadService as _};
/// use harness_restate::engine::restate::{DurableThreads, Engine};
///
/// # async fn example() -> Result<(), RuntimeError> {
/// let threads = DurableThreads::new(Engine::new("http://127.0.0.1:8080")?);
/// let (thread, message) = ("customer-17".into(), Message::user("Where is my order?"));
/// threads.deliver(&thread, ThreadMessage::new(message, DeliveryMode::NextTurn).named("message-1")).await?;
/// let report = threads.response(&thread).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct DurableThreads {
    engine: Engine,
    reader: Reader<EngineStore>,
    redactor: Option<Redactor>,
    relay: Option<RelayHub>,
    local: Arc<Local>,
}

/// State that the clones of a client share.
#[derive(Debug)]
struct Local {
    clock: SystemClock,
    ids: SystemIds,
    /// This process changed a thread.
    changed: Notify,
    stopped: Cancel,
    titles: Titles,
}

impl DurableThreads {
    /// Entries of one reading of a log, at most.
    pub(super) const PAGE: u64 = 256;

    /// The threads of an engine.
    pub fn new(engine: Engine) -> Self {
        let reader = Reader::new(EngineStore::new(engine.clone()));
        let (clock, ids) = (SystemClock::new(), SystemIds::new());
        let (changed, stopped, titles) = (Notify::new(), Cancel::new(), Titles::default());
        let local = Local { clock, ids, changed, stopped, titles };
        Self { engine, reader, redactor: None, relay: None, local: Arc::new(local) }
    }

    /// Removes secrets from what is sent: the engine keeps requests on its disks. Workers have a redactor, too
    /// ([`WorkerBuilder::redactor`](super::WorkerBuilder::redactor)), but the engine keeps a request before they see it.
    pub fn redactor(mut self, redactor: Redactor) -> Self {
        self.redactor = Some(redactor);
        self
    }

    /// Receives deltas of answers, and notices that threads changed, from workers that know the listener of this hub
    /// ([`RelayHub::serve`]). Default: none; then streams have no deltas and read logs in pauses of up to 2 s.
    #[must_use]
    pub fn relay(mut self, hub: RelayHub) -> Self {
        self.relay = Some(hub);
        self
    }

    /// Ends the run at hand at the engine, with everything that it has in flight, and frees the thread. For runs that do not
    /// end by themselves; [`abort`](harness::runtime::ThreadService::abort) ends others in good order.
    ///
    /// The thread's last result is `why`. What the run wrote stays in the transcript, and the next run begins with a repair:
    /// a call without a result is marked as interrupted, for it may have happened. Messages that the transcript does not
    /// have wait again.
    ///
    /// # Errors
    /// `engine.not_running` when the thread has no run; `engine.no_admin`; else when the engine cannot be reached. After an
    /// error it may be called again.
    pub async fn settle(&self, thread: &ThreadId, why: &str) -> Result<RunId, RuntimeError> {
        let none = || refusal(thread, None, &format!("not_running: thread `{thread}` has no run"));
        let is_running = |state: &ThreadState| matches!(state.status(), ThreadStatus::Running(_));
        if !is_running(&self.state(thread).await?) {
            return Err(none());
        }
        self.engine.end_runs(thread).await?;
        // With the run, the engine ends what it has called: sub-agents are settled first.
        let children: Vec<_> = self.state(thread).await?.children().cloned().collect();
        for child in children {
            match Box::pin(self.settle(&child, why)).await {
                Err(error) if error.kind() != "engine.not_running" => return Err(error),
                _ => {}
            }
        }
        // Nothing but requests of clients changes the thread from here on.
        let state = self.state(thread).await?;
        let ThreadStatus::Running(run) = state.status().clone() else { return Err(none()) };
        let mut entries = Vec::new();
        let log = loop {
            let from = state.log() + entries.len() as u64;
            let (more, len) = self.read(thread, from).await?;
            entries.extend(more);
            if state.log() + entries.len() as u64 >= len {
                break len;
            }
        };
        let injected = delivered(&state, &entries);
        let ask = ThreadAsk::Settle { run: run.clone(), why: why.to_owned(), injected, log };
        self.change(thread, ask).await?;
        Ok(run)
    }

    /// The state of a thread.
    ///
    /// # Errors
    /// When the engine cannot be reached.
    pub async fn state(&self, thread: &ThreadId) -> Result<ThreadState, RuntimeError> {
        self.look(thread, "snapshot").await
    }

    /// Entries of a thread's log from a number on, and the entries of the log. At most 256 entries; read on behind the
    /// last of them. Forgotten entries are omitted. A reader that follows a run asks again after a pause.
    ///
    /// # Errors
    /// When the engine cannot be reached.
    pub async fn read(&self, thread: &ThreadId, from: u64) -> Result<(Vec<LogEntry>, u64), RuntimeError> {
        let ReadReply { first, len, .. } = self.extent(thread).await?;
        let from = from.max(first);
        let upto = len.min(from.saturating_add(Self::PAGE));
        if upto <= from {
            return Ok((Vec::new(), len));
        }
        Ok((self.entries(thread, from, upto).await?, len))
    }

    /// The extent of a thread's log.
    pub(super) async fn extent(&self, thread: &ThreadId) -> Result<ReadReply, RuntimeError> {
        Ok(read(&self.engine, thread, 0, 0).await?)
    }

    /// The entries of a thread's log from a number on, before another.
    pub(super) async fn entries(
        &self,
        thread: &ThreadId,
        from: u64,
        upto: u64,
    ) -> Result<Vec<LogEntry>, RuntimeError> {
        self.reader.entries(thread, from, upto).await.map_err(|stopped| unreadable(thread, &stopped))
    }

    /// The messages of entries of a thread's log.
    pub(super) async fn transcript(
        &self,
        thread: &ThreadId,
        entries: Range<u64>,
    ) -> Result<Prefix, RuntimeError> {
        self.reader.transcript(thread, entries).await.map_err(|stopped| unreadable(thread, &stopped))
    }

    /// Sends a request that changes a thread. Returns the run at hand, if there is any.
    pub(super) async fn change(
        &self,
        thread: &ThreadId,
        ask: ThreadAsk,
    ) -> Result<Option<RunId>, RuntimeError> {
        let entry = entry_of(&ask).cloned();
        let refused = |why: String| refusal(thread, entry, &why);
        let ask = match ask.redacted(self.redactor.as_ref()) {
            Ok(ask) => ask,
            Err(why) => return Err(refused(why)),
        };
        let reply = self.engine.call([THREAD, thread.as_str(), handler_of(&ask)], &ask).await?;
        self.local.changed.notify_waiters();
        match reply {
            ThreadReply::Accepted(run) => Ok(run),
            ThreadReply::Refused(why) => Err(refused(why)),
            ThreadReply::Run(_) => Ok(None),
        }
    }

    /// Calls a handler that only reads.
    pub(super) async fn look<O: DeserializeOwned>(
        &self,
        thread: &ThreadId,
        handler: &str,
    ) -> Result<O, RuntimeError> {
        Ok(self.engine.call([THREAD, thread.as_str(), handler], &()).await?)
    }

    /// Completes when this process changes a thread.
    pub(super) fn changed(&self) -> Notified<'_> {
        self.local.changed.notified()
    }

    /// Messages of workers about a thread from now on; `None` without a relay.
    pub(super) fn feed(&self, thread: &ThreadId) -> Option<FeedReader> {
        self.relay.as_ref().map(|hub| hub.reader(thread))
    }

    /// Completes when the streams of this process end.
    pub(super) async fn stopped(&self) {
        self.local.stopped.cancelled().await;
    }

    /// Ends the streams of this process.
    pub(super) fn stop_streams(&self) {
        self.local.stopped.cancel();
    }

    pub(super) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(super) fn titles(&self) -> &Titles {
        &self.local.titles
    }

    pub(super) fn clock(&self) -> &SystemClock {
        &self.local.clock
    }

    /// An id for a message that has none.
    pub(super) fn new_entry(&self) -> EntryId {
        let unique = self.local.ids.run_id();
        EntryId::from(unique.as_str().replacen("run-", "msg-", 1))
    }
}

/// The message of the queue that a request is about.
fn entry_of(ask: &ThreadAsk) -> Option<&EntryId> {
    match ask {
        ThreadAsk::Edit { entry, .. } | ThreadAsk::Reorder { entry, .. } | ThreadAsk::Cancel { entry } => {
            Some(entry)
        }
        ThreadAsk::Deliver { .. }
        | ThreadAsk::Abort { .. }
        | ThreadAsk::Start { .. }
        | ThreadAsk::Decide(_)
        | ThreadAsk::Configure(_)
        | ThreadAsk::Seed { .. }
        | ThreadAsk::Continue { .. }
        | ThreadAsk::Compact { .. }
        | ThreadAsk::Expire { .. }
        | ThreadAsk::Settle { .. }
        | ThreadAsk::Forget
        | ThreadAsk::Forgotten { .. }
        | ThreadAsk::StopRun(_)
        | ThreadAsk::Child(_)
        | ThreadAsk::Run(_) => None,
    }
}

/// The error of a refused request, by the code that begins the reason.
fn refusal(thread: &ThreadId, entry: Option<EntryId>, why: &str) -> RuntimeError {
    let (code, text) = why.split_once(": ").unwrap_or(("refused", why));
    let code = match (code, entry) {
        ("not_waiting", Some(entry)) => return RuntimeError::NotWaiting { thread: thread.clone(), entry },
        ("queue_full", _) => "engine.queue_full",
        ("busy", _) => return RuntimeError::Busy { thread: thread.clone() },
        ("open_calls" | "not_stored", _) => {
            return RuntimeError::Compaction(Fault::new(FaultSource::Compactor, code, text));
        }
        ("empty_transcript", _) => return RuntimeError::EmptyTranscript { thread: thread.clone() },
        ("nothing_to_resume", _) => match serde_json::from_value(text.into()) {
            Ok(reason) => return RuntimeError::NothingToResume { reason },
            Err(_) => "engine.refused",
        },
        ("options_too_large", _) => "engine.options_too_large",
        ("history_too_large", _) => "engine.history_too_large",
        ("not_new", _) => "engine.not_new",
        ("secret_withheld", _) => "engine.secret_withheld",
        ("not_pending", _) => "engine.not_pending",
        ("decided", _) => "engine.decided",
        ("forgetting", _) => "engine.forgetting",
        ("not_running", _) => "engine.not_running",
        ("child", _) => "engine.child",
        _ => "engine.refused",
    };
    RuntimeError::Engine(Fault::new(FaultSource::Session, code, text))
}

fn unreadable(thread: &ThreadId, stopped: &Stopped) -> RuntimeError {
    let text = format!("the log of thread `{thread}` cannot be read: {stopped}");
    RuntimeError::Engine(Fault::new(FaultSource::Session, "engine.log", text))
}

impl From<EngineError> for RuntimeError {
    fn from(error: EngineError) -> Self {
        Self::Engine(Fault::new(FaultSource::Session, error.kind(), error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(why: &str, kind: &str, message: &str) {
        let error = refusal(&"t1".into(), Some("m1".into()), why);
        assert_eq!((error.kind(), error.to_string().as_str()), (kind, message));
    }

    #[test]
    fn refusals_are_errors_with_codes() {
        check("not_waiting: gone", "runtime.not_waiting", "no message `m1` waits in thread `t1`");
        check("queue_full: 64 messages wait already", "engine.queue_full", "64 messages wait already");
        check("what nobody knows", "engine.refused", "what nobody knows");
    }
}
