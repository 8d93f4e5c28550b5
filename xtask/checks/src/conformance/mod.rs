//! `cargo xtask conformance [DIR…]`: every vector below each folder, whatever its kind.
//!
//! A vector is found by [`discover`], dispatched by [`kinds`], excused only by a written reason of
//! `fixtures/conformance/skips.toml` ([`skips`]) and counted by [`report`]. To add a kind: write
//! `<kind>.rs` with `pub(crate) fn run(path: &Path) -> Vec<(String, Verdict)>` (the path is the
//! vector's file, or its folder when it has a `case.json`) and add its line to the table in
//! [`kinds`].

mod adapters;
mod compaction;
mod control;
mod descriptor;
mod discover;
mod expected;
mod guard;
mod jsonl_session;
mod kinds;
mod memory;
mod memory_builtin;
mod orchestrator;
mod outcome;
mod prompts;
mod report;
mod runner;
mod runtime;
mod session_tree;
mod single;
mod skips;
mod subset;
mod summarizing_compactor;
mod tool_registry;
mod turn;
mod turn_fn;
mod verdict;
mod workspace_tools;

pub(crate) use runner::{Options, run};
pub(crate) use verdict::Verdict;
