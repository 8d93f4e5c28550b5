//! LLM agents that are bounded, streamed, durable and truthful about why they stopped.
//!
//! This crate is the facade: it re-exports the crates below it and has the [`Builder`] that wires them.
//! It has no logic: `harness-core` and one or two siblings can do the same without it.
//!
//! ```
//! use harness::prelude::*;
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Weather {
//!     city: String,
//! }
//!
//! /// Asks for the weather, then says what it was told. A real program uses a model of
//! /// `harness::adapters`.
//! struct Parrot;
//!
//! impl Model for Parrot {
//!     async fn step(&self, request: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
//!         Ok(match request.view.last().map(|message| &**message) {
//!             Some(Message::ToolResult(_)) => {
//!                 let said = request.view.last().map(|result| result.joined_text()).unwrap_or_default();
//!                 AssistantMessage::text(format!("It is {said}."))
//!             }
//!             _ => AssistantMessage::calls([harness::core::message::ToolCall::new(
//!                 "call-1",
//!                 "weather",
//!                 harness::core::Json::parse(r#"{"city":"Oslo"}"#).unwrap(),
//!             )]),
//!         })
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let weather = tool_fn("weather", "Current weather of a city", |asked: Weather, _| async move {
//!     Ok::<_, std::io::Error>(format!("4 °C in {}", asked.city))
//! });
//! let report = Harness::new(Parrot).tool(weather.pure()).build()?.prompt("How cold is Oslo?").await?;
//! assert_eq!(report.answer(), "It is 4 °C in Oslo.");
//! # Ok::<(), harness::HarnessError>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | crate |
//! |---|---|
//! | [`core`] | messages, ports, gates, events, limits, the turn and run machines, the driver |
//! | [`descriptor`] | agent graphs as YAML |
//! | [`diagnostics`] | YAML files with places, errors with carets |
//! | [`flow`] | programs of steps, channels between them |
//! | [`host`] | storage, artifacts, API keys, a working directory, processes |
//! | [`memory`] | memory layers, compaction |
//! | [`session`] | session stores |
//! | [`record`] | run records, recordings of model traffic, replay |
//! | [`adapters`] | models over HTTP, wrappers around models |
//! | `relay` | workers behind an Agent Relay broker (feature `relay`) |
//! | [`runtime`] | threads: prompts, queues, streams, resumption, reports |
//! | [`tools`] | command tools, MCP servers |
//! | `testing` | the test kit (feature `testing`) |

mod agents;
mod builder;
mod compaction;
mod error;
mod execution;
mod harness;
mod instructions;
mod layers;
mod models;
pub mod prelude;
mod recording;
mod sessions;
mod spans;
mod subagents;
pub mod system;
#[cfg(feature = "testing")]
pub mod testing;
mod threads;
mod until_done;

#[cfg(feature = "relay")]
pub use harness_relay as relay;

pub use self::agents::BoundGraph;
pub use self::builder::Builder;
pub use self::compaction::compaction_policy;
pub use self::error::{HarnessError, SetupFault};
pub use self::execution::HarnessExecution;
pub use self::harness::Harness;
pub use self::models::RegistryModels;
pub use self::sessions::{SessionStore, StoredThread};
pub use ::{
    harness_adapters as adapters, harness_control as control, harness_core as core,
    harness_descriptor as descriptor, harness_diagnostics as diagnostics, harness_flow as flow,
    harness_host as host, harness_memory as memory, harness_record as record, harness_runtime as runtime,
    harness_session as session, harness_telemetry as telemetry, harness_tools as tools,
};

#[doc = include_str!("../../../README.md")]
#[cfg(doctest)]
struct Readme;

#[doc = include_str!("../../../docs/tutorials/first-agent.md")]
#[cfg(all(doctest, feature = "http", feature = "testing"))]
struct TutorialFirstAgent;

#[doc = include_str!("../../../docs/tutorials/web-service.md")]
#[cfg(all(doctest, feature = "testing"))]
struct TutorialWebService;

#[doc = include_str!("../../../docs/cookbook/mcp.md")]
#[cfg(all(doctest, feature = "mcp"))]
struct CookbookMcp;

#[doc = include_str!("../../../docs/cookbook/long-conversations.md")]
#[cfg(doctest)]
struct CookbookLongConversations;

#[doc = include_str!("../../../docs/cookbook/sub-agents.md")]
#[cfg(doctest)]
struct CookbookSubagents;

#[doc = include_str!("../../../docs/cookbook/finish-the-work.md")]
#[cfg(doctest)]
struct CookbookFinishTheWork;

#[doc = include_str!("../../../docs/cookbook/memory-code.md")]
#[cfg(all(doctest, feature = "sqlite"))]
struct CookbookMemoryCode;

#[doc = include_str!("../../../docs/cookbook/sessions.md")]
#[cfg(all(doctest, feature = "encryption", feature = "sqlite"))]
struct CookbookSessions;

#[doc = include_str!("../../../docs/cookbook/observability.md")]
#[cfg(all(doctest, feature = "otel"))]
struct CookbookObservability;

#[doc = include_str!("../../../docs/cookbook/hosted-models.md")]
#[cfg(all(doctest, feature = "http"))]
struct CookbookHostedModels;

#[doc = include_str!("../../../docs/cookbook/model-endpoints.md")]
#[cfg(doctest)]
struct CookbookModelEndpoints;

#[doc = include_str!("../../../docs/cookbook/streaming.md")]
#[cfg(doctest)]
struct CookbookStreaming;

#[doc = include_str!("../../../docs/cookbook/steering.md")]
#[cfg(doctest)]
struct CookbookSteering;

#[doc = include_str!("../../../docs/cookbook/threads.md")]
#[cfg(doctest)]
struct CookbookThreads;

#[doc = include_str!("../../../docs/cookbook/testing.md")]
#[cfg(all(doctest, feature = "testing"))]
struct CookbookTesting;

#[doc = include_str!("../../../docs/cookbook/typed-answers.md")]
#[cfg(doctest)]
struct CookbookTypedAnswers;

#[doc = include_str!("../../../docs/cookbook/outcomes.md")]
#[cfg(doctest)]
struct CookbookOutcomes;

#[doc = include_str!("../../../docs/cookbook/custom-models.md")]
#[cfg(doctest)]
struct CookbookCustomModels;
