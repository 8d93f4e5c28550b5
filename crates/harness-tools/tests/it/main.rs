//! The crate seen from outside: registry files, real programs, and what a model reads of them.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a panic is how a test fails")]

mod command;
mod guard;
#[cfg(feature = "mcp")]
mod mcp;
#[cfg(feature = "mcp")]
mod mcp_failing;
#[cfg(feature = "mcp")]
mod mcp_peer;
mod registry;
#[cfg(feature = "schema-validation")]
mod schema;
mod stopping;
mod support;
