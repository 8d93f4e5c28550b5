//! Tests of harness-memory; one module per topic.
#![cfg(test)]

mod groups;
mod notes;
