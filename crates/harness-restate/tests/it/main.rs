//! Integration tests of harness-restate: no network, no real time.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod compaction;
mod crashes;
mod deltas;
mod family;
mod forgotten;
mod kept;
mod on_tokio;
mod one_line;
mod parking;
mod scale;
mod scripts;
mod settings;
mod storage;
mod tally;
mod thread;
mod tokio_equal;
mod world;
