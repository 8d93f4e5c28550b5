//! Tests of harness-memory; one module per topic.
#![cfg(test)]

mod builtin;
mod groups;
mod notes;
