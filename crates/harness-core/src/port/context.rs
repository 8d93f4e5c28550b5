//! What shapes the view: memory layers and compaction.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Ledger, PreparedAgent, Progress};
use crate::cancel::Cancel;
use crate::json::Json;
use crate::message::{Message, Usage};
use crate::origin::Origin;
use crate::outcome::{Fault, Outcome, Purpose, TotalUsage};
use crate::time::Time;
use crate::transcript::{Plan, Prefix, View};
use crate::twin;

/// What layers and the compactor may look at. Cheap to clone: everything in it is shared.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ViewCx {
    /// The transcript so far.
    pub log: Prefix,
    /// Whose work it is: thread, run, turn, session, user.
    pub origin: Arc<Origin>,
    /// The agent at work: model, instructions, tools. `None` before the first one was prepared.
    pub prepared: Option<Arc<PreparedAgent>>,
    /// Where the turn stands, and what is left of the budgets.
    pub progress: Progress,
    /// When it is asked.
    pub now: Time,
    /// When an answer is of no use any more.
    pub deadline: Option<Time>,
    /// Fires when the answer is not wanted any more.
    pub cancel: Cancel,
    /// Where its model calls are reserved and settled.
    pub ledger: Ledger,
}

impl ViewCx {
    /// A context for tests and for drivers of your own: no agent, no limits, never cancelled.
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

    /// The same, for the agent of `prepared`.
    #[must_use]
    pub fn with_prepared(self, prepared: Arc<PreparedAgent>) -> Self {
        Self { prepared: Some(prepared), ..self }
    }

    /// The same, at another point of the turn.
    #[must_use]
    pub(crate) fn with_progress(self, progress: Progress) -> Self {
        Self { progress, ..self }
    }

    /// The same, with a ledger for its model calls.
    #[must_use]
    pub fn with_ledger(self, ledger: Ledger) -> Self {
        Self { ledger, ..self }
    }

    /// The same, with a deadline and a token that cancels.
    #[must_use]
    pub fn until(self, deadline: Option<Time>, cancel: Cancel) -> Self {
        Self { deadline, cancel, ..self }
    }
}

/// Where messages come from that are about to enter the transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AppendSource {
    /// The prompt of the turn.
    Prompt,
    /// Results of tool calls.
    ToolResults,
    /// Messages injected between iterations.
    Steering,
}

/// Memory layers, as the machines see them: one pipeline of hooks. Each hook has a default that changes
/// nothing, so an implementation writes those that it needs.
///
/// What layers decide about tool calls is a [`crate::decide::Gate`].
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::Fault;
/// use harness_core::message::Message;
/// use harness_core::port::{AppendSource, ContextPipeline, ViewCx};
///
/// /// Puts the time before each prompt.
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
    /// An execution begins (a run, or a turn that stands alone), before anything else. Asked again for an
    /// execution that is resumed; it must not lose what is there then.
    ///
    /// # Errors
    /// A fault ends the turn with `runtime_error`.
    fn begin(&self, _cx: &ViewCx) -> impl Future<Output = Result<(), Fault>> + Send {
        async { Ok(()) }
    }

    /// Sees messages before they are appended and gives those that are appended instead. A result of a tool
    /// call that is left out or changed in its call is put back as it was (law 1).
    ///
    /// # Errors
    /// A fault lets the messages pass unchanged; it is an event.
    fn append(
        &self,
        _source: AppendSource,
        messages: Vec<Arc<Message>>,
        _cx: &ViewCx,
    ) -> impl Future<Output = Result<Vec<Arc<Message>>, Fault>> + Send {
        async { Ok(messages) }
    }

    /// Gives the view of an iteration; `None` shows the whole transcript.
    ///
    /// # Errors
    /// A fault shows the whole transcript; it is an event.
    fn recall(&self, _cx: &ViewCx) -> impl Future<Output = Result<Option<Plan>, Fault>> + Send {
        async { Ok(None) }
    }

    /// Sees a model's answer before it counts, also one that calls tools. A text keeps the answer in the transcript and
    /// has the model, which reads it, answer again.
    ///
    /// # Errors
    /// A fault accepts the answer; it is an event.
    fn after_model(
        &self,
        _answer: &Arc<Message>,
        _cx: &ViewCx,
    ) -> impl Future<Output = Result<Option<String>, Fault>> + Send {
        async { Ok(None) }
    }

    /// An answer was accepted and is in the transcript: the time to learn from it.
    ///
    /// # Errors
    /// A fault is an event; the turn goes on.
    fn store(&self, _answer: &Arc<Message>, _cx: &ViewCx) -> impl Future<Output = Result<(), Fault>> + Send {
        async { Ok(()) }
    }

    /// The execution that began is over, whatever its outcome; what was held for it is let go.
    ///
    /// # Errors
    /// A fault is an event; the outcome stands.
    fn complete(&self, _outcome: Outcome, _cx: &ViewCx) -> impl Future<Output = Result<(), Fault>> + Send {
        async { Ok(()) }
    }

    /// The states of the layers that live no longer than the execution, as one value for
    /// [`restore_states`](Self::restore_states). A host that runs several executions as one (the model steps of a
    /// flow) asks for them just before [`complete`](Self::complete). Default: `None`, nothing to keep.
    fn save_states(&self, _origin: &Origin) -> Option<Json> {
        None
    }

    /// Gives an execution the states that an earlier one saved, before [`begin`](Self::begin). Layers with a state
    /// are not initialized again. Default: does nothing.
    fn restore_states(&self, _origin: &Origin, _states: &Json) {}

    /// A twin to look ahead with: it gives what this pipeline would give now, and what it is told is forgotten with
    /// it. `None`, the default, says that nothing is remembered in any case: this pipeline itself is asked.
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
        fn ahead_dyn = ahead() -> Option<Arc<dyn DynContextPipeline>>;
    }
}

