//! Session stores: where a thread's transcript is kept.
//!
//! A session is what a thread has said and done, entry by entry: its messages, which calls had started and
//! finished, the state of its runs. This crate keeps it [in memory](MemorySession) or in a
//! [JSON Lines file](JsonlSession), behind `harness-core`'s [`Session`](harness_core::port::Session) port.
//! It knows nothing of models and tools, and it does not decide what becomes of a call that never
//! finished: it tells which those are ([`unanswered`]), the run repairs them.

mod error;
mod fold;
mod jsonl;
mod memory;
#[cfg(feature = "testing")]
pub mod testing;
mod unanswered;

pub use error::{Action, Error};
pub use jsonl::{FORMAT_VERSION, Header, JsonlSession, Limits, OpenOptions, Program, Stored, SyncPolicy};
pub use memory::MemorySession;
pub use unanswered::{Unanswered, unanswered};
