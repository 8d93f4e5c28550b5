//! Integration tests of harness-flow: one module per topic.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test fails, in its helpers too"
)]

mod channels;
mod checkpoints;
mod flows;
mod loops;
mod stage;
mod workplace;
