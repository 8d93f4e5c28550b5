//! Where the sessions of threads are.

use std::sync::Arc;

use harness_core::ThreadId;
use harness_core::port::{BoxFuture, DynSession, SessionError};

/// Opens the session of a thread: when the thread is first used, and again after it was unloaded.
pub trait Sessions: Send + Sync {
    /// The thread's session; a new one is empty.
    fn open(
        &self,
        thread: &ThreadId,
    ) -> impl Future<Output = Result<Arc<dyn DynSession>, SessionError>> + Send;
}

/// The object-safe twin of [`Sessions`].
pub trait DynSessions: Send + Sync {
    /// [`Sessions::open`], boxed.
    fn open_boxed<'a>(
        &'a self,
        thread: &'a ThreadId,
    ) -> BoxFuture<'a, Result<Arc<dyn DynSession>, SessionError>>;
}

impl<S: Sessions> DynSessions for S {
    fn open_boxed<'a>(
        &'a self,
        thread: &'a ThreadId,
    ) -> BoxFuture<'a, Result<Arc<dyn DynSession>, SessionError>> {
        Box::pin(self.open(thread))
    }
}
