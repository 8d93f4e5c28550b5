//! What several topics need.

pub(crate) mod broker;
pub(crate) mod relay;

use harness_core::Time;
use harness_core::port::{BoxFuture, Clock};

/// A clock that shows one time.
pub(crate) struct Stopped(pub(crate) Time);

impl Clock for Stopped {
    fn now(&self) -> Time {
        self.0
    }

    fn sleep_until(&self, _: Time) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}
