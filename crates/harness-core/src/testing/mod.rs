//! Tools for tests: everything that a run touches, scripted, on virtual time.
//!
//! Two levels:
//!
//! - for programs that use the real driver: [`ScriptedModel`], [`ScriptedTools`], [`VirtualClock`],
//!   [`EventLog`] and [`RecordingObserver`] stand in for the ports;
//! - for the machines themselves, without any runtime: [`ScriptedDriver`] performs effects on virtual
//!   time against an [`Outside`] of your own, can crash after any effect, keeps what was durable in a
//!   [`Journal`], and records the inputs for a replay. [`check_turn`] runs a turn that is written as a
//!   short text.
//!
//! Nothing here waits, reads a clock or uses randomness, so a test that fails fails every time.

mod clock;
mod driver;
mod events;
mod journal;
mod model;
mod script;
mod tools;

pub use clock::VirtualClock;
pub use driver::{Answer, Outside, Ran, ScriptedDriver, replay};
pub use events::{EventLog, RecordingObserver, event_line};
pub use journal::{Journal, Journaled};
pub use model::{ModelStep, ScriptedModel};
pub use script::{ScriptFault, check_turn, check_turn_with, play_turn};
pub use tools::{ScriptedTools, ToolStep};
