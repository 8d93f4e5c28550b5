//! Session stores: where a thread's transcript is kept.
//!
//! A session is what a thread has said and done, entry by entry: its messages, which calls had started and
//! finished, the state of its runs. This crate keeps it [in memory](MemorySession), or
//! [stored](FileSession) in a JSON Lines file, a SQLite or a PostgreSQL database, behind `harness-core`'s [`Session`](harness_core::port::Session) port.
//! It knows nothing of models and tools, and it does not decide about calls that never
//! finished: it lists them ([`unanswered`]), and the run repairs them.
//!
//! What it promises: an entry that was acknowledged is there when the session is opened again, whatever
//! happened in between; a session has one owner at a time; damage is reported with its place and never
//! passed over, but for a last line that was not written to its end.
//!
//! ```
//! use std::sync::Arc;
//!
//! use harness_core::message::Message;
//! use harness_core::port::{Durability, Entry, EntryHead};
//! use harness_core::{RunId, Time};
//! use harness_session::{FileSession, OpenOptions};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("support.jsonl");
//! let session = FileSession::open(&path, OpenOptions::new().id("support-17"))?;
//!
//! // What a driver does with each message as soon as it is final; in asynchronous code it awaits `append`.
//! let head = EntryHead::new(Time(1_767_225_600_000), Some(RunId::from("r1")), 1, None);
//! let question = Arc::new(Message::user("Where is my order?"));
//! session.append_blocking(&head, &[Entry::Message(&question)], Durability::Sync)?;
//!
//! // A second owner is refused; anybody may read.
//! assert!(FileSession::open(&path, OpenOptions::new()).is_err());
//! let stored = FileSession::read(&path, &OpenOptions::new())?;
//! assert_eq!(stored.loaded.messages, [question]);
//! assert!(!stored.loaded.ended);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Beside sessions it keeps [checkpoints] of runs, [large contents](artifact) under their hashes and the
//! [values](storage) of memory layers.
//!
//! Own stores implement the port and are tested with `testing::session_contract` and its like (feature
//! `testing`).
//!
//! [checkpoints]: checkpoint

#[cfg(not(unix))]
compile_error!(
    "harness-session needs Unix: its stores rely on file modes, file numbers and locks that do not keep readers out"
);

pub mod artifact;
mod blocking;
mod chain;
pub mod checkpoint;
mod disk;
mod error;
mod fold;
mod folder;
mod jsonl;
mod location;
mod memory;
mod note;
mod postgres;
mod rows;
mod seal;
pub mod search;
mod spine;
mod sqlite;
pub mod storage;
#[cfg(feature = "testing")]
pub mod testing;
mod tree;
mod unanswered;

pub use error::{Action, Disturbance, Error, Store};
pub use jsonl::{
    FORMAT_VERSION, FileSession, Header, Limits, OpenOptions, Owner, Program, Quarantined, RepairReport,
    Stored, SyncPolicy,
};
pub use location::Location;
pub use memory::MemorySession;
pub use note::{ModelRef, Note};
#[cfg(feature = "encryption")]
pub use seal::Key;
#[cfg(feature = "sqlite")]
pub use sqlite::Database;
pub use tree::{Body, Context, ForkOptions, Leaf, Node, Shown, Source, Tree};
pub use unanswered::{Unanswered, unanswered};
