//! Integration tests of harness-acp: one module per topic.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a panic is how a test fails, in its helpers too"
)]

mod bounds;
mod ends;
mod permissions;
mod prompts;
#[cfg(feature = "mcp")]
mod servers;
mod sessions;
mod support;
mod updates;
