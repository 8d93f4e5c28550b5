//! Time and unique ids of the machine that the program runs on.
//!
//! The one place of the workspace where a clock is read; everything else is handed the time.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use harness_core::port::{BoxFuture, Clock, Ids};
use harness_core::{Millis, RunId, Time};

/// The time of this machine.
///
/// Monotonic: the wall clock is read once, when the clock is made, and from then on the time that has
/// passed is added. A change of the wall clock during a run moves neither deadlines nor durations.
///
/// ```
/// use harness::core::port::Clock;
/// use harness::system::SystemClock;
///
/// let clock = SystemClock::new();
/// let before = clock.now();
/// assert!(clock.now() >= before);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    started: Instant,
    anchor: Time,
}

impl SystemClock {
    /// A clock that begins now.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the clocks")]
    pub fn new() -> Self {
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Self { started: Instant::now(), anchor: Time(0).after(Millis::from(wall)) }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Time {
        self.anchor.after(Millis::from(self.started.elapsed()))
    }

    fn sleep_until(&self, at: Time) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(at.since(self.now()).duration()))
    }
}

/// Run ids that sort by the time of their making and that no other process makes: `run-` and 28
/// hexadecimal digits, twelve of the time and sixteen at random.
///
/// ```
/// use harness::core::port::Ids;
/// use harness::system::SystemIds;
///
/// let ids = SystemIds::new();
/// let (first, second) = (ids.run_id(), ids.run_id());
/// assert_ne!(first, second);
/// ```
#[derive(Debug)]
pub struct SystemIds {
    clock: SystemClock,
    /// Seeded by the operating system.
    random: RandomState,
    count: AtomicU64,
}

impl SystemIds {
    /// Ids from now on.
    pub fn new() -> Self {
        Self { clock: SystemClock::new(), random: RandomState::new(), count: AtomicU64::new(0) }
    }
}

impl Default for SystemIds {
    fn default() -> Self {
        Self::new()
    }
}

impl Ids for SystemIds {
    fn run_id(&self) -> RunId {
        let now = self.clock.now().0;
        let mut hasher = self.random.build_hasher();
        hasher.write_i64(now);
        hasher.write_u64(self.count.fetch_add(1, Ordering::Relaxed));
        RunId::from(format!("run-{now:012x}{:016x}", hasher.finish()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn time_never_goes_back() {
        let clock = SystemClock::new();
        let times: Vec<Time> = (0..1_000).map(|_| clock.now()).collect();
        assert!(times.is_sorted());
        assert!(clock.now() > Time(1_700_000_000_000), "anchored to the wall clock");
    }

    #[test]
    fn ids_differ_within_and_between_sources() {
        let (a, b) = (SystemIds::new(), SystemIds::new());
        let ids: HashSet<RunId> = (0..100).flat_map(|_| [a.run_id(), b.run_id()]).collect();
        assert_eq!(ids.len(), 200);
        assert!(ids.iter().all(|id| id.as_str().len() == 32));
    }
}
