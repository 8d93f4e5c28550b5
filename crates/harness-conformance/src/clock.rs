//! The time of tokio as a clock; paused, it moves when no task can continue.

use std::time::Duration;

use harness_core::Time;
use harness_core::port::{BoxFuture, Clock};
use tokio::time::Instant;

/// A clock that begins at 0 when it is made, within a runtime.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PausedClock(Instant);

impl PausedClock {
    pub(crate) fn new() -> Self {
        Self(Instant::now())
    }
}

impl Clock for PausedClock {
    fn now(&self) -> Time {
        Time(i64::try_from(self.0.elapsed().as_millis()).unwrap_or(i64::MAX))
    }

    fn sleep_until(&self, at: Time) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep_until(self.0 + Duration::from_millis(u64::try_from(at.0).unwrap_or(0))))
    }
}
