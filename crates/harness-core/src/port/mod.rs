//! Ports: small traits through which a run reaches the outside.
//!
//! Each asynchronous port is a trait with plain `async fn` methods, and has an object-safe twin (`Dyn…`) that is
//! implemented for every implementor. The driver uses the twin, so that no type parameter leaks into user code; the cost is
//! one boxed future per operation.
//!
//! ```
//! use std::sync::Arc;
//!
//! use harness_core::Fault;
//! use harness_core::port::{
//!     AgentConfig, CheckedAs, Checked, CompactAsk, CompactReason, Compaction, CompactionLevel, CompactionNote, Compactor,
//!     Loaded, Measured, ModelFault, ModelFaultCode, ModelRequest, OpenCall, Overflow, PreparedAgent, Pressure, Progress,
//!     RunProgress, Secret, SingleAgent, ThinkingLevel, TornTail, TranscriptRepair, Used,
//! };
//! use harness_core::tool::{RetryClass, ToolDef};
//! use harness_core::transcript::{Plan, Span, Transcript, View};
//!
//! let mut config = AgentConfig::new("clerk", "Answer in one sentence.");
//! config.model = Some("large-model".into());
//! let agents = SingleAgent::of(config);
//!
//! // A request to a model, and its error.
//! let prepared = PreparedAgent::new("main", "Be brief.", [ToolDef::new("search", "Searches the archive")]);
//! let mut request = ModelRequest::new(View::whole(Transcript::default().prefix()), Arc::new(prepared));
//! request.progress = Progress::start();
//! request.thinking = ThinkingLevel::parse("high");
//! request.key = Some(Secret::new("sk-0123\n"));
//! assert_eq!(format!("{:?}", request.key), "Some(Secret(redacted))");
//! let fault = ModelFault::new(ModelFaultCode::RateLimited, "too many requests").transient();
//! let fault = ModelFault { http_status: Some(429), ..fault };
//! assert_eq!((fault.code.as_str(), fault.transient), ("rate_limited", true));
//!
//! /// Keeps the last twenty messages when the provider rejects the request as too long.
//! struct Short;
//!
//! impl Compactor for Short {
//!     async fn compact(&self, ask: CompactAsk) -> Result<Compaction, Fault> {
//!         let len = ask.cx.log.len();
//!         if ask.reason != CompactReason::Overflow || len <= 20 {
//!             return Ok(Compaction::unchanged());
//!         }
//!         let mut compaction = Compaction::planned(Plan { spans: Arc::new([Span::Kept(len - 20..len)]) });
//!         let mut note = CompactionNote::default();
//!         note.tokens_before = ask.measured.map_or(0, |Measured { usage, .. }| usage.all_tokens());
//!         note.level = CompactionLevel::Destructive;
//!         compaction.note = Some(note);
//!         Ok(compaction)
//!     }
//! }
//!
//! fn is_full(compaction: &Compaction) -> bool {
//!     let over = |Pressure { estimate, blocking, .. }: &Pressure| estimate >= blocking;
//!     let exceeds = |Overflow { tokens, ceiling, .. }: &Overflow| tokens > ceiling;
//!     compaction.pressure.as_ref().is_some_and(over) || compaction.overflow.as_ref().is_some_and(exceeds)
//! }
//!
//! // What a session reports when it is loaded.
//! let mut loaded = Loaded::default();
//! loaded.open_calls.push(OpenCall::new("c1".into(), 1, RetryClass::Unsafe, None));
//! loaded.torn_tail = Some(TornTail { line: 812, bytes: 37 });
//! loaded.descriptor = Some("v1".into());
//! assert!(loaded.check_descriptor(Some("v2")).is_err());
//! let lines: Vec<String> = loaded.repairs.iter().map(TranscriptRepair::to_string).collect();
//!
//! let progress = RunProgress { turn: 2, max_turns: 5, ..RunProgress::default() };
//! let fullest = progress.used.iter().max_by_key(|Used { used, most, .. }| used * 100 / (*most).max(1));
//! assert!(Checked { check: "tests-ran".into(), verdict: CheckedAs::Accepted, why: None }.waiver().is_none());
//! # let _ = (agents, Short, is_full, lines, fullest);
//! ```

mod agent;
mod approver;
mod checkpoint;
mod context;
mod control;
mod ledger;
mod model;
mod proposed;
mod session;
mod state;
mod steering;

pub use crate::base::BoxFuture;
pub use crate::base::clock::{Clock, Ids};
pub use crate::outcome::ledger::Ledger;
pub use agent::{AgentConfig, AgentSource, DynAgentSource, PrepareAsk, PreparedAgent, SingleAgent};
pub use approver::{ApprovalAsk, Approver, Decision, DynApprover, Prepared};
pub use checkpoint::{Checkpoint, CheckpointStore, DynCheckpointStore};
pub use context::{
    AppendSource, CompactAsk, CompactReason, Compaction, CompactionLevel, CompactionNote, Compactor,
    ContextPipeline, DynCompactor, DynContextPipeline, Measured, Overflow, Pressure, ViewCx,
};
pub use control::{Checked, CheckedAs, Control, Review, RunNext, RunProgress, RunStop, TurnEnd, Used};
pub(crate) use ledger::{answer_tokens, message_tokens, prepared_tokens, request_tokens};
pub use model::{
    DeltaPart, Deltas, DynModel, Model, ModelFault, ModelFaultCode, ModelRequest, Progress, ProviderEvent,
    Secret, ThinkingLevel,
};
pub use proposed::ProposedCall;
pub use session::{
    Durability, DynSession, Entry, EntryHead, Loaded, OpenCall, Session, SessionError, TornTail,
    TranscriptRepair,
};
pub use state::{RunBeginning, Stateful};
pub use steering::{DrainPoint, Steering};
