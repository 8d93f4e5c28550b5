//! Threads of earlier processes.

use harness::SessionStore;
use harness::core::ThreadId;
use harness::core::port::SessionError;

/// A thread whose session is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredThread {
    /// Id of the thread.
    pub id: ThreadId,
    /// Short title.
    pub title: Option<String>,
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
        Self { id: id.into(), title: None, updated: None, messages: None, problem: None }
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

    /// Whether the thread exists.
    ///
    /// # Errors
    /// If the storage cannot be read.
    fn contains(&self, thread: &ThreadId) -> impl Future<Output = Result<bool, SessionError>> + Send;

    /// Removes the session of a closed thread. Does nothing if it does not exist.
    ///
    /// # Errors
    /// If it cannot be removed.
    fn remove(&self, thread: &ThreadId) -> impl Future<Output = Result<(), SessionError>> + Send;
}

harness::core::twin! {
    DynStoredThreads of StoredThreads {
        async fn list_boxed = list() -> Result<Vec<StoredThread>, SessionError>;
        async fn contains_boxed = contains(thread: &'a ThreadId) -> Result<bool, SessionError>;
        async fn remove_boxed = remove(thread: &'a ThreadId) -> Result<(), SessionError>;
    }
}

/// Reads files on blocking threads.
impl StoredThreads for SessionStore {
    async fn list(&self) -> Result<Vec<StoredThread>, SessionError> {
        let folder = self.clone();
        let listed = blocking(move || folder.list()).await??;
        let known = listed.into_iter().map(|stored| StoredThread {
            id: stored.thread,
            title: stored.title,
            updated: stored.last_at,
            messages: Some(stored.messages),
            problem: stored.problem,
        });
        Ok(known.collect())
    }

    async fn contains(&self, thread: &ThreadId) -> Result<bool, SessionError> {
        let (store, thread) = (self.clone(), thread.clone());
        blocking(move || store.contains(&thread)).await?
    }

    async fn remove(&self, thread: &ThreadId) -> Result<(), SessionError> {
        let (store, thread) = (self.clone(), thread.clone());
        blocking(move || store.remove(&thread)).await?
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, SessionError> {
    let lost = |_| SessionError::new("session.lost", "the work on the session was lost: its task is gone");
    tokio::task::spawn_blocking(work).await.map_err(lost)
}
