//! Port: threads by id, wherever they live.

mod held;
mod local;
mod types;

use std::sync::Arc;

use futures_util::stream::BoxStream;
use harness_core::message::Message;
use harness_core::port::CompactionNote;
use harness_core::{EntryId, RunId, ThreadId, Time};

use crate::error::RuntimeError;
use crate::prompt::Prompt;
use crate::queue::QueueEntry;
use crate::report::Report;
use crate::stream::{StartAt, StreamItem};
use crate::thread::Snapshot;

pub use types::{
    ApprovalDecision, PendingApproval, ThreadAttributes, ThreadInfo, ThreadMessage, ThreadSummary,
};

/// Threads by id: those of a [`Runtime`](crate::Runtime) in this process, or those of a durable engine. A server needs
/// nothing else.
///
/// Requests of an unknown or closed thread fail with [`RuntimeError::Closed`]. Dropping the future of a request does
/// not undo it: the service may have accepted it.
///
/// ```
/// use harness_core::message::Message;
/// use harness_runtime::{ThreadMessage, DeliveryMode, RuntimeError, ThreadService};
///
/// async fn remind<T: ThreadService>(threads: &T) -> Result<(), RuntimeError> {
///     for thread in threads.list(None, 100).await? {
///         let message = Message::user("Any news?");
///         threads.deliver(&thread.id, ThreadMessage::new(message, DeliveryMode::NextTurn)).await?;
///     }
///     Ok(())
/// }
/// # let _ = remind::<harness_runtime::Runtime>;
/// ```
pub trait ThreadService: Send + Sync {
    /// Time of the service's clock.
    fn now(&self) -> Time;

    /// Number of threads that this process holds in memory.
    fn open_threads(&self) -> usize;

    /// Threads that the service knows, by id: those behind the id `after`, at most `limit`.
    ///
    /// # Errors
    /// If they cannot be listed.
    fn list(
        &self,
        after: Option<&ThreadId>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<ThreadSummary>, RuntimeError>> + Send;

    /// Whether the service knows the thread.
    ///
    /// # Errors
    /// If the service cannot be reached.
    fn exists(&self, thread: &ThreadId) -> impl Future<Output = Result<bool, RuntimeError>> + Send;

    /// Creates a thread if it does not exist, and sets its attributes. Unset ones are those of the service.
    ///
    /// # Errors
    /// If the service cannot be reached, or rejects the attributes.
    fn create(
        &self,
        thread: &ThreadId,
        attributes: ThreadAttributes,
    ) -> impl Future<Output = Result<(), RuntimeError>> + Send;

    /// Removes a thread: its run is aborted, its queue is discarded, and its streams end. Does nothing if it does not
    /// exist.
    ///
    /// # Errors
    /// If it cannot be removed.
    fn forget(&self, thread: &ThreadId) -> impl Future<Output = Result<(), RuntimeError>> + Send;

    /// State of a thread, without its transcript.
    ///
    /// # Errors
    /// If it cannot be read.
    fn info(&self, thread: &ThreadId) -> impl Future<Output = Result<ThreadInfo, RuntimeError>> + Send;

    /// State of a thread with its transcript.
    ///
    /// # Errors
    /// If it cannot be read.
    fn snapshot(&self, thread: &ThreadId) -> impl Future<Output = Result<Snapshot, RuntimeError>> + Send;

    /// Delivers a message, and returns the id of its queue entry.
    ///
    /// # Errors
    /// If the queue is full, or the message is invalid.
    fn deliver(
        &self,
        thread: &ThreadId,
        message: ThreadMessage,
    ) -> impl Future<Output = Result<EntryId, RuntimeError>> + Send;

    /// Starts a run of an idle thread, and returns its id once it has started. The run continues if the future is
    /// dropped.
    ///
    /// # Errors
    /// [`RuntimeError::Busy`]; reasons why the run cannot start.
    fn start(
        &self,
        thread: &ThreadId,
        prompt: Prompt,
    ) -> impl Future<Output = Result<RunId, RuntimeError>> + Send;

    /// Starts a run of an idle thread and waits for its end, and for those of queued messages behind it. The run
    /// continues if the future is dropped.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    fn run(
        &self,
        thread: &ThreadId,
        prompt: Prompt,
    ) -> impl Future<Output = Result<Report, RuntimeError>> + Send;

