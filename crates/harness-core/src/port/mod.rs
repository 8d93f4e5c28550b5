//! The ports: small traits through which the outside is reached.
//!
//! Each asynchronous port is a native trait that implementors write with plain `async fn`, and an
//! object-safe twin (`Dyn…`, with a method of its own name) that every implementor gets for free. The
//! driver knows only the twin, so no type parameter leaks into user code; the price is one boxed future
//! per operation.

mod agent;
mod approver;
mod checkpoint;
mod context;
mod control;
mod estimate;
mod ledger;
mod model;
mod proposed;
mod secret;
mod session;
mod steering;
mod thinking;

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
pub(crate) use estimate::{answer_tokens, message_tokens, prepared_tokens, request_tokens};
pub use model::{DeltaPart, Deltas, DynModel, Model, ModelFault, ModelFaultCode, ModelRequest, Progress};
pub use proposed::ProposedCall;
pub use secret::Secret;
pub use session::{
    Durability, DynSession, Entry, EntryHead, Loaded, OpenCall, OtherDescriptor, Session, SessionError,
    TornTail, TranscriptRepair,
};
pub use steering::{DrainPoint, Steering};
pub use thinking::ThinkingLevel;
