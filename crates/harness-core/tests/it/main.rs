//! Integration tests of harness-core: one module per topic.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking, in its helpers too"
)]

mod driver;
