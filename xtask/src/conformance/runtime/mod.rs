//! Vectors of source 002's session runtime: channels, the steps of flows, threads.

pub(super) mod channel;
pub(super) mod threads;

use std::task::{Context, Poll, Waker};

/// Whether a future has ended, polled by hand.
fn poll_once<T>(work: std::pin::Pin<&mut (dyn Future<Output = T> + '_)>) -> Option<T> {
    match work.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => Some(done),
        Poll::Pending => None,
    }
}
