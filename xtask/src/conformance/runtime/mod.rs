//! Vectors of source 002's session runtime: channels, and the steps of flows.

pub(super) mod channel;

use std::task::{Context, Poll, Waker};

/// Whether a future has ended, polled by hand.
fn poll_once<T>(work: std::pin::Pin<&mut (dyn Future<Output = T> + '_)>) -> Option<T> {
    match work.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => Some(done),
        Poll::Pending => None,
    }
}
