//! A thread: shared state, a handle to it, and the owner of its runs.
//!
//! `state` is the state of a thread, `handle` its public methods, `response` the result of a prompt; `begin` makes
//! runs, `owner` drives them, `memory` is the transcript between them, `ports` is what a run reaches it through.

mod begin;
mod handle;
mod memory;
mod owner;
mod ports;
mod preview;
mod queueing;
mod response;
mod setting;
mod state;

pub use handle::{Snapshot, Stopping, Thread};
pub use response::{Response, TypedResponse};
pub use state::Status;

pub(crate) use begin::last_said;
pub(crate) use state::Shared;
