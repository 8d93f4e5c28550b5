//! Golden vectors: what goes in, and what has to come out.
//!
//! A vector is a file of `fixtures/conformance`, a part of one, or a directory with a `case.json`. Its kind says
//! what runs it (`kinds`); where the product's rule differs from a vector, an overlay holds our result with the
//! rule's name and the reason (`overlay`). `cargo test -p harness-conformance` has one test for each vector, and for
//! one that runs turns one for each driver (`driver`); `cargo xtask conformance DIR…` runs those of other directories by
//! the same code, and counts a vector once.
//!
//! To add a kind: write `<kind>.rs` with `pub(crate) fn run(vector: &Vector) -> Verdict` and add its line to a table in
//! `kinds`.

mod adapters;
mod case;
mod clock;
mod compaction;
mod control;
mod counters;
mod descriptor;
mod driver;
mod excuse;
mod guard;
mod jsonl_session;
mod kinds;
mod known;
mod memory;
mod memory_builtin;
#[cfg(test)]
mod mutation;
mod orchestrator;
mod outcome;
mod overlay;
mod prompts;
mod report;
mod runner;
mod runtime;
mod session_tree;
mod subset;
mod summarizing_compactor;
mod tool_registry;
mod turn;
mod turn_fn;
mod vector;
mod verdict;
mod workspace_tools;

use std::path::PathBuf;

pub use driver::{Driver, Threads, TurnCase};
pub use report::{Selection, run};
pub use runner::Suite;
pub use vector::Vector;
pub use verdict::Verdict;

/// Result of a step of a runner, or the reason why the vector fails.
pub(crate) type Done<T> = Result<T, String>;

/// Where the project's own vectors lie.
fn own_directory() -> PathBuf {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/conformance"));
    path.canonicalize().unwrap_or(path)
}