    /// Report of the messages so far: of the last run if the thread is idle, else of the run that empties the queue or
    /// does not complete. `None` if the thread is idle and the service knows no run of it.
    ///
    /// # Errors
    /// Reason why the last run could not start.
    fn response(
        &self,
        thread: &ThreadId,
    ) -> impl Future<Output = Result<Option<Report>, RuntimeError>> + Send;

    /// Waits until the thread is idle.
    ///
    /// # Errors
    /// If its status cannot be read.
    fn wait_idle(&self, thread: &ThreadId) -> impl Future<Output = Result<(), RuntimeError>> + Send;

    /// Stops the current run, or the calls that an earlier run parked: each gets a result. Returns whether there was anything to
    /// stop. With `wait`, returns when it has ended.
    ///
    /// # Errors
    /// If the service cannot be reached.
    fn abort(
        &self,
        thread: &ThreadId,
        reason: Arc<str>,
        wait: bool,
    ) -> impl Future<Output = Result<bool, RuntimeError>> + Send;

    /// Queued messages in the order of delivery.
    ///
    /// # Errors
    /// If they cannot be read.
    fn queue(&self, thread: &ThreadId) -> impl Future<Output = Result<Vec<QueueEntry>, RuntimeError>> + Send;

    /// Replaces the content of a queued message.
    ///
    /// # Errors
    /// [`RuntimeError::NotWaiting`].
    fn edit(
        &self,
        thread: &ThreadId,
        entry: &EntryId,
        message: Arc<Message>,
    ) -> impl Future<Output = Result<(), RuntimeError>> + Send;

    /// Moves a queued message to a position, from 0.
    ///
    /// # Errors
    /// [`RuntimeError::NotWaiting`].
    fn reorder(
        &self,
        thread: &ThreadId,
        entry: &EntryId,
        place: usize,
    ) -> impl Future<Output = Result<(), RuntimeError>> + Send;

    /// Removes a queued message, and returns it.
    ///
    /// # Errors
    /// [`RuntimeError::NotWaiting`].
    fn cancel(
        &self,
        thread: &ThreadId,
        entry: &EntryId,
    ) -> impl Future<Output = Result<QueueEntry, RuntimeError>> + Send;

    /// Pending calls of a thread: those that its run holds or, while it is idle, those that an earlier run parked.
    ///
    /// # Errors
    /// If they cannot be read.
    fn approvals(
        &self,
        thread: &ThreadId,
    ) -> impl Future<Output = Result<Vec<PendingApproval>, RuntimeError>> + Send;

    /// Calls that the runs of all threads hold; on an engine at most 1,000.
    ///
    /// # Errors
    /// If they cannot be listed.
    fn held(&self) -> impl Future<Output = Result<Vec<PendingApproval>, RuntimeError>> + Send;

    /// Decides on a pending call. A decision may be repeated. For a parked call, the thread resumes.
    ///
    /// # Errors
    /// [`RuntimeError::NotHeld`], [`RuntimeError::OtherCall`], [`RuntimeError::Decided`].
    fn decide(
        &self,
        thread: &ThreadId,
        decision: ApprovalDecision,
    ) -> impl Future<Output = Result<(), RuntimeError>> + Send;

    /// Events of a thread from a position on, at the pace of the reader, with the held calls whenever they change. The
    /// stream ends when the thread is closed, or the service stops.
    ///
    /// # Errors
    /// If they cannot be read.
    fn events(
        &self,
        thread: &ThreadId,
        from: StartAt,
    ) -> impl Future<Output = Result<BoxStream<'static, StreamItem>, RuntimeError>> + Send;

