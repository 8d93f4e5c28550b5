//! Harness threads in an editor: the agent's side of the [Agent Client Protocol](https://agentclientprotocol.com),
//! version 1.
//!
//! An [`AcpServer`] serves the threads of a [`Host`] to one client over a pair of streams, which are stdin and
//! stdout when an editor starts the program.
//!
//! | the client | here |
//! |---|---|
//! | `session/new`, `session/load`, `session/resume`, `session/list` | [`Host::begin`], [`Host::load`], [`Host::list`] |
//! | `session/prompt` with text, images, resources and links | one message of the user; `/name` and `/skill:name` are expanded |
//! | `session/cancel`, `$/cancel_request` | the run is aborted; the prompt is answered with `cancelled` |
//! | `session/set_mode` | the modes of [`Opened::mode`] |
//! | `session/close`; the end of the stream | runs are aborted, the thread is closed by [`Host::close`] |
//!
//! | thread | message to the client |
//! |---|---|
//! | deltas of answers and reasoning | `agent_message_chunk`, `agent_thought_chunk` |
//! | tool calls: requested, started, progress, finished | `tool_call`, `tool_call_update` |
//! | held call | `session/request_permission`; "always" applies to the tool until the session is closed |
//! | work items of the model | `plan` |
//! | templates and skills | `available_commands_update` |
//! | changed mode | `current_mode_update` |
//! | usage of the context window | `usage_update` |
//!
//! `docs/cookbook/editors.md` lists the response to a prompt for each end of a run.
//!
//! Two capabilities of clients are not used. *File system*: the tools of a descriptor define which files an agent may
//! touch; access through the client would bypass their limits. *Terminals*: commands run in process groups with
//! limits on their time and output.
//!
//! # Bounds
//!
//! | what | bound | at the bound |
//! |---|---|---|
//! | size of one client message | [`Limits::message`] | skipped, with an error response |
//! | open sessions | [`Limits::sessions`] | rejected |
//! | updates waiting to be written | [`Limits::waiting`] | sent later, from the transcript |
//!
//! ```
//! use std::sync::Arc;
//!
//! use harness::core::message::AssistantMessage;
//! use harness::core::port::{Deltas, Model, ModelFault, ModelRequest};
//! use harness::runtime::{ModelChoice, Runtime, ThreadConfig};
//! use harness::system::{SystemClock, SystemIds};
//! use harness_acp::{AcpServer, Threads};
//!
//! struct Echo;
//!
//! impl Model for Echo {
//!     async fn step(&self, request: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
//!         let said = request.view.last().map(|message| message.joined_text()).unwrap_or_default();
//!         Ok(AssistantMessage::text(said))
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let config = ThreadConfig::new(ModelChoice::new(Echo), Arc::new(SystemClock::new()));
//! let ids = Arc::new(SystemIds::new());
//! let runtime = Runtime::builder(config, ids.clone()).build();
//!
//! let client = br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;
//! let mut told = Vec::new();
//! AcpServer::new(Threads::new(runtime, ids)).serve(&client[..], &mut told).await?;
//! assert!(String::from_utf8(told)?.contains(r#""protocolVersion":1"#));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod call;
mod commands;
mod content;
mod error;
mod host;
#[cfg(feature = "mcp")]
pub mod mcp;
mod plan;
mod server;
mod session;
mod state;
mod stop;
mod transport;

pub use error::{AcpError, HostFault};
pub use host::{EditorApprover, Host, Opened, SessionHead, SessionSetup, Threads, WishedServer};
pub use server::{AcpServer, Limits};
