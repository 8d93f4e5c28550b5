//! The bounded agent loop.
//!
//! Contains the message model, the ports, gates, checks and events, the turn and run machines (without I/O), limits and
//! stop reasons, and the driver that runs machines on tokio. It does not access files, sockets, YAML, the environment, the
//! wall clock or randomness.
//!
//! Most programs use the `harness` facade. With this crate alone, a turn needs a machine, ports and [`driver::drive`]:
//!
//! ```
//! use std::sync::Arc;
//!
//! use harness_core::driver::{Ports, drive};
//! use harness_core::machine::Start;
//! use harness_core::message::{AssistantMessage, Message, ToolCall};
//! use harness_core::port::{BoxFuture, Clock, Deltas, Model, ModelFault, ModelRequest};
//! use harness_core::tool::{Toolbox, tool_fn};
//! use harness_core::transcript::Transcript;
//! use harness_core::turn::{Turn, TurnSpec};
//! use harness_core::{Cancel, Json, Origin, Time};
//!
//! # struct StoppedClock;
//! # impl Clock for StoppedClock {
//! #     fn now(&self) -> Time { Time(0) }
//! #     fn sleep_until(&self, _: Time) -> BoxFuture<'static, ()> { Box::pin(std::future::pending()) }
//! # }
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Weather {
//!     city: String,
//! }
//!
//! struct Parrot;
//!
//! impl Model for Parrot {
//!     async fn step(&self, request: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
//!         Ok(match request.view.last().map(|message| &**message) {
//!             Some(result @ Message::ToolResult(_)) => AssistantMessage::text(result.joined_text()),
//!             _ => {
//!                 let city = Json::parse(r#"{"city":"Oslo"}"#).unwrap_or_default();
//!                 AssistantMessage::calls([ToolCall::new("call-1", "weather", city)])
//!             }
//!         })
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let weather = tool_fn("weather", "The weather of a city", |args: Weather, _| async move {
//!     format!("4 °C in {}", args.city)
//! });
//! let mut ports = Ports::new(Arc::new(Parrot), Arc::new(StoppedClock));
//! ports.tools = Arc::new(Toolbox::new([Arc::new(weather.pure()) as _]));
//!
//! let spec = Arc::new(TurnSpec::default());
//! let mut turn = Turn::new(spec, Origin::default(), Transcript::default());
//! let start = Start::prompt(Message::user("How cold is it?"));
//! let end = drive(&mut turn, &ports, &Cancel::never(), start).await;
//!
//! assert_eq!(end.answer.as_deref(), Some("4 °C in Oslo"));
//! assert_eq!(end.reason().as_str(), "answer_finalized");
//! # }
//! ```

mod base;
pub mod decide;
pub mod driver;
pub mod event;
pub mod limits;
pub mod machine;
pub mod message;
pub mod outcome;
pub mod port;
pub mod run;
#[cfg(feature = "testing")]
pub mod testing;
pub mod tool;
pub mod transcript;
pub mod turn;

pub use base::cancel::Cancel;
pub use base::fault::{Fault, FaultSource};
pub use base::ids::{
    AgentId, ApprovalId, ArtifactId, CallDigest, CallId, EntryId, GateName, ModelName, OpId, RunId,
    SessionId, ThreadId, ToolName, TurnId,
};
pub use base::json::{Extra, Json};
pub use base::object::JsonObject;
pub use base::origin::{Origin, ParentCall};
#[doc(hidden)]
pub use base::stored;
#[doc(hidden)]
pub use base::time::iso;
pub use base::time::{Millis, SpanError, Time};
pub use base::{canonical, display, redact};
pub use driver::redact::Redactor;
pub use outcome::end::End;
pub use outcome::evidence::{Evidence, GuardStage};
pub use outcome::stop::{Outcome, Stop, StopReason};

// Short paths inside of this crate.
use base::{cancel, clock, fault, ids, json, object, origin, schema, time};
