//! Cancellation.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

/// Cancellation signal. Clones share one signal, which fires once; its first reason is kept. Children fire with their
/// parent, never the other way round.
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
    /// Wakes those that wait.
    token: CancellationToken,
    /// Whether this signal itself has fired. Reading it takes no lock.
    has_fired: AtomicBool,
    reason: OnceLock<Arc<str>>,
    parent: Option<Cancel>,
}

impl Default for Cancel {
    fn default() -> Self {
        Self::new()
    }
}

impl Cancel {
    /// Creates a signal that has not fired.
    pub fn new() -> Self {
        Self::of(CancellationToken::new(), None)
    }

    /// Creates a signal for work that is not cancelled.
    pub fn never() -> Self {
        Self::new()
    }

    fn of(token: CancellationToken, parent: Option<Self>) -> Self {
        Self(Arc::new(Signal { token, has_fired: AtomicBool::new(false), reason: OnceLock::new(), parent }))
    }

    /// Creates a signal that fires with this one and can fire alone.
    #[must_use]
    pub fn child(&self) -> Self {
        Self::of(self.0.token.child_token(), Some(self.clone()))
    }

    /// Fires with a reason. Returns false if the signal had fired before.
    pub fn cancel_with(&self, reason: impl Into<Arc<str>>) -> bool {
        if self.is_cancelled() || self.0.reason.set(reason.into()).is_err() {
            return false;
        }
        self.cancel();
        true
    }

    /// Reason of the cancellation: its own, else that of the nearest parent, else `cancelled`. `None` until it fires.
    pub fn reason(&self) -> Option<Arc<str>> {
        if !self.is_cancelled() {
            return None;
        }
        let mut reasons = self
            .with_parents()
            .filter(|signal| signal.is_cancelled())
            .filter_map(|signal| signal.0.reason.get());
        Some(reasons.next().cloned().unwrap_or_else(|| "cancelled".into()))
    }

    /// Fires without a reason.
    pub fn cancel(&self) {
        self.0.has_fired.store(true, Ordering::Release);
        self.0.token.cancel();
    }

    /// Whether the signal has fired.
    pub fn is_cancelled(&self) -> bool {
        self.with_parents().any(|signal| signal.0.has_fired.load(Ordering::Acquire))
    }

    /// This signal and those that it fires with, the nearest first.
    fn with_parents(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |signal| signal.0.parent.as_ref())
    }

    /// Completes when the signal fires; immediately if it has.
    pub async fn cancelled(&self) {
        self.0.token.cancelled().await;
    }
}
