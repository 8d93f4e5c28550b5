//! Integration tests of harness-runtime: one module per topic.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::wildcard_enum_match_arm,
    reason = "a panic is how a test fails, in its helpers too"
)]

mod delivery;
mod ends;
mod flat;
mod interleavings;
mod options;
mod previews;
mod runs;
mod sessions;
mod settings;
mod sim;
mod skills;
mod streams;
mod support;
mod templates;
mod timelines;
mod tree;
