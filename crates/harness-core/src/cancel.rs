//! The signal that something is not wanted any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::CancellationToken;

/// Tells work that it is not wanted any more. Clones share the signal; it fires once and stays.
#[derive(Clone, Debug)]
pub struct Cancel(Arc<Signal>);

#[derive(Debug)]
struct Signal {
    /// Wakes those who wait.
    token: CancellationToken,
    /// Answers those who only look, without a lock.
    fired: AtomicBool,
    parent: Option<Cancel>,
}

impl Default for Cancel {
    fn default() -> Self {
        Self::new()
    }
}

impl Cancel {
    /// A signal that has not fired.
    pub fn new() -> Self {
        Self::of(CancellationToken::new(), None)
    }

    /// A signal that nobody will fire.
    pub fn never() -> Self {
        Self::new()
    }

    fn of(token: CancellationToken, parent: Option<Self>) -> Self {
        Self(Arc::new(Signal { token, fired: AtomicBool::new(false), parent }))
    }

    /// A signal that fires with this one, and can fire alone.
    #[must_use]
    pub fn child(&self) -> Self {
        Self::of(self.0.token.child_token(), Some(self.clone()))
    }

    /// Fires.
    pub fn cancel(&self) {
        self.0.fired.store(true, Ordering::Release);
        self.0.token.cancel();
    }

    /// Whether it has fired.
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        let mut signal = &self.0;
        while !signal.fired.load(Ordering::Acquire) {
            let Some(parent) = &signal.parent else { return false };
            signal = &parent.0;
        }
        true
    }

    /// Completes when it fires; at once when it has.
    pub async fn cancelled(&self) {
        self.0.token.cancelled().await;
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn a_child_fires_with_its_parent_and_alone() {
        let parent = Cancel::new();
        let (with, alone) = (parent.child(), parent.child().child());
        alone.cancel();
        assert!(alone.is_cancelled() && alone.cancelled().now_or_never().is_some());
        assert!(!with.is_cancelled() && !parent.is_cancelled());
        parent.cancel();
        assert!(with.is_cancelled() && with.cancelled().now_or_never().is_some());
    }
}
