//! Compaction.

mod clearing;
mod durability;
mod groups;
mod laws;
mod pairing;
mod plans;
mod script;
mod summaries;
