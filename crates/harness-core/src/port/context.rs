//! View of a model request: memory layers and compaction.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Ledger, PreparedAgent, Progress, Stateful};
use crate::cancel::Cancel;
use crate::json::Json;
use crate::message::{Message, Usage};
use crate::origin::Origin;
use crate::outcome::{Fault, Outcome, Purpose, TotalUsage};
use crate::time::Time;
use crate::transcript::{Plan, Prefix, View};
use crate::twin;

/// Context of layers and the compactor. A clone is cheap.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ViewCx {
    /// Transcript so far.
    pub log: Prefix,
    /// Origin of the turn.
    pub origin: Arc<Origin>,
    /// Active agent; `None` before the first one is prepared.
    pub prepared: Option<Arc<PreparedAgent>>,
    /// Progress of the turn, with the rest of the budgets.
    pub progress: Progress,
    /// Time of the call.
    pub now: Time,
    /// Time after which the result is ignored.
    pub deadline: Option<Time>,
    /// Fires when the call is cancelled.
    pub cancel: Cancel,
    /// Ledger for model calls.
    pub ledger: Ledger,
}

impl ViewCx {
    /// Creates a context for tests and other drivers: no agent, no limits, not cancelled.
    pub fn new(log: Prefix, origin: Arc<Origin>, now: Time) -> Self {
        Self {
            log,
            origin,
            prepared: None,
            progress: Progress::start(),
            now,
            deadline: None,
            cancel: Cancel::never(),
            ledger: Ledger::unlimited(Purpose::Layer),
        }
    }

    /// Sets the active agent.
    #[must_use]
    pub fn with_prepared(self, prepared: Arc<PreparedAgent>) -> Self {
        Self { prepared: Some(prepared), ..self }
    }

    /// Sets the ledger for model calls.
    #[must_use]
    pub fn with_ledger(self, ledger: Ledger) -> Self {
        Self { ledger, ..self }
    }

    /// Sets the deadline and the cancellation signal.
    #[must_use]
    pub fn until(self, deadline: Option<Time>, cancel: Cancel) -> Self {
        Self { deadline, cancel, ..self }
    }
}

/// Source of messages that are about to enter the transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AppendSource {
    /// Prompt of the turn.
    Prompt,
    /// Results of tool calls.
    ToolResults,
    /// Messages injected between iterations.
    Steering,
}

/// Pipeline of memory layers. The default of each method changes nothing. Layers decide on tool calls with a
/// [`crate::decide::Gate`].
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::Fault;
/// use harness_core::message::Message;
/// use harness_core::port::{AppendSource, ContextPipeline, ViewCx};
///
/// /// Inserts the time before each prompt.
/// struct Dated;
///
/// impl ContextPipeline for Dated {
///     async fn append(
///         &self,
///         source: AppendSource,
///         mut messages: Vec<Arc<Message>>,
///         cx: &ViewCx,
///     ) -> Result<Vec<Arc<Message>>, Fault> {
///         if source == AppendSource::Prompt {
///             messages.insert(0, Arc::new(Message::user(format!("It is {}.", cx.now))));
///         }
///         Ok(messages)
///     }
/// }
/// ```
pub trait ContextPipeline: Send + Sync {
    /// Called at the start of an execution (a run, or a turn without one), and when it is resumed: existing state must be
    /// kept then.
    ///
    /// # Errors
    /// An error ends the turn with `runtime_error`.
    fn begin(&self, _cx: &ViewCx) -> impl Future<Output = Result<(), Fault>> + Send {
        async { Ok(()) }
    }

    /// Replaces messages before they are appended. Removed tool results, and those moved to another call, are restored
    /// (law 1).
    ///
    /// # Errors
    /// An error leaves the messages unchanged and is an event.
    fn append(
        &self,
        _source: AppendSource,
        messages: Vec<Arc<Message>>,
        _cx: &ViewCx,
    ) -> impl Future<Output = Result<Vec<Arc<Message>>, Fault>> + Send {
        async { Ok(messages) }
    }

    /// Returns the view of an iteration; `None` shows the whole transcript.
    ///
    /// # Errors
    /// An error shows the whole transcript and is an event.
    fn recall(&self, _cx: &ViewCx) -> impl Future<Output = Result<Option<Plan>, Fault>> + Send {
        async { Ok(None) }
    }

