//! Where the sessions of threads are.

use std::sync::Arc;

use harness_core::ThreadId;
use harness_core::message::Message;
use harness_core::port::{BoxFuture, DynSession, EntryHead, SessionError};

/// Opens the session of a thread: when the thread is first used, and again after it was unloaded.
pub trait Sessions: Send + Sync {
    /// The thread's session; a new one is empty.
    fn open(
        &self,
        thread: &ThreadId,
    ) -> impl Future<Output = Result<Arc<dyn DynSession>, SessionError>> + Send;

    /// Makes a session hold these messages and nothing else, after a permanent compaction or when a history is
    /// seeded. The default keeps everything: `false`.
    ///
    /// # Errors
    /// When it cannot be written; what it held before is still there then.
    fn replace(
        &self,
        _thread: &ThreadId,
        _head: &EntryHead,
        _messages: &[Arc<Message>],
    ) -> impl Future<Output = Result<bool, SessionError>> + Send {
        std::future::ready(Ok(false))
    }
}

/// The object-safe twin of [`Sessions`].
pub trait DynSessions: Send + Sync {
    /// [`Sessions::open`], boxed.
    fn open_boxed<'a>(
        &'a self,
        thread: &'a ThreadId,
    ) -> BoxFuture<'a, Result<Arc<dyn DynSession>, SessionError>>;

    /// [`Sessions::replace`], boxed.
    fn replace_boxed<'a>(
        &'a self,
        thread: &'a ThreadId,
        head: &'a EntryHead,
        messages: &'a [Arc<Message>],
    ) -> BoxFuture<'a, Result<bool, SessionError>>;
}

impl<S: Sessions> DynSessions for S {
    fn open_boxed<'a>(
        &'a self,
        thread: &'a ThreadId,
    ) -> BoxFuture<'a, Result<Arc<dyn DynSession>, SessionError>> {
        Box::pin(self.open(thread))
    }

    fn replace_boxed<'a>(
        &'a self,
        thread: &'a ThreadId,
        head: &'a EntryHead,
        messages: &'a [Arc<Message>],
    ) -> BoxFuture<'a, Result<bool, SessionError>> {
        Box::pin(self.replace(thread, head, messages))
    }
}
