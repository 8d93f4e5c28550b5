//! The clock of vectors.

use std::sync::atomic::{AtomicI64, Ordering};

use harness_core::Time;
use harness_core::port::{BoxFuture, Clock};

/// 2026-01-01T00:00:00.000Z.
const START: i64 = 1_767_225_600_000;

/// A clock that shows 250 ms more at each reading.
#[derive(Debug, Default)]
pub(super) struct Steps(AtomicI64);

impl Clock for Steps {
    fn now(&self) -> Time {
        Time(START + self.0.fetch_add(250, Ordering::Relaxed))
    }

    fn sleep_until(&self, _: Time) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}
