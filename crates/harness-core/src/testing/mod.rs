//! Tools for tests: everything that a run touches, scripted, on virtual time.
//!
//! Two levels:
//!
//! - for programs that use the real driver: [`ScriptedModel`], [`ScriptedTools`], [`VirtualClock`] and [`EventLog`]
//!   replace the ports, and [`laws`] checks the result;
//! - for the machines themselves, without any runtime: [`ScriptedDriver`] performs effects on virtual
//!   time against an [`ScriptedWorld`] of your own, can crash after any effect, keeps what was durable in a
//!   [`Journal`], and records the inputs for a replay. [`drive_stepwise`] runs a machine over real ports, in place of the
//!   real driver.
//!
//! Nothing here waits, reads a clock or uses randomness, so a test that fails fails every time.
//!
//! A turn with the real driver:
//!
//! ```
//! use std::sync::Arc;
//!
//! use harness_core::driver::{Ports, drive};
//! use harness_core::machine::Start;
//! use harness_core::message::{AssistantMessage, Message, ToolCall};
//! use harness_core::tool::{ToolDef, ToolOutcome};
//! use harness_core::testing::{EventLog, ScriptedModel, ScriptedTools, VirtualClock};
//! use harness_core::transcript::Transcript;
//! use harness_core::turn::{Turn, TurnSpec};
//! use harness_core::{Cancel, Json, Origin, StopReason, Time};
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let model = ScriptedModel::new([
//!     AssistantMessage::calls([ToolCall::new("c1", "add", Json::parse(r#"{"a":2}"#)?)]),
//!     AssistantMessage::text("It is 4."),
//! ]);
//! let tools = ScriptedTools::new([ToolDef::new("add", "adds")]).answering([ToolOutcome::text("4")]);
//! let events = EventLog::default();
//!
//! let mut ports = Ports::new(Arc::new(model.clone()), Arc::new(VirtualClock::jumping(Time(0))));
//! ports.tools = Arc::new(tools.clone());
//! ports.hub.fold(events.clone());
//! let spec = TurnSpec::default();
//! let mut turn = Turn::new(Arc::new(spec), Origin::default(), Transcript::default());
//! let end = drive(&mut turn, &ports, &Cancel::never(), Start::prompt(Message::user("2 + 2?"))).await;
//!
//! assert_eq!(end.reason(), StopReason::AnswerFinalized);
//! assert_eq!(tools.executions()[0].call.arguments.text(), r#"{"a":2}"#);
//! assert_eq!(events.lines().last().map(String::as_str), Some("turn_finished answer_finalized"));
//! assert_eq!((model.unused(), tools.unused()), (0, 0));
//! # Ok::<(), serde_json::Error>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod clock;
mod driver;
mod events;
pub mod laws;
mod model;
mod ports;
mod tools;

pub use crate::machine::Journal;
pub use clock::VirtualClock;
pub use driver::{Answer, Ran, ScriptedDriver, ScriptedWorld, replay};
pub use events::{EventLog, event_line};
pub use model::{ModelStep, ScriptedModel};
pub use ports::drive_stepwise;
pub use tools::{ScriptedTools, ToolStep};
