//! Vectors of the thread runtime: channels, the steps of flows, threads.

pub(super) mod channel;
pub(super) mod checkpoint;
mod error;
pub(super) mod parallel;
pub(super) mod repeat;
pub(super) mod rounds;
pub(super) mod threads;

use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use harness_core::message::{Block, Message};
use harness_core::testing::VirtualClock;
use harness_core::{Millis, RunId};

use super::turn::convert::Done;

/// Turns without an end after which a vector has failed.
const TURNS: u32 = 1_000_000;

/// Every run has one name: vectors name none.
pub(super) struct Ids;

impl harness_core::port::Ids for Ids {
    fn run_id(&self) -> RunId {
        "run".into()
    }
}

/// A message as item codes.
fn codes(message: &Message) -> Vec<String> {
    if let Some(answer) = message.as_assistant() {
        return answer.content.iter().filter_map(block_code).collect();
    }
    if let Message::ToolResult(result) = message {
        return vec![format!("o:{}", result.tool_call_id)];
    }
    vec![format!("u:{}", message.joined_text())]
}

fn block_code(block: &Block) -> Option<String> {
    if let Block::ToolCall(call) = block {
        return Some(format!("c:{}", call.id));
    }
    block.as_text().map(|text| format!("a:{text}"))
}

/// Whether a future has ended, polled by hand.
fn poll_once<T>(work: std::pin::Pin<&mut (dyn Future<Output = T> + '_)>) -> Option<T> {
    match work.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => Some(done),
        Poll::Pending => None,
    }
}

/// Polls to the end, or until `over`; time passes by a millisecond whenever nothing is ready.
fn drive<T>(clock: &VirtualClock, work: impl Future<Output = T>, over: impl Fn() -> bool) -> Done<Option<T>> {
    let mut work = pin!(work);
    for _ in 0..TURNS {
        if let Some(done) = poll_once(work.as_mut()) {
            return Ok(Some(done));
        }
        if over() {
            return Ok(None);
        }
        clock.advance(Millis(1));
    }
    Err("the flow has no end".to_owned())
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