/// Why a compactor is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum CompactReason {
    /// A request is about to be made.
    #[default]
    Request,
    /// A provider refused the request because it is too long.
    Overflow,
    /// Somebody asked for it: the trigger does not count, and the transcript itself is to become shorter.
    Requested {
        /// What the summary is to keep, in the words of whoever asked.
        instructions: Option<String>,
    },
}

/// What a provider counted for one request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Measured {
    /// Messages of the transcript when the request was made.
    pub messages: u64,
    /// The view that was sent; `None` is the whole transcript.
    pub plan: Option<Plan>,
    /// What this one request used; never a sum over requests.
    pub usage: Usage,
}

/// What a compactor is asked.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CompactAsk {
    /// Why.
    pub reason: CompactReason,
    /// The view so far, of the layers or of an earlier compaction.
    pub view: View,
    /// The plan behind the view: that of the layers, under the compaction in force. `None` shows the whole
    /// transcript.
    pub plan: Option<Plan>,
    /// The last request that a provider counted.
    pub measured: Option<Measured>,
    /// Everything else.
    pub cx: ViewCx,
}

impl CompactReason {
    /// The wire name.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Overflow => "overflow",
            Self::Requested { .. } => "requested",
        }
    }
}

impl CompactAsk {
    /// A question about a view, for tests and direct use: a request is about to be made, nothing was
    /// measured.
    pub fn new(view: View, plan: Option<Plan>, cx: ViewCx) -> Self {
        Self { reason: CompactReason::Request, view, plan, measured: None, cx }
    }

    /// The same, for another reason.
    #[must_use]
    pub fn because(self, reason: CompactReason) -> Self {
        Self { reason, ..self }
    }

    /// The same, with what a provider counted last.
    #[must_use]
    pub fn with_measured(self, measured: Option<Measured>) -> Self {
        Self { measured, ..self }
    }
}

/// How much a compaction took away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CompactionLevel {
    /// Nothing.
    #[default]
    None,
    /// Results were cleared, collapsed or stored elsewhere.
    Optimized,
    /// Something was summarized.
    Compressed,
    /// Nine tenths or more are gone.
    Destructive,
}

/// What a compaction did, for events, sessions and metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct CompactionNote {
    /// Tokens of the request before.
    pub tokens_before: u64,
    /// Tokens of the request after.
    pub tokens_after: u64,
    /// Tokens that were aimed at.
    pub target: u64,
    /// Numbers the plans of a thread, from 1.
    pub plan_version: u32,
    /// Groups that each rung of the ladder changed: `clear`, `collapse`, `externalize`, `summarize`, `drop`,
    /// `truncate` or `select`, and how many.
    pub actions: Vec<(String, u32)>,
    /// How much was taken away.
    pub level: CompactionLevel,
    /// The text that stands for what was summarized.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The first message of the transcript that is shown unchanged after what was shortened.
    pub first_kept: u64,
}

