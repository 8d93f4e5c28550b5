//! Tests of the spans of runs.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails, in its helpers too"
)]

mod content;
mod ends;
mod ledger;
#[cfg(feature = "otel")]
mod otlp;
mod replayed;
mod tree;
mod world;
