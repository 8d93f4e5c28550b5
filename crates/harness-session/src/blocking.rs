//! Work that waits for the disk, or for another process, beside the threads that drive tasks.

use std::panic::resume_unwind;

use tokio::runtime::Handle;

use crate::error::Error;

/// Runs `work` on a blocking thread; in place without a tokio runtime, which then has no tasks to
/// block.
///
/// # Cancel safety
/// Started work is completed, even when the future is dropped.
///
/// # Errors
/// [`Error::Stopped`] if the runtime ends before the work has started.
///
/// # Panics
/// If `work` panics.
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
