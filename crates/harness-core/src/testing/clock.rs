//! A clock that moves only when a test moves it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use crate::port::{BoxFuture, Clock};
use crate::time::{Millis, Time};

/// A [`Clock`] without real time. Clones share the time.
///
/// A *still* clock moves only by [`VirtualClock::advance`], which wakes sleepers. A *jumping* clock moves to the awaited
/// time when a sleep is polled a second time, after everything else had its chance: use it where the driver is the only
/// sleeper. On a *frozen* clock every sleep ends at once and the time does not change, for comparisons with systems
/// whose waits are not on their clock.
///
/// ```
/// use harness_core::port::Clock;
/// use harness_core::testing::VirtualClock;
/// use harness_core::{Millis, Time};
///
/// let clock = VirtualClock::still(Time(1_000));
/// clock.advance(Millis(500));
/// assert_eq!(clock.now(), Time(1_500));
/// ```
#[derive(Clone, Debug)]
pub struct VirtualClock {
    state: Arc<Mutex<State>>,
    sleeping: Sleeping,
}

#[derive(Debug)]
struct State {
    now: Time,
    sleepers: Vec<Waker>,
}

/// The effect of a sleep on the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sleeping {
    Waits,
    Moves,
    Ends,
}

impl VirtualClock {
    /// A clock at `now` until it is advanced.
    pub fn still(now: Time) -> Self {
        Self::new(now, Sleeping::Waits)
    }

    /// A clock that jumps to the awaited time.
    pub fn jumping(now: Time) -> Self {
        Self::new(now, Sleeping::Moves)
    }

    /// A clock on which every sleep ends at once.
    pub fn frozen(now: Time) -> Self {
        Self::new(now, Sleeping::Ends)
    }

    fn new(now: Time, sleeping: Sleeping) -> Self {
        Self { state: Arc::new(Mutex::new(State { now, sleepers: Vec::new() })), sleeping }
    }

    /// Moves the time and wakes every sleeper whose time may have come.
    pub fn advance(&self, by: Millis) {
        let mut state = self.state.lock();
        state.now = state.now.after(by);
        let sleepers = std::mem::take(&mut state.sleepers);
        drop(state);
        sleepers.into_iter().for_each(Waker::wake);
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Time {
        self.state.lock().now
    }

    fn sleep_until(&self, at: Time) -> BoxFuture<'static, ()> {
        Box::pin(Sleep { clock: self.clone(), at, polled: false })
    }
}

struct Sleep {
    clock: VirtualClock,
    at: Time,
    polled: bool,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.clock.state.lock();
        if state.now >= self.at || self.clock.sleeping == Sleeping::Ends {
            return Poll::Ready(());
        }
        if self.clock.sleeping == Sleeping::Waits {
            state.sleepers.push(cx.waker().clone());
        } else if self.polled {
            state.now = self.at;
            return Poll::Ready(());
        } else {
            cx.waker().wake_by_ref();
        }
        drop(state);
        self.polled = true;
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use futures_util::task::noop_waker;

    use super::*;

    fn poll(sleep: &mut BoxFuture<'static, ()>) -> bool {
        sleep.poll_unpin(&mut Context::from_waker(&noop_waker())).is_ready()
    }

    #[test]
    fn a_still_clock_wakes_sleepers_when_it_is_advanced_far_enough() {
        let clock = VirtualClock::still(Time(0));
        let mut sleep = clock.sleep_until(Time(10));
        assert_eq!([poll(&mut sleep), poll(&mut sleep)], [false, false]);
        clock.advance(Millis(9));
        assert!(!poll(&mut sleep));
        clock.advance(Millis(1));
        assert!(poll(&mut sleep));
    }

    #[test]
    fn a_jumping_clock_goes_to_the_awaited_time_at_the_second_look() {
        let clock = VirtualClock::jumping(Time(0));
        let mut sleep = clock.sleep_until(Time(10));
        assert_eq!([poll(&mut sleep), poll(&mut sleep)], [false, true]);
        assert_eq!(clock.now(), Time(10));
    }

    #[test]
    fn nobody_waits_on_a_frozen_clock() {
        let clock = VirtualClock::frozen(Time(0));
        assert!(poll(&mut clock.sleep_until(Time(10))));
        assert_eq!(clock.now(), Time(0));
    }
}
