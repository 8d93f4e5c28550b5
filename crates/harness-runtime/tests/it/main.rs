//! Threads, their queues, streams and settings.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::wildcard_enum_match_arm,
    reason = "a panic is how a test fails, in its helpers too"
)]

mod delivery;
mod runs;
mod settings;
mod streams;
mod support;
