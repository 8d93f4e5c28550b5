//! A program as a worker behind a relay.

mod config;
mod job;
mod note;
mod prompt;
mod runner;
mod seen;
mod session;
mod worker;

pub use config::BridgeConfig;
pub use note::{BridgeNote, NoteLevel};
pub use runner::BridgeRunner;
pub use worker::{BridgeReport, WorkerBridge};
