//! The virtual time of an engine.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use harness::core::Time;
use harness::core::port::{BoxFuture, Clock};
use parking_lot::Mutex;

/// A clock that the engine moves when nothing else can happen. Clones share the time.
#[derive(Clone, Debug, Default)]
pub struct SimClock(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    now: Time,
    sleepers: BTreeMap<u64, Time>,
    named: u64,
}

impl SimClock {
    /// When the first sleeper wakes.
    pub(super) fn next(&self) -> Option<Time> {
        self.0.lock().sleepers.values().min().copied()
    }

    pub(super) fn set(&self, now: Time) {
        let mut state = self.0.lock();
        state.now = state.now.max(now);
    }
}

impl Clock for SimClock {
    fn now(&self) -> Time {
        self.0.lock().now
    }

    fn sleep_until(&self, at: Time) -> BoxFuture<'static, ()> {
        let mut state = self.0.lock();
        state.named += 1;
        let id = state.named;
        state.sleepers.insert(id, at);
        drop(state);
        Box::pin(Sleep { clock: self.clone(), id, at })
    }
}

/// A wait. The engine polls everything after it has moved the time, so no waker is needed.
struct Sleep {
    clock: SimClock,
    id: u64,
    at: Time,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.clock.now() >= self.at { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.clock.0.lock().sleepers.remove(&self.id);
    }
}
