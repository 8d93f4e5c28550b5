//! Work that waits for the disk, or for another process, beside the threads that drive tasks.

use std::panic::resume_unwind;

use tokio::runtime::Handle;

use crate::error::Error;

/// Does `work` on a thread where it may block; in place when no runtime of tokio is there, which then has no
/// tasks to hold up.
///
/// # Cancel safety
/// Work that has started is done to its end, even when the future is dropped.
///
/// # Errors
/// [`Error::Stopped`] when the runtime ends before the work has started.
///
/// # Panics
/// When `work` does.
pub(crate) async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
    let Ok(runtime) = Handle::try_current() else { return Ok(work()) };
    match runtime.spawn_blocking(work).await {
        Ok(done) => Ok(done),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(_) => Err(Error::Stopped),
        },
    }
}
