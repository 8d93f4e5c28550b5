//! Test kit: agents without tokens, network or waiting (feature `testing`).
//!
//! | for | use |
//! |---|---|
//! | models and tools | [`ScriptedModel`], [`ScriptedTools`] |
//! | time | [`VirtualClock`] |
//! | events | [`EventLog`] |
//! | the traffic of a provider | [`Recorder`], [`Replay`] |
//! | crashes | [`every_crash`] |
//! | the laws that every run keeps | [`laws`] |
//! | stores of your own | [`session_contract`], [`checkpoint_contract`], [`artifact_contract`], [`storage_contract`] |
//! | disks that fail | [`Faults`] |
//!
//! ```
//! use harness::prelude::*;
//! use harness::testing::{EventLog, ScriptedModel, laws};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let (model, events) = (ScriptedModel::new([AssistantMessage::text("Hello.")]), EventLog::default());
//! let report = Harness::new(model).fold(events.clone()).build()?.prompt("Hi").await?;
//! laws::calls(report.transcript.iter(), &report.end)?;
//! laws::end(&report.end)?;
//! laws::events(&events.events())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod points;
mod ports;
mod scenario;

pub use harness_core::testing::{
    EventLog, ModelStep, ScriptedModel, ScriptedTools, ToolStep, VirtualClock, event_line, laws,
};
pub use harness_record::traffic::{Recorder, Replay};
pub use harness_session::testing::{
    Change, Fault, Faults, artifact_contract, checkpoint_contract, durable_session_contract,
    session_contract, storage_contract,
};

pub use self::points::CrashPoints;
pub use self::scenario::{CrashFailure, CrashOutcome, Scenario, every_crash};
