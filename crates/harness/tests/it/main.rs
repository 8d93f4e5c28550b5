//! The facade, used as a program uses it: through `harness` alone.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails, in its helpers too")]

mod approval;
mod compaction;
mod control;
mod crashes;
mod examples;
mod execution;
mod files;
mod flows;
mod graph;
mod item_schemas;
mod long_conversation;
mod memory;
mod names;
mod recording;
mod run_resume;
mod setup;
mod sizes;
mod skills;
mod sources;
mod subagents;
mod support;
mod thread;
mod threads;
mod typed;
