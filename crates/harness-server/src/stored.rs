//! Threads of earlier processes.

use harness::SessionStore;
use harness::core::port::{EntryHead, SessionError};
use harness::core::{Json, ThreadId};

/// A thread whose session is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredThread {
    /// Id of the thread.
    pub id: ThreadId,
    /// Short title.
    pub title: Option<String>,
    /// Data of the caller that it was created with ([`StoredThreads::create`]).
    pub meta: Option<Json>,
    /// Time of its creation as ISO text.
    pub created: Option<String>,
    /// Time of the last message as ISO text.
    pub updated: Option<String>,
    /// Number of messages.
    pub messages: Option<usize>,
    /// Reason why its session cannot be read.
    pub problem: Option<String>,
}

impl StoredThread {
    /// A thread of which only the id is known.
    pub fn new(id: impl Into<ThreadId>) -> Self {
        Self {
            id: id.into(),
            title: None,
            meta: None,
            created: None,
            updated: None,
            messages: None,
            problem: None,
        }
    }
}

/// Source of threads whose sessions an earlier process stored. It must agree with the
/// [`Sessions`](harness::runtime::Sessions) of the runtime.
pub trait StoredThreads: Send + Sync {
    /// Lists all threads, in any order.
    ///
    /// # Errors
    /// If they cannot be read.
    fn list(&self) -> impl Future<Output = Result<Vec<StoredThread>, SessionError>> + Send;

    /// Finds a thread; `None` if it does not exist.
    ///
    /// # Errors
    /// If the storage cannot be read.
    fn find(
        &self,
        thread: &ThreadId,
    ) -> impl Future<Output = Result<Option<StoredThread>, SessionError>> + Send;

    /// Creates the session of a new thread, with data that [`StoredThread::meta`] returns. The runtime opens it afterwards.
    ///
    /// # Errors
    /// If it cannot be written.
    fn create(
        &self,
        thread: &ThreadId,
        head: &EntryHead,
        meta: &Json,
    ) -> impl Future<Output = Result<(), SessionError>> + Send;

    /// Removes the session of a closed thread. Does nothing if it does not exist.
    ///
    /// # Errors
    /// If it cannot be removed.
    fn remove(&self, thread: &ThreadId) -> impl Future<Output = Result<(), SessionError>> + Send;
}

harness::core::twin! {
    DynStoredThreads of StoredThreads {
        async fn list_boxed = list() -> Result<Vec<StoredThread>, SessionError>;
        async fn find_boxed = find(thread: &'a ThreadId) -> Result<Option<StoredThread>, SessionError>;
        async fn create_boxed = create(thread: &'a ThreadId, head: &'a EntryHead, meta: &'a Json) -> Result<(), SessionError>;
        async fn remove_boxed = remove(thread: &'a ThreadId) -> Result<(), SessionError>;
    }
}

/// Reads files on blocking threads.
impl StoredThreads for SessionStore {
    async fn list(&self) -> Result<Vec<StoredThread>, SessionError> {
        let folder = self.clone();
        let listed = blocking(move || folder.list()).await??;
        Ok(listed.into_iter().map(StoredThread::from).collect())
    }

    async fn find(&self, thread: &ThreadId) -> Result<Option<StoredThread>, SessionError> {
        let (store, thread) = (self.clone(), thread.clone());
        let found = blocking(move || store.find(&thread)).await??;
        Ok(found.map(StoredThread::from))
    }

    async fn create(&self, thread: &ThreadId, head: &EntryHead, meta: &Json) -> Result<(), SessionError> {
        let (store, thread, head, meta) = (self.clone(), thread.clone(), head.clone(), meta.clone());
        blocking(move || store.create(&thread, &head, meta)).await?
    }

    async fn remove(&self, thread: &ThreadId) -> Result<(), SessionError> {
        let (store, thread) = (self.clone(), thread.clone());
        blocking(move || store.remove(&thread)).await?
    }
}

impl From<harness::StoredThread> for StoredThread {
    fn from(stored: harness::StoredThread) -> Self {
        Self {
            id: stored.thread,
            title: stored.title,
            meta: stored.meta,
            created: stored.created_at,
            updated: stored.last_at,
            messages: Some(stored.messages),
            problem: stored.problem,
        }
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, SessionError> {
    let lost = |_| SessionError::new("session.lost", "the work on the session was lost: its task is gone");
    tokio::task::spawn_blocking(work).await.map_err(lost)
}
