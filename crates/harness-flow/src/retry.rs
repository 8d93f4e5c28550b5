//! Retries of steps.

use harness_core::Millis;

/// Growth of the delay between attempts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backoff {
    /// Constant delay.
    #[default]
    Fixed,
    /// The delay grows by its initial value.
    Linear,
    /// The delay doubles.
    Exponential,
}

/// Retry policy of a step. An abort ends a delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retry {
    /// Maximum number of attempts, including the first; at least 1.
    pub max_attempts: u32,
    /// Growth of the delay. Default constant.
    pub backoff: Backoff,
    /// Delay after the first attempt. Default none.
    pub initial_delay: Millis,
    /// Maximum delay. Default 30 s.
    pub max_delay: Millis,
}

impl Retry {
    /// Creates a policy without delays.
    pub fn new(max_attempts: u32) -> Self {
        let (backoff, initial_delay, max_delay) = (Backoff::Fixed, Millis(0), Millis(30_000));
        Self { max_attempts, backoff, initial_delay, max_delay }
    }

    /// Sets backoff and initial delay.
    #[must_use]
    pub fn waiting(mut self, backoff: Backoff, initial_delay: Millis) -> Self {
        (self.backoff, self.initial_delay) = (backoff, initial_delay);
        self
    }

    /// Delay after an attempt, counted from 1.
    pub fn delay(&self, attempt: u32) -> Millis {
        let factor = match self.backoff {
            Backoff::Fixed => 1,
            Backoff::Linear => u64::from(attempt),
            Backoff::Exponential => 1_u64.checked_shl(attempt.saturating_sub(1)).unwrap_or(u64::MAX),
        };
        Millis(self.initial_delay.0.saturating_mul(factor)).min(self.max_delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(backoff: Backoff, expected: [u64; 4]) {
        let retry = Retry::new(9).waiting(backoff, Millis(4_000));
        assert_eq!([1, 2, 3, 99].map(|attempt| retry.delay(attempt).0), expected);
    }

    #[test]
    fn waits_grow_up_to_the_longest() {
        check(Backoff::Fixed, [4_000; 4]);
        check(Backoff::Linear, [4_000, 8_000, 12_000, 30_000]);
        check(Backoff::Exponential, [4_000, 8_000, 16_000, 30_000]);
    }
}
