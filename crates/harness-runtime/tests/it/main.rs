//! Integration tests of harness-runtime: one module per topic.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::wildcard_enum_match_arm,
    reason = "a panic is how a test fails, in its helpers too"
)]

mod channels;
mod checkpoints;
mod context_files;
mod delivery;
mod ends;
mod flat;
mod flows;
mod interleavings;
mod loops;
mod options;
mod previews;
mod runs;
mod sessions;
mod settings;
mod sim;
mod skills;
mod stage;
mod streams;
mod support;
mod templates;
mod timelines;
mod tree;
mod workplace;
