//! Time and ids, for drivers.

use super::BoxFuture;
use crate::ids::{RunId, TurnId};
use crate::time::Time;

/// Tells the time and waits, for drivers. Machines never see it.
///
/// Implement it with a monotonic source: a time must never be smaller than one told before.
pub trait Clock: Send + Sync {
    /// The time now.
    fn now(&self) -> Time;

    /// Completes at `at`, at once when that has passed. Dropping the future ends the wait.
    fn sleep_until(&self, at: Time) -> BoxFuture<'static, ()>;
}

/// Makes the ids of runs and turns, outside the machines.
pub trait Ids: Send + Sync {
    /// A run id that was not given before.
    fn run_id(&self) -> RunId;

    /// The id of the n-th turn of a run, counted from 1.
    fn turn_id(&self, run: &RunId, turn: u32) -> TurnId {
        TurnId::from(format!("{run}.{turn}"))
    }
}
