//! Work with a timeout.

use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{Either, select};
use harness_core::port::Clock;
use harness_core::{Cancel, Millis};

/// Completes with the reason when the signal has fired.
pub(crate) async fn cancelled(cancel: &Cancel) -> Arc<str> {
    cancel.cancelled().await;
    cancel.reason().unwrap_or_default()
}

/// End of work with a timeout.
pub(crate) enum Ended<T> {
    /// It completed.
    Done(T),
    /// It exceeded its timeout.
    TimedOut,
    /// It was cancelled.
    Cancelled(Arc<str>),
}

/// Awaits the work until it completes, its timeout passes or the signal fires; then drops it.
pub(crate) async fn within<T>(
    work: impl Future<Output = T>,
    clock: &dyn Clock,
    timeout: Option<Millis>,
    cancel: &Cancel,
) -> Ended<T> {
    let late = async {
        match timeout {
            Some(timeout) => clock.sleep_until(clock.now().after(timeout)).await,
            None => std::future::pending().await,
        }
    };
    let (work, late, unwanted) = (pin!(work), pin!(late), pin!(cancelled(cancel)));
    match select(work, select(late, unwanted)).await {
        Either::Left((done, _)) => Ended::Done(done),
        Either::Right((Either::Left(_), _)) => Ended::TimedOut,
        Either::Right((Either::Right((reason, _)), _)) => Ended::Cancelled(reason),
    }
}
