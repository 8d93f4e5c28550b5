//! Integration tests of harness-runtime: one module per topic.

#![expect(clippy::expect_used, reason = "a test fails by panicking, in its helpers too")]

mod channels;
mod context_files;
mod skills;
mod templates;
mod tree;
