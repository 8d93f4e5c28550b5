//! The signal that something is not wanted any more.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

/// Tells work that it is no longer wanted, and why. Clones share the signal; it fires once and stays, and its first
/// reason stays. Children end with their parent, never the other way round.
///
/// ```
/// use harness_core::Cancel;
///
/// let parent = Cancel::new();
/// let child = parent.child();
/// assert!(child.cancel_with("timeout") && !child.cancel_with("late"));
/// assert_eq!((child.reason().as_deref(), parent.reason()), (Some("timeout"), None));
/// ```
#[derive(Clone, Debug)]
pub struct Cancel(Arc<Signal>);

#[derive(Debug)]
struct Signal {
    /// Wakes those who wait.
    token: CancellationToken,
    /// Answers those who only look, without a lock.
    fired: AtomicBool,
    reason: OnceLock<Arc<str>>,
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
        Self(Arc::new(Signal { token, fired: AtomicBool::new(false), reason: OnceLock::new(), parent }))
    }

    /// A signal that fires with this one, and can fire alone.
    #[must_use]
    pub fn child(&self) -> Self {
        Self::of(self.0.token.child_token(), Some(self.clone()))
    }

    /// Fires with a reason, unless it has fired. Returns whether this call fired it.
    pub fn cancel_with(&self, reason: impl Into<Arc<str>>) -> bool {
        if self.is_cancelled() || self.0.reason.set(reason.into()).is_err() {
            return false;
        }
        self.cancel();
        true
    }

    /// The reason, once it has fired: its own, else its parent's, else `cancelled`. `None` as long as it has not.
    pub fn reason(&self) -> Option<Arc<str>> {
        if !self.is_cancelled() {
            return None;
        }
        let signals = std::iter::successors(Some(self), |signal| signal.0.parent.as_ref());
        let mut reasons =
            signals.filter(|signal| signal.is_cancelled()).filter_map(|signal| signal.0.reason.get());
        Some(reasons.next().cloned().unwrap_or_else(|| "cancelled".into()))
    }

    /// Fires without a reason.
    pub fn cancel(&self) {
        self.0.fired.store(true, Ordering::Release);
        self.0.token.cancel();
    }

    /// Whether it has fired.
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

    #[test]
    fn the_first_reason_stays_and_goes_down_only() {
        let parent = Cancel::new();
        let (child, sibling) = (parent.child(), parent.child());
        assert!(child.cancel_with("first") && !child.cancel_with("second"));
        assert_eq!(
            (child.reason().as_deref(), sibling.reason(), parent.is_cancelled()),
            (Some("first"), None, false)
        );
        assert!(parent.cancel_with("all"));
        assert_eq!((child.reason().as_deref(), sibling.reason().as_deref()), (Some("first"), Some("all")));
        assert!(!sibling.cancel_with("late") && parent.child().is_cancelled());
        assert_eq!(parent.child().child().reason().as_deref(), Some("all"));
    }

    #[test]
    fn a_signal_that_fired_without_a_reason_has_the_usual_one() {
        let parent = Cancel::new();
        parent.cancel();
        assert_eq!(parent.child().reason().as_deref(), Some("cancelled"));
        assert!(!parent.cancel_with("late"));
    }
}
