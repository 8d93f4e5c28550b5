//! Long-lived threads: conversations that take messages while they work.
//!
//! A [`Runtime`] holds threads by name. A [`Thread`] is prompted, steered, interrupted, followed and
//! reconfigured from any task; its runs go through core's one loop.
//!
//! | to | use |
//! |---|---|
//! | send a message and wait for its result | [`Thread::prompt`], [`Thread::resume`] |
//! | send a message to a thread that may be busy | [`Thread::execute`], [`Thread::steer`], [`Thread::follow_up`], [`Thread::interrupt`] |
//! | inspect and change the queue | [`Thread::queue`], [`Thread::edit`], [`Thread::reorder`], [`Thread::cancel`] |
//! | stop it | [`Thread::abort`] |
//! | follow it | [`Thread::events`], [`Thread::text`], [`Thread::reasoning`], [`Thread::items`] |
//! | change it for the next run | [`Thread::set_model`] and its siblings, [`Thread::configure`] |
//! | decide held calls | [`Approvals`] |
//! | serve threads, of this process or of a durable engine | [`ThreadService`] |
//! | drive a run elsewhere | [`Runtime::run_parts`] |
//! | look at it | [`Thread::status`], [`Thread::snapshot`], [`Thread::messages`], [`Thread::preview_request`] |
//!
//! Parts that can be used without threads:
//!
//! | module | what it has |
//! |---|---|
//! | [`skill`] | skills: instructions that a model loads when a task asks for them |
//! | [`template`] | prompt templates, and the commands `/name` and `/skill:name` |
//!
//! `docs/reference/delivery.md` defines when a message is delivered.
//!
//! The crate knows no network, and files only through the
//! [`Workspace`](harness_host::Workspace) port.
//!
//! ```
//! use std::sync::Arc;
//!
//! use harness_core::Time;
//! use harness_core::message::AssistantMessage;
//! use harness_core::port::{Ids, Model, Deltas, ModelFault, ModelRequest};
//! use harness_core::testing::VirtualClock;
//! use harness_runtime::{ModelChoice, Runtime, StartAt, ThreadConfig};
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
//! struct OneRun;
//!
//! impl Ids for OneRun {
//!     fn run_id(&self) -> harness_core::RunId {
//!         "run-1".into()
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let clock = Arc::new(VirtualClock::still(Time(0)));
//! let config = ThreadConfig::new(ModelChoice::new(Echo), clock);
//! let runtime = Runtime::builder(config, Arc::new(OneRun)).build();
//!
//! let thread = runtime.thread("support-17");
//! let report = thread.prompt("Hello").await?;
//! assert_eq!(report.answer(), "Hello");
//! assert_eq!(thread.messages().await?.len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod agent;
mod answer_tool;
mod approvals;
mod config;
mod error;
mod markdown;
mod model;
mod parts;
mod prompt;
mod queue;
mod report;
mod runtime;
mod service;
mod sessions;
pub mod skill;
mod stream;
pub mod template;
mod thread;

pub use approvals::Approvals;
pub use config::{
    BuildPrompt, ConvertView, Instructions, Listen, ModelChoice, NewControl, PrepareRun, PromptInfo,
    RunSetup, SeeRestored, ThreadConfig,
};
pub use error::{ErrorClass, RuntimeError};
pub use markdown::{FileProblem, FileProblemKind, MarkdownFault};
pub use parts::RunParts;
pub use prompt::{MessageOptions, Prompt, ResumeFrom};
pub use queue::{DeliveryMode, DeliveryRules, DeliveryState, LateSteering, Queue, QueueEntry, QueueMode};
pub use report::{NoAnswer, Report, Typed};
pub use runtime::{Limits, Runtime, RuntimeBuilder};
pub use service::{
    ApprovalDecision, DynThreadService, PendingApproval, ThreadAttributes, ThreadInfo, ThreadMessage,
    ThreadService, ThreadSummary,
};
pub use sessions::{DynSessions, Sessions};
pub use stream::{
    Item, ItemContent, ItemStream, Items, PartialBlock, QueueChange, ReasoningStream, StartAt, Stream,
    StreamItem, TextStream, ThreadEvent,
};
pub use thread::{Response, Snapshot, Status, Stopping, Thread, TypedResponse};
