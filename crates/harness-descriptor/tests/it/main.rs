//! Tests of the public API.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod agents;
mod check;
mod codes;
mod diff;
mod fixtures;
mod forgotten;
mod fuzz;
#[path = "../../../harness-core/tests/support/fuzz.rs"]
mod fuzz_support;
mod graph;
mod hashes;
mod limits;
mod lint;
mod paths;
mod reader;
mod run;
mod show;
mod source;
mod strict;
