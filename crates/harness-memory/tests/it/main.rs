//! Tests of harness-memory; one module per topic.
#![cfg(test)]

mod notes;

mod groups;
