//! Where the sessions of threads are.

use std::sync::Arc;

use harness_core::ThreadId;
use harness_core::port::{DynSession, SessionError};

/// Opens the session of a thread: when the thread is first used, and again after it was unloaded.
pub trait Sessions: Send + Sync {
    /// Opens the thread's session; a new one is empty.
    ///
    /// # Errors
    /// When it cannot be opened, or has an owner.
    fn open(
        &self,
        thread: &ThreadId,
    ) -> impl Future<Output = Result<Arc<dyn DynSession>, SessionError>> + Send;
}

harness_core::twin! {
    DynSessions of Sessions {
        async fn open_boxed = open(thread: &'a ThreadId) -> Result<Arc<dyn DynSession>, SessionError>;
    }
}
