//! How long something took: the only place of the chores that reads a clock.

use std::fmt;
use std::time::{Duration, Instant};

/// Measures from its making.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts measuring.
    #[expect(clippy::disallowed_methods, reason = "chores time programs; the product has its Clock port")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// The time since the start.
    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// A duration for people: `12.3 s` or `4 min 05 s`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Took(pub(crate) Duration);

impl fmt::Display for Took {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        if seconds < 60 {
            write!(f, "{:.1} s", self.0.as_secs_f64())
        } else {
            write!(f, "{} min {:02} s", seconds / 60, seconds % 60)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(millis: u64, expected: &str) {
        assert_eq!(Took(Duration::from_millis(millis)).to_string(), expected);
    }

    #[test]
    fn durations_read_well() {
        check(0, "0.0 s");
        check(59_940, "59.9 s");
        check(60_000, "1 min 00 s");
        check(245_900, "4 min 05 s");
    }
}
