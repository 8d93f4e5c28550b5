//! The client of threads.

use std::sync::Arc;

use harness::core::machine::CallDecision;
use harness::core::message::Message;
use harness::core::{EntryId, Redactor, RunId, ThreadId};
use harness::runtime::DeliveryMode;
use serde::de::DeserializeOwned;

use super::call::ReadReply;
use super::engine::{Engine, EngineError};
use super::service::THREAD;
use super::store::{EngineStore, read};
use super::thread::handler_of;
use crate::durable::{
    Held, LogEntry, Queued, Reader, RunOptions, Stopped, ThreadAsk, ThreadReply, ThreadState,
};

/// Entries of one reply, at most.
const ENTRIES: u64 = 256;

/// A message for a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The name of the message. A thread accepts a name once, so a client may send a message again.
    pub entry: EntryId,
    /// Content of the message.
    pub message: Arc<Message>,
    /// Options of the run that it begins.
    pub options: RunOptions,
}

impl Delivery {
    /// A message of the user.
    pub fn new(entry: impl Into<EntryId>, text: impl Into<String>) -> Self {
        let message = Arc::new(Message::user(text.into()));
        Self { entry: entry.into(), message, options: RunOptions::default() }
    }
}

/// Threads on an engine. A thread exists from its first message on.
///
/// Requests return when they are stored. Those that change a thread return the run at hand, if there is any. A dropped
/// future may have sent its request, which may be sent again.
///
/// ```no_run
/// use harness_restate::engine::restate::{Delivery, DurableThreads, Engine};
///
/// # async fn example() -> Result<(), harness_restate::engine::restate::EngineError> {
/// let threads = DurableThreads::new(Engine::new("http://127.0.0.1:8080")?);
/// let thread = "customer-17".into();
/// threads.prompt(&thread, Delivery::new("message-1", "Where is my order?")).await?;
/// let (entries, _) = threads.read(&thread, 0).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct DurableThreads {
    engine: Engine,
    reader: Reader<EngineStore>,
    redactor: Option<Redactor>,
}

impl DurableThreads {
    /// The threads of an engine.
    pub fn new(engine: Engine) -> Self {
        let reader = Reader::new(EngineStore::new(engine.clone()));
        Self { engine, reader, redactor: None }
    }

    /// Removes secrets from what is sent: the engine keeps requests on its disks. Workers have a redactor, too
    /// ([`WorkerBuilder::redactor`](super::WorkerBuilder::redactor)), but the engine keeps a request before they see it.
    pub fn redactor(mut self, redactor: Redactor) -> Self {
        self.redactor = Some(redactor);
        self
    }

    /// Delivers a message at the next turn. An idle thread begins a run with it.
    ///
    /// # Errors
    /// [`EngineError::Refused`] when too many messages wait; else when the engine cannot be reached.
    pub async fn prompt(&self, thread: &ThreadId, message: Delivery) -> Result<Option<RunId>, EngineError> {
        self.deliver(thread, message, DeliveryMode::NextTurn, true).await
    }

    /// Delivers a message between two rounds of the run at hand. An idle thread keeps it for its next run.
    ///
    /// # Errors
    /// As [`prompt`](Self::prompt).
    pub async fn steer(&self, thread: &ThreadId, message: Delivery) -> Result<Option<RunId>, EngineError> {
        self.deliver(thread, message, DeliveryMode::BetweenRounds, false).await
    }

    /// Delivers a message after the run at hand. It does not make an idle thread begin.
    ///
    /// # Errors
    /// As [`prompt`](Self::prompt).
    pub async fn follow_up(
        &self,
        thread: &ThreadId,
        message: Delivery,
    ) -> Result<Option<RunId>, EngineError> {
        self.deliver(thread, message, DeliveryMode::NextTurn, false).await
    }

    /// Stops the run at hand and begins one with the message.
    ///
    /// # Errors
    /// As [`prompt`](Self::prompt).
    pub async fn interrupt(
        &self,
        thread: &ThreadId,
        message: Delivery,
    ) -> Result<Option<RunId>, EngineError> {
        self.deliver(thread, message, DeliveryMode::Interrupt, true).await
    }

    /// Stops the run at hand. Messages that wait stay.
    ///
    /// # Errors
    /// When the engine cannot be reached.
    pub async fn abort(&self, thread: &ThreadId) -> Result<Option<RunId>, EngineError> {
        self.change(thread, ThreadAsk::Abort).await
    }

    /// Decides about a call. The first decision about a call counts.
    ///
    /// # Errors
    /// [`EngineError::Refused`] when the call does not wait for a decision.
    pub async fn decide(
        &self,
        thread: &ThreadId,
        decision: CallDecision,
    ) -> Result<Option<RunId>, EngineError> {
        self.change(thread, ThreadAsk::Decide(decision)).await
    }

