//! Time and ids, for drivers.

use super::BoxFuture;
use crate::ids::{RunId, TurnId};
use crate::time::Time;

/// Tells the time and waits, for drivers. Machines never see it.
///
/// Implement it with a monotonic source: a time must never be smaller than one told before.
///
/// ```
/// use harness_core::port::{BoxFuture, Clock};
/// use harness_core::Time;
///
/// /// The time of the system, for a program that waits on tokio.
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
    /// The time now.
    fn now(&self) -> Time;

    /// Completes at `at`, at once when that has passed. Dropping the future ends the wait.
    fn sleep_until(&self, at: Time) -> BoxFuture<'static, ()>;
}

/// Makes the ids of runs and turns, outside the machines.
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
/// assert_eq!(Numbered::default().turn_id(&"run-0".into(), 2).as_str(), "run-0.2");
/// ```
pub trait Ids: Send + Sync {
    /// A run id that was not given before.
    fn run_id(&self) -> RunId;

    /// The id of the n-th turn of a run, counted from 1.
    fn turn_id(&self, run: &RunId, turn: u32) -> TurnId {
        TurnId::from(format!("{run}.{turn}"))
    }
}
