//! The tests of this crate, one module per topic.

mod jsonl;
