//! Adapters of real engines.

pub mod restate;
