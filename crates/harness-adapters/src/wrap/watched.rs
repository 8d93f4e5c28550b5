//! Observed deltas: after the first delta, a request must not be repeated.

use std::sync::atomic::{AtomicBool, Ordering};

use harness_core::port::{DeltaPart, Deltas};

/// Forwards deltas and records that there was one.
pub(super) struct Watched<'a> {
    inner: &'a dyn Deltas,
    passed_on: AtomicBool,
}

impl<'a> Watched<'a> {
    pub(super) fn new(inner: &'a dyn Deltas) -> Self {
        Self { inner, passed_on: AtomicBool::new(false) }
    }

    /// Whether a delta was forwarded.
    pub(super) fn passed_on(&self) -> bool {
        self.passed_on.load(Ordering::Relaxed)
    }
}

impl Deltas for Watched<'_> {
    fn part(&self, part: DeltaPart) {
        self.passed_on.store(true, Ordering::Relaxed);
        self.inner.part(part);
    }
}
