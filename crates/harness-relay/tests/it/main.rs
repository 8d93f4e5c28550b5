//! Integration tests of harness-relay: loopback only, no sleeping, no ambient environment.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod adapter;
mod bridge;
mod broker;
mod files;
mod support;