    /// Compacts the transcript of an idle thread permanently; `None` if there was nothing to do. The compaction
    /// continues if the future is dropped.
    ///
    /// # Errors
    /// [`RuntimeError::Busy`], [`RuntimeError::Compaction`].
    fn compact(
        &self,
        thread: &ThreadId,
        instructions: Option<String>,
    ) -> impl Future<Output = Result<Option<Arc<CompactionNote>>, RuntimeError>> + Send;

    /// Sets the history of a new thread.
    ///
    /// # Errors
    /// [`RuntimeError::Busy`]; if the history cannot be stored.
    fn seed(
        &self,
        thread: &ThreadId,
        messages: Vec<Message>,
    ) -> impl Future<Output = Result<(), RuntimeError>> + Send;

    /// Ends the work of this process: its streams end, and what only lives here is stopped in good order. Held calls
    /// stay parked.
    fn stop(&self) -> impl Future<Output = ()> + Send;
}

harness_core::twin! {
    DynThreadService of ThreadService {
        async fn list_boxed = list(after: Option<&'a ThreadId>, limit: usize) -> Result<Vec<ThreadSummary>, RuntimeError>;
        async fn exists_boxed = exists(thread: &'a ThreadId) -> Result<bool, RuntimeError>;
        async fn create_boxed = create(thread: &'a ThreadId, attributes: ThreadAttributes) -> Result<(), RuntimeError>;
        async fn forget_boxed = forget(thread: &'a ThreadId) -> Result<(), RuntimeError>;
        async fn info_boxed = info(thread: &'a ThreadId) -> Result<ThreadInfo, RuntimeError>;
        async fn snapshot_boxed = snapshot(thread: &'a ThreadId) -> Result<Snapshot, RuntimeError>;
        async fn deliver_boxed = deliver(thread: &'a ThreadId, message: ThreadMessage) -> Result<EntryId, RuntimeError>;
        async fn start_boxed = start(thread: &'a ThreadId, prompt: Prompt) -> Result<RunId, RuntimeError>;
        async fn run_boxed = run(thread: &'a ThreadId, prompt: Prompt) -> Result<Report, RuntimeError>;
        async fn response_boxed = response(thread: &'a ThreadId) -> Result<Option<Report>, RuntimeError>;
        async fn wait_idle_boxed = wait_idle(thread: &'a ThreadId) -> Result<(), RuntimeError>;
        async fn abort_boxed = abort(thread: &'a ThreadId, reason: Arc<str>, wait: bool) -> Result<bool, RuntimeError>;
        async fn queue_boxed = queue(thread: &'a ThreadId) -> Result<Vec<QueueEntry>, RuntimeError>;
        async fn edit_boxed = edit(thread: &'a ThreadId, entry: &'a EntryId, message: Arc<Message>) -> Result<(), RuntimeError>;
        async fn reorder_boxed = reorder(thread: &'a ThreadId, entry: &'a EntryId, place: usize) -> Result<(), RuntimeError>;
        async fn cancel_boxed = cancel(thread: &'a ThreadId, entry: &'a EntryId) -> Result<QueueEntry, RuntimeError>;
        async fn approvals_boxed = approvals(thread: &'a ThreadId) -> Result<Vec<PendingApproval>, RuntimeError>;
        async fn held_boxed = held() -> Result<Vec<PendingApproval>, RuntimeError>;
        async fn decide_boxed = decide(thread: &'a ThreadId, decision: ApprovalDecision) -> Result<(), RuntimeError>;
        async fn events_boxed = events(thread: &'a ThreadId, from: StartAt) -> Result<BoxStream<'static, StreamItem>, RuntimeError>;
        async fn compact_boxed = compact(thread: &'a ThreadId, instructions: Option<String>) -> Result<Option<Arc<CompactionNote>>, RuntimeError>;
        async fn seed_boxed = seed(thread: &'a ThreadId, messages: Vec<Message>) -> Result<(), RuntimeError>;
        async fn stop_boxed = stop() -> ();
        fn service_time = now() -> Time;
        fn threads_in_memory = open_threads() -> usize;
    }
}
