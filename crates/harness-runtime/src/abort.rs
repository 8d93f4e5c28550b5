//! A signal with a reason.

use std::pin::pin;
use std::sync::{Arc, OnceLock};

use futures_util::future::{Either, select};
use harness_core::port::Clock;
use harness_core::{Cancel, Millis};

/// Tells work that it is not wanted any more, and why. Clones share the signal. The first reason stays;
/// children end with their parent, never the other way round.
#[derive(Clone, Debug, Default)]
pub struct Abort(Arc<Signal>);

#[derive(Debug, Default)]
struct Signal {
    cancel: Cancel,
    reason: OnceLock<Arc<str>>,
    parent: Option<Abort>,
}

impl Abort {
    /// A signal that has not fired.
    pub fn new() -> Self {
        Self::default()
    }

    /// A signal that fires with this one, and can fire alone. A child of a signal that has fired has fired.
    #[must_use]
    pub fn child(&self) -> Self {
        let (cancel, parent) = (self.0.cancel.child(), Some(self.clone()));
        Self(Arc::new(Signal { cancel, reason: OnceLock::new(), parent }))
    }

    /// Fires. Whether it was this call that did.
    pub fn abort(&self, reason: impl Into<Arc<str>>) -> bool {
        if self.is_aborted() || self.0.reason.set(reason.into()).is_err() {
            return false;
        }
        self.0.cancel.cancel();
        true
    }

    /// Whether it has fired.
    pub fn is_aborted(&self) -> bool {
        self.0.cancel.is_cancelled()
    }

    /// Why, once it has fired.
    pub fn reason(&self) -> Option<Arc<str>> {
        let own = self.0.reason.get().cloned();
        own.or_else(|| self.0.parent.as_ref().and_then(Self::reason)).filter(|_| self.is_aborted())
    }

    /// Completes with the reason when it fires; at once when it has.
    pub async fn aborted(&self) -> Arc<str> {
        self.0.cancel.cancelled().await;
        self.reason().unwrap_or_else(|| "cancelled".into())
    }

    /// The signal in core's form, for ports.
    pub fn cancel(&self) -> &Cancel {
        &self.0.cancel
    }
}

/// How work ended that may take a time only.
pub(crate) enum Ended<T> {
    /// By itself.
    Done(T),
    /// It took too long.
    TimedOut,
    /// It is not wanted any more.
    Aborted(Arc<str>),
}

/// Does the work until it is done, its time is over or it is not wanted any more; then it is dropped.
pub(crate) async fn within<T>(
    work: impl Future<Output = T>,
    clock: &dyn Clock,
    timeout: Option<Millis>,
    abort: &Abort,
) -> Ended<T> {
    let late = async {
        match timeout {
            Some(timeout) => clock.sleep_until(clock.now().after(timeout)).await,
            None => std::future::pending().await,
        }
    };
    let (work, late, aborted) = (pin!(work), pin!(late), pin!(abort.aborted()));
    match select(work, select(late, aborted)).await {
        Either::Left((done, _)) => Ended::Done(done),
        Either::Right((Either::Left(_), _)) => Ended::TimedOut,
        Either::Right((Either::Right((reason, _)), _)) => Ended::Aborted(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_stays_and_goes_down_only() {
        let parent = Abort::new();
        let (child, sibling) = (parent.child(), parent.child());
        assert!(child.abort("first") && !child.abort("second"));
        assert_eq!(
            (child.reason().as_deref(), sibling.reason(), parent.is_aborted()),
            (Some("first"), None, false)
        );
        assert!(parent.abort("all"));
        assert_eq!((child.reason().as_deref(), sibling.reason().as_deref()), (Some("first"), Some("all")));
        assert!(!sibling.abort("late") && parent.child().is_aborted());
        assert_eq!(parent.child().child().reason().as_deref(), Some("all"));
    }
}