    /// Judges a response of the model, even one with tool calls. With `Some(guidance)` the response stays in the
    /// transcript, and the model responds again to the guidance.
    ///
    /// # Errors
    /// An error accepts the response and is an event.
    fn after_model(
        &self,
        _answer: &Arc<Message>,
        _cx: &ViewCx,
    ) -> impl Future<Output = Result<Option<String>, Fault>> + Send {
        async { Ok(None) }
    }

    /// Learns from an accepted answer, which is in the transcript.
    ///
    /// # Errors
    /// An error is an event; the turn continues.
    fn store(&self, _answer: &Arc<Message>, _cx: &ViewCx) -> impl Future<Output = Result<(), Fault>> + Send {
        async { Ok(()) }
    }

    /// Called at the end of an execution, whatever its outcome: release its state.
    ///
    /// # Errors
    /// An error is an event; the outcome does not change.
    fn complete(&self, _outcome: Outcome, _cx: &ViewCx) -> impl Future<Output = Result<(), Fault>> + Send {
        async { Ok(()) }
    }

    /// Returns the states of layers that end with the execution, for [`restore_states`](Self::restore_states). A host
    /// that runs several executions as one (the model steps of a flow) calls it just before
    /// [`complete`](Self::complete). Default: `None`, no state.
    fn save_states(&self, _origin: &Origin) -> Option<Json> {
        None
    }

    /// Restores saved states before [`begin`](Self::begin). Layers with a state are not initialized again. Default: does
    /// nothing.
    fn restore_states(&self, _origin: &Origin, _states: &Json) {}

    /// What executions at work have in this process, for drivers that continue them elsewhere. Default: `None`, no state.
    fn run_state(&self) -> Option<&dyn Stateful> {
        None
    }

    /// Returns a copy for previews, whose changes are discarded. Default: `None`, this pipeline has no state and is used
    /// itself.
    fn ahead(&self) -> Option<Arc<dyn DynContextPipeline>> {
        None
    }
}

twin! {
    DynContextPipeline of ContextPipeline {
        async fn begin_boxed = begin(cx: &'a ViewCx) -> Result<(), Fault>;
        async fn append_boxed = append(source: AppendSource, messages: Vec<Arc<Message>>, cx: &'a ViewCx) -> Result<Vec<Arc<Message>>, Fault>;
        async fn recall_boxed = recall(cx: &'a ViewCx) -> Result<Option<Plan>, Fault>;
        async fn after_model_boxed = after_model(answer: &'a Arc<Message>, cx: &'a ViewCx) -> Result<Option<String>, Fault>;
        async fn store_boxed = store(answer: &'a Arc<Message>, cx: &'a ViewCx) -> Result<(), Fault>;
        async fn complete_boxed = complete(outcome: Outcome, cx: &'a ViewCx) -> Result<(), Fault>;
        fn save_states_dyn = save_states(origin: &Origin) -> Option<Json>;
        fn restore_states_dyn = restore_states(origin: &Origin, states: &Json);
        fn run_state_dyn = run_state() -> Option<&dyn Stateful>;
        fn ahead_dyn = ahead() -> Option<Arc<dyn DynContextPipeline>>;
    }
}

/// Reason of a compaction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum CompactReason {
    /// A request is about to be sent.
    #[default]
    Request,
    /// The provider rejected the request as too long.
    Overflow,
    /// The user requested it: the trigger does not count, and the transcript itself becomes shorter.
    Requested {
        /// Instructions for the summary.
        instructions: Option<String>,
    },
}

/// Usage of one request, as its provider counted it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Measured {
    /// Length of the transcript at the request.
    pub messages: u64,
    /// View that was sent; `None` for the whole transcript.
    pub plan: Option<Plan>,
    /// Usage of this request alone.
    pub usage: Usage,
}

/// Request to a compactor.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CompactAsk {
    /// Reason.
    pub reason: CompactReason,
    /// Current view, of the layers or of an earlier compaction.
    pub view: View,
    /// Plan of the view; `None` for the whole transcript.
    pub plan: Option<Plan>,
    /// Last request that a provider counted.
    pub measured: Option<Measured>,
    /// Context.
    pub cx: ViewCx,
}

impl CompactReason {
    /// Returns the wire name.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Overflow => "overflow",
            Self::Requested { .. } => "requested",
        }
    }
}

