//! Execution adapters: backends that run a whole turn elsewhere.
//!
//! A backend is a hosted API, a program of this machine, a worker behind a relay: an [`ExecutionAdapter`]. The
//! wire names are those of the execution adapters of `@agent-assistant/harness`, so that a worker of either side
//! understands the other. Keys that this version does not know are kept and written back.
//!
//! - [`BackendModel`] makes any execution adapter a model, so that a run goes through the one loop.
//! - [`ModelBackend`] makes any model an execution adapter of one step, without tools.
//!
//! What all of them share is here, too: the prompt of a request ([`user_text`]) and the making of results
//! with trace and degradation ([`Negotiated`], [`Attempt`]).

mod adapter;
mod backend;
mod capabilities;
mod model_backend;
mod negotiation;
mod outcome;
mod prompt;
mod request;
mod result;

pub use adapter::{DynExecutionAdapter, ExecutionAdapter, ExecutionCx, ExecutionPart, ExecutionSink};
pub use backend::{BackendModel, BackendNote, BackendTool};
pub use capabilities::{
    ContextStrategy, ExecutionCapabilities, ExecutionRequirements, Requested, Support, ToolUse, TraceDepth,
    Usefulness,
};
pub use model_backend::ModelBackend;
pub use negotiation::{ExecutionNegotiation, NegotiationCode, NegotiationReason, Severity};
pub use outcome::{Attempt, Negotiated};
pub use prompt::user_text;
pub use request::{
    ExecutionAttachment, ExecutionBlock, ExecutionContext, ExecutionContinuation, ExecutionInstructions,
    ExecutionMessage, ExecutionRequest, ExecutionTool, ResponseStyle,
};
pub use result::{
    ExecutionApproval, ExecutionError, ExecutionErrorCode, ExecutionEvent, ExecutionEventKind,
    ExecutionOutput, ExecutionResult, ExecutionStatus, ExecutionSummary, ExecutionTrace,
};

#[cfg(feature = "local-command")]
#[cfg(feature = "local-command")]
pub(crate) use prompt::trimmed;
