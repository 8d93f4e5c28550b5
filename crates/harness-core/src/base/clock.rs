//! Time and ids, for drivers.

use super::BoxFuture;
use crate::ids::RunId;
use crate::time::Time;

/// Clock of a driver. Machines never read it.
///
/// Implement it with a monotonic source: times never decrease.
///
/// ```
/// use harness_core::port::{BoxFuture, Clock};
/// use harness_core::Time;
///
/// struct SystemClock(std::time::Instant);
///
/// impl Clock for SystemClock {
///     fn now(&self) -> Time {
///         Time(i64::try_from(self.0.elapsed().as_millis()).unwrap_or(i64::MAX))
///     }
///
///     fn sleep_until(&self, at: Time) -> BoxFuture<'static, ()> {
///         let span = at.since(self.now());
///         Box::pin(tokio::time::sleep(span.duration()))
///     }
/// }
/// ```
pub trait Clock: Send + Sync {
    /// Returns the current time.
    fn now(&self) -> Time;

    /// Completes at `at`; immediately if that has passed.
    ///
    /// # Cancel safety
    /// Dropping the future ends the wait.
    fn sleep_until(&self, at: Time) -> BoxFuture<'static, ()>;
}

/// Creates the ids of runs, outside of the machines.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// use harness_core::RunId;
/// use harness_core::port::Ids;
///
/// #[derive(Default)]
/// struct Numbered(AtomicU64);
///
/// impl Ids for Numbered {
///     fn run_id(&self) -> RunId {
///         format!("run-{}", self.0.fetch_add(1, Ordering::Relaxed)).into()
///     }
/// }
///
/// assert_eq!(Numbered::default().run_id().as_str(), "run-0");
/// ```
pub trait Ids: Send + Sync {
    /// Returns a new, unique run id.
    fn run_id(&self) -> RunId;
}