    /// Changes a message that waits.
    ///
    /// # Errors
    /// [`EngineError::Refused`] when it does not wait.
    pub async fn edit(
        &self,
        thread: &ThreadId,
        entry: EntryId,
        message: Arc<Message>,
    ) -> Result<Option<RunId>, EngineError> {
        self.change(thread, ThreadAsk::Edit { entry, message }).await
    }

    /// Moves a message that waits to the n-th place, from 0.
    ///
    /// # Errors
    /// [`EngineError::Refused`] when it does not wait.
    pub async fn reorder(
        &self,
        thread: &ThreadId,
        entry: EntryId,
        place: usize,
    ) -> Result<Option<RunId>, EngineError> {
        self.change(thread, ThreadAsk::Reorder { entry, place }).await
    }

    /// Removes a message that waits.
    ///
    /// # Errors
    /// [`EngineError::Refused`] when it does not wait.
    pub async fn cancel(&self, thread: &ThreadId, entry: EntryId) -> Result<Option<RunId>, EngineError> {
        self.change(thread, ThreadAsk::Cancel { entry }).await
    }

    /// Sets the options of later runs, where their messages have none.
    ///
    /// # Errors
    /// [`EngineError::Refused`] for options of more than 32 KiB.
    pub async fn configure(
        &self,
        thread: &ThreadId,
        options: RunOptions,
    ) -> Result<Option<RunId>, EngineError> {
        self.change(thread, ThreadAsk::Configure(options)).await
    }

    /// Forgets a conversation: stops the run at hand, and removes messages, decisions, options, log and texts. Until this is
    /// done the thread refuses other requests. Entries of its next conversation have later numbers. The engine keeps the
    /// journals of ended runs for 24 h, and processes may have parts of it in memory until these make room for others.
    ///
    /// # Errors
    /// When the engine cannot be reached.
    pub async fn forget(&self, thread: &ThreadId) -> Result<Option<RunId>, EngineError> {
        self.change(thread, ThreadAsk::Forget).await
    }

    /// The state of a thread.
    ///
    /// # Errors
    /// When the engine cannot be reached.
    pub async fn snapshot(&self, thread: &ThreadId) -> Result<ThreadState, EngineError> {
        self.look(thread, "snapshot").await
    }

    /// The messages that wait, in the order of their delivery.
    ///
    /// # Errors
    /// When the engine cannot be reached.
    pub async fn queue(&self, thread: &ThreadId) -> Result<Vec<Queued>, EngineError> {
        self.look(thread, "queue").await
    }

    /// The calls that wait for a decision.
    ///
    /// # Errors
    /// When the engine cannot be reached.
    pub async fn approvals(&self, thread: &ThreadId) -> Result<Vec<Held>, EngineError> {
        self.look(thread, "approvals").await
    }

    /// Entries of a thread's log from a number on, and the entries of the log. At most 256 entries; read on behind the
    /// last of them. Forgotten entries are omitted. A reader that follows a run asks again after a pause.
    ///
    /// # Errors
    /// When the engine cannot be reached.
    pub async fn read(&self, thread: &ThreadId, from: u64) -> Result<(Vec<LogEntry>, u64), EngineError> {
        let ReadReply { first, len, .. } = read(&self.engine, thread, from, from).await?;
        let from = from.max(first);
        let upto = len.min(from.saturating_add(ENTRIES));
        if upto <= from {
            return Ok((Vec::new(), len));
        }
        let failed = |stopped: Stopped| EngineError::Invalid {
            url: self.engine.to_string(),
            why: format!("the log of thread {thread} cannot be read: {stopped}"),
        };
        Ok((self.reader.entries(thread, from, upto).await.map_err(failed)?, len))
    }

    async fn deliver(
        &self,
        thread: &ThreadId,
        Delivery { entry, message, options }: Delivery,
        mode: DeliveryMode,
        wakes: bool,
    ) -> Result<Option<RunId>, EngineError> {
        self.change(thread, ThreadAsk::Deliver { entry, message, mode, wakes, options }).await
    }

    async fn change(&self, thread: &ThreadId, ask: ThreadAsk) -> Result<Option<RunId>, EngineError> {
        let ask = ask.redacted(self.redactor.as_ref()).map_err(EngineError::Refused)?;
        match self.engine.call([THREAD, thread.as_str(), handler_of(&ask)], &ask).await? {
            ThreadReply::Accepted(run) => Ok(run),
            ThreadReply::Refused(why) => Err(EngineError::Refused(why)),
            ThreadReply::Run(_) => Ok(None),
        }
    }

    async fn look<O: DeserializeOwned>(&self, thread: &ThreadId, handler: &str) -> Result<O, EngineError> {
        self.engine.call([THREAD, thread.as_str(), handler], &()).await
    }
}
