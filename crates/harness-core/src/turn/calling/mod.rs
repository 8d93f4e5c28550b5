//! The calls of an answer, each through its gates to its result.
//!
//! For each call: offered → arguments → gates → approval → budget → execution (with retries). A
//! sequential batch prepares a call only when the one before it is answered; a parallel one prepares
//! one call at a time while others run. Results enter the transcript in call order.

mod batch;
mod calls;
mod gates;
mod results;

pub(super) use batch::{Batch, CallState, Finished, Progress};
pub use gates::{MAX_ARGUMENT_BYTES, MAX_ARGUMENT_DEPTH};
pub(super) use gates::{emit_decision, requested};
pub(super) use results::{interrupted, not_performed, not_run_outcome};
