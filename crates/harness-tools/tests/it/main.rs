//! The crate seen from outside: registry files, real programs, and what a model reads of them.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails, in its helpers too"
)]

mod approval;
mod background;
mod budgets;
mod builtins;
mod command;
mod delegation;
mod duplicates;
mod edits;
mod folder;
mod guard;
#[cfg(feature = "mcp")]
mod mcp;
#[cfg(feature = "mcp")]
mod mcp_failing;
#[cfg(feature = "mcp")]
mod mcp_http;
#[cfg(feature = "mcp")]
mod mcp_peer;
#[cfg(feature = "mcp")]
mod mcp_program;
#[cfg(feature = "mcp")]
mod mcp_registry;
mod memory;
mod models;
mod modes;
mod programs;
mod registry;
mod sandbox;
#[cfg(feature = "schema-validation")]
mod schema;
mod shell;
mod stopping;
mod subagents;
mod support;
mod work;
mod workspace;