impl CompactAsk {
    /// Creates a request before a model request, without counted usage.
    pub fn new(view: View, plan: Option<Plan>, cx: ViewCx) -> Self {
        Self { reason: CompactReason::Request, view, plan, measured: None, cx }
    }

    /// Sets the reason.
    #[must_use]
    pub fn because(self, reason: CompactReason) -> Self {
        Self { reason, ..self }
    }

    /// Sets the last request that a provider counted.
    #[must_use]
    pub fn with_measured(self, measured: Option<Measured>) -> Self {
        Self { measured, ..self }
    }
}

/// Extent of a compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CompactionLevel {
    /// No change.
    #[default]
    None,
    /// Results were cleared, collapsed or stored elsewhere.
    Optimized,
    /// Messages were summarized.
    Compressed,
    /// At least 90 % of the tokens were removed.
    Destructive,
}

/// Description of a compaction, for events, sessions and metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct CompactionNote {
    /// Tokens of the request before.
    pub tokens_before: u64,
    /// Tokens of the request after.
    pub tokens_after: u64,
    /// Target in tokens.
    pub target: u64,
    /// Number of the plan in its thread, starting at 1.
    pub plan_version: u32,
    /// Number of changed groups per action: `clear`, `collapse`, `externalize`, `summarize`, `drop`, `truncate` or
    /// `select`.
    pub actions: Vec<(String, u32)>,
    /// Extent.
    pub level: CompactionLevel,
    /// Summary, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// First unchanged message of the transcript after the shortened part.
    pub first_kept: u64,
}

/// Result of a compaction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Compaction {
    /// View to send; `None` leaves it unchanged.
    pub plan: Option<Plan>,
    /// Description of a new plan, which stays in effect for this turn and later ones, and is stored. Without it, the plan
    /// applies to this request alone.
    pub note: Option<CompactionNote>,
    /// Usage in addition to calls through the [`Ledger`], charged to the budget.
    pub usage: TotalUsage,
    /// Failed attempts. Each is an event.
    pub failed: Vec<Fault>,
    /// Pressure on the context window, reported once per crossing.
    pub pressure: Option<Pressure>,
    /// The view still exceeds the context window and must not be sent.
    pub overflow: Option<Overflow>,
}

/// Fill level of the context window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pressure {
    /// Tokens of the request.
    pub estimate: u64,
    /// Tokens from which on the view is shortened.
    pub soft: u64,
    /// Tokens from which on a request is not sent before that.
    pub blocking: u64,
    /// Tokens of the context window.
    pub window: u64,
}

/// View that exceeds the context window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Overflow {
    /// Tokens of the request.
    pub tokens: u64,
    /// Maximum tokens.
    pub ceiling: u64,
}

impl Compaction {
    /// Leaves the view unchanged.
    pub fn unchanged() -> Self {
        Self::default()
    }

    /// Creates a plan for one request.
    pub fn planned(plan: Plan) -> Self {
        Self { plan: Some(plan), ..Self::default() }
    }
}

/// Shortens the view: the only owner of compaction. Called before every request, between turns if configured, and on the
/// user's request. The [module](crate::port) has an example.
pub trait Compactor: Send + Sync {
    /// Returns the view of the next request. Model calls go through [`ViewCx::ledger`].
    ///
    /// # Errors
    /// An error leaves the view unchanged and is an event.
    fn compact(&self, ask: CompactAsk) -> impl Future<Output = Result<Compaction, Fault>> + Send;

    /// Returns a copy for previews, whose changes are discarded. Default: `None`, this compactor has no state and is used
    /// itself.
    fn ahead(&self) -> Option<Arc<dyn DynCompactor>> {
        None
    }
}

twin! {
    DynCompactor of Compactor {
        async fn compact_boxed = compact(ask: CompactAsk) -> Result<Compaction, Fault>;
        fn ahead_dyn = ahead() -> Option<Arc<dyn DynCompactor>>;
    }
}
