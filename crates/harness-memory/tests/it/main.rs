//! Tests of harness-memory; one module per topic.
#![cfg(test)]

mod builtin;
mod compact;
mod compactor;
mod embedder;
mod layers;
mod notes;