/// What came of a compaction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Compaction {
    /// The view to send; `None` leaves it as it is.
    pub plan: Option<Plan>,
    /// What was done, when a new plan was made: it stays in force, for this turn and later ones, until the
    /// next one is made, and the session keeps it. Without a note the plan serves this request alone.
    pub note: Option<CompactionNote>,
    /// What it used beside the calls through its [`Ledger`], which counts those itself. It is charged to the
    /// budget.
    pub usage: TotalUsage,
    /// Attempts that failed, and what was done instead. Each is an event.
    pub failed: Vec<Fault>,
    /// That the window begins to fill; told once per crossing.
    pub pressure: Option<Pressure>,
    /// The view is longer than the window even so, and must not be sent.
    pub overflow: Option<Overflow>,
}

/// How full the window is, and from where on something is done about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pressure {
    /// Tokens of the request.
    pub estimate: u64,
    /// Tokens from which on the view is made shorter.
    pub soft: u64,
    /// Tokens from which on a request is not sent before that is done.
    pub blocking: u64,
    /// Tokens of the window.
    pub window: u64,
}

/// A view that does not fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Overflow {
    /// Tokens of the request.
    pub tokens: u64,
    /// Tokens that it may have.
    pub ceiling: u64,
}

impl Compaction {
    /// Nothing was done: the view stays as it is.
    pub fn unchanged() -> Self {
        Self::default()
    }

    /// This plan, without anything to tell.
    pub fn planned(plan: Plan) -> Self {
        Self { plan: Some(plan), ..Self::default() }
    }
}

/// Makes the view shorter: the one owner of compaction. Asked before every request, between turns when that
/// is configured, and whenever somebody requests it.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::Fault;
/// use harness_core::port::{
///     CompactAsk, CompactReason, Compaction, CompactionLevel, CompactionNote, Compactor, Measured, Overflow, Pressure,
/// };
/// use harness_core::transcript::{Plan, Span};
///
/// /// Leaves all but the last twenty messages out, when the provider says that there are too many.
/// struct Short;
///
/// impl Compactor for Short {
///     async fn compact(&self, ask: CompactAsk) -> Result<Compaction, Fault> {
///         let len = ask.cx.log.len();
///         if ask.reason != CompactReason::Overflow || len <= 20 {
///             return Ok(Compaction::unchanged());
///         }
///         let mut compaction = Compaction::planned(Plan { spans: Arc::new([Span::Kept(len - 20..len)]) });
///         let tokens = ask.measured.map_or(0, |Measured { usage, .. }| usage.all_tokens());
///         let mut note = CompactionNote::default();
///         (note.tokens_before, note.level) = (tokens, CompactionLevel::Destructive);
///         compaction.note = Some(note);
///         Ok(compaction)
///     }
/// }
///
/// /// What a compactor says of the window beside its plan.
/// fn is_full(compaction: &Compaction) -> bool {
///     let over = |Pressure { estimate, blocking, .. }: &Pressure| estimate >= blocking;
///     let exceeds = |Overflow { tokens, ceiling, .. }: &Overflow| tokens > ceiling;
///     compaction.pressure.as_ref().is_some_and(over) || compaction.overflow.as_ref().is_some_and(exceeds)
/// }
/// # let _ = (Short, is_full);
/// ```
pub trait Compactor: Send + Sync {
    /// The view of the request about to be made.
    ///
    /// It may call models, through [`ViewCx::ledger`]; cancelling the ask cancels them.
    ///
    /// # Errors
    /// A fault leaves the view as it is; it is an event.
    fn compact(&self, ask: CompactAsk) -> impl Future<Output = Result<Compaction, Fault>> + Send;

    /// A twin to look ahead with: it does what this compactor would do now, and what it learns and makes is forgotten
    /// with it. `None`, the default, says that nothing is remembered in any case: this compactor itself is asked.
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
