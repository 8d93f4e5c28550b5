//! The bounded agent loop.
//!
//! This crate holds what every part of *harness* is made of: the message model, the ports, gates and
//! events, the turn and run machines (without I/O), limits and stop reasons, and the driver that runs
//! machines on tokio. It knows no files, sockets, YAML, environment, wall clock or randomness.
//!
//! Most programs use it through the `harness` facade. With this crate alone, a turn is a machine, ports
//! and [`driver::drive`].

pub mod cancel;
pub mod continuation;
pub mod driver;
pub mod event;
mod ids;
mod json;
pub mod limits;
pub mod machine;
pub mod message;
pub mod outcome;
pub mod port;
pub mod run;
#[cfg(feature = "testing")]
pub mod testing;
mod time;
pub mod transcript;
pub mod turn;

pub use cancel::Cancel;
pub use ids::{
    AgentId, CallId, EntryId, GateName, ModelName, OpId, RunId, SessionId, ThreadId, ToolName, TurnId,
};
pub use json::{Extra, Json};
pub use outcome::{End, Evidence, Fault, FaultSource, Outcome, Stop, StopReason};
pub use time::{Millis, Time};
