//! Compaction.

mod durability;
mod groups;
mod script;
mod summaries;
