//! A thread: shared state, a handle to it, and the owner of its runs.
//!
//! `state` holds what a thread is, `handle` what can be asked of it, `owner` drives its runs, `memory` is its
//! transcript between them, `ports` is what a run reaches it through.

mod handle;
mod memory;
mod owner;
mod ports;
mod preview;
mod queueing;
mod setting;
mod state;

pub use handle::{Snapshot, Stopping, Thread};
pub use state::Status;

pub(crate) use state::Shared;
