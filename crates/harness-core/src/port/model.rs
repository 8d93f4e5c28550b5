//! The model: one step, streaming into a sink.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{PreparedAgent, Secret, ThinkingLevel};
use crate::cancel::Cancel;
use crate::ids::{CallId, ToolName};
use crate::json::Json;
use crate::limits::Amount;
use crate::message::AssistantMessage;
use crate::time::{Millis, Time};
use crate::tool::ToolDef;
use crate::transcript::View;
use crate::twin;

/// Where a turn stands when it asks a model.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::port::{ModelRequest, PreparedAgent, Progress};
/// use harness_core::transcript::{Transcript, View};
///
/// let prepared = PreparedAgent::new("main", "Be brief.", []);
/// let mut request = ModelRequest::new(View::whole(Transcript::default().prefix()), Arc::new(prepared));
/// request.progress = Progress::start();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Progress {
    /// The iteration, from 1.
    pub iteration: u32,
    /// Tool calls so far.
    pub tool_calls: u32,
    /// Time since the turn began.
    pub elapsed: Millis,
    /// What is left of the budgets.
    pub left: Amount,
}

impl Progress {
    /// The first iteration of a turn with nothing used.
    pub fn start() -> Self {
        Self { iteration: 1, tool_calls: 0, elapsed: Millis(0), left: Amount::UNLIMITED }
    }

    pub(crate) fn new(iteration: u32, tool_calls: u32, elapsed: Millis, left: Amount) -> Self {
        Self { iteration, tool_calls, elapsed, left }
    }
}

/// Everything that one model step is made from. Cheap to clone: everything in it is shared.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ModelRequest {
    /// The messages, without the instructions.
    pub view: View,
    /// The agent: instructions, tools, model name and settings.
    pub prepared: Arc<PreparedAgent>,
    /// Whether tools may be called in this step; not in the closing step. An adapter may still send the
    /// definitions, where its protocol demands them for earlier calls, but must forbid their use.
    pub with_tools: bool,
    /// Where the turn stands.
    pub progress: Progress,
    /// When an answer is of no use any more.
    pub deadline: Option<Time>,
    /// How hard to think; `None` leaves it to the adapter and its settings.
    pub thinking: Option<ThinkingLevel>,
    /// The key for this request; `None` is the one that the adapter was made with.
    pub key: Option<Secret>,
    /// Fires when the answer is not wanted any more: drop the connection then.
    pub cancel: Cancel,
}

impl ModelRequest {
    /// A request for tests and for direct use of a model, without limits.
    pub fn new(view: View, prepared: Arc<PreparedAgent>) -> Self {
        Self {
            view,
            prepared,
            with_tools: true,
            progress: Progress::start(),
            deadline: None,
            thinking: None,
            key: None,
            cancel: Cancel::never(),
        }
    }

    /// The tools that the model may call in this step.
    pub fn tools(&self) -> &[ToolDef] {
        if self.with_tools { &self.prepared.tools } else { &[] }
    }
}

/// A piece of an answer that is still coming.
///
/// ```
/// use harness_core::port::{DeltaPart, Deltas};
///
/// /// Prints an answer while it comes.
/// struct Print;
///
/// impl Deltas for Print {
///     fn part(&self, part: DeltaPart) {
///         if let DeltaPart::Text(text) = part {
///             print!("{text}");
///         }
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum DeltaPart {
    /// More text.
    Text(String),
    /// More of what the model thinks.
    Thinking(String),
    /// A call begins. `index` numbers the calls of the answer from 0.
    CallStarted {
        /// The call's number.
        index: u32,
        /// The call's id; `None` when the provider has not given one. The answer has the final one: a missing
        /// id is made, and one that the transcript already has is made unique.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<CallId>,
        /// The tool.
        name: ToolName,
    },
    /// More of a call's arguments, as text.
    CallArguments {
        /// The call's number.
        index: u32,
        /// The text.
        text: String,
    },
    /// A backend that runs its own loop has called one of its own tools: nothing that the turn decides about
    /// or counts.
    BackendToolStarted {
        /// The backend's id of the call.
        id: CallId,
        /// The tool, as the backend names it.
        name: ToolName,
        /// Its arguments.
        input: Json,
    },
    /// A tool of a backend's own ended.
    BackendToolFinished {
        /// The backend's id of the call.
        id: CallId,
        /// What came of it, cut to a bound of the adapter.
        output: String,
        /// Whether the backend says that it failed.
        failed: bool,
    },
    /// Something that a backend or its adapter has to say about the work, for people: a warning, what it
    /// leaves out.
    Note(String),
}

/// Takes the pieces of an answer as they come. Never blocks; pieces may be lost by slow readers, the
/// final message never is.
pub trait Deltas: Send + Sync {
    /// One piece.
    fn part(&self, part: DeltaPart);
}

/// Why a model gave no answer.
///
/// ```
/// use harness_core::port::{ModelFault, ModelFaultCode};
///
/// let fault = ModelFault::new(ModelFaultCode::RateLimited, "too many requests").transient().with_status(429);
/// assert_eq!((fault.code.as_str(), fault.transient), ("rate_limited", true));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModelFaultCode {
    /// The key is missing, wrong or not allowed.
    AuthFailed,
    /// The account has no money left.
    CreditsExhausted,
    /// Too many requests; see `retry_after`.
    RateLimited,
    /// The model does not exist, or not for this key.
    ModelNotFound,
    /// The provider does not accept the request.
    InvalidRequest,
    /// The messages do not fit the model's context window.
    ContextLengthExceeded,
    /// No answer in time.
    Timeout,
    /// The provider could not be reached, or the connection broke.
    Network,
    /// The provider failed (5xx, or an error in the stream).
    Provider,
    /// What came is not what the protocol promises.
    Protocol,
    /// A recording does not fit the request.
    Recording,
    /// The adapter is not set up rightly.
    Configuration,
    /// Somebody told the adapter to stop: the turn ends `cancelled`.
    Cancelled,
    /// A backend that runs a whole turn stopped before its end and can go on: the turn ends `deferred`.
    Deferred,
    /// The budget of the run has no room for the call: the model was not called.
    BudgetReached,
    /// Anything else, a panic included.
    Unknown,
}

impl ModelFaultCode {
    /// The wire name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AuthFailed => "auth_failed",
            Self::CreditsExhausted => "credits_exhausted",
            Self::RateLimited => "rate_limited",
            Self::ModelNotFound => "model_not_found",
            Self::InvalidRequest => "invalid_request",
            Self::ContextLengthExceeded => "context_length_exceeded",
            Self::Timeout => "timeout",
            Self::Network => "network",
            Self::Provider => "provider",
            Self::Protocol => "protocol",
            Self::Recording => "recording",
            Self::Configuration => "configuration",
            Self::Cancelled => "cancelled",
            Self::Deferred => "deferred",
            Self::BudgetReached => "budget_reached",
            Self::Unknown => "unknown",
        }
    }
}

/// A model step that gave no usable answer for reasons outside the model: the turn ends with
/// `runtime_error` (or `context_overflow`), its evidence is this fault.
///
/// An answer that came but is of no use is not a fault: mark it with
/// [`AssistantMessage::marked_invalid`], so that it counts against the limit of invalid outputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
#[error("{message}")]
#[non_exhaustive]
pub struct ModelFault {
    /// What sort of failure.
    pub code: ModelFaultCode,
    /// What happened and what to do, for people. Never holds a secret.
    pub message: String,
    /// Whether the same request may well work a little later.
    pub transient: bool,
    /// The HTTP status, when there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    /// How long the provider asks to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Millis>,
    /// What had arrived before the failure; kept in the transcript, marked. Its calls never run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<Box<AssistantMessage>>,
    /// What the endpoint answered instead, where that was a JSON object: its own codes and words, without any key.
    /// For a host that looks closer; it is never stored.
    #[serde(skip)]
    pub reply: Option<Json>,
}

impl ModelFault {
    /// A lasting fault; see the fields to make it more precise.
    pub fn new(code: ModelFaultCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            transient: false,
            http_status: None,
            retry_after: None,
            partial: None,
            reply: None,
        }
    }

    /// The same fault, worth another try.
    #[must_use]
    pub fn transient(mut self) -> Self {
        self.transient = true;
        self
    }

    /// The same fault with its HTTP status.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.http_status = Some(status);
        self
    }

    /// The same fault with the wait that the provider asks for.
    #[must_use]
    pub fn with_retry_after(mut self, wait: Option<Millis>) -> Self {
        self.retry_after = wait;
        self
    }

    /// The same fault with what had arrived before it.
    #[must_use]
    pub fn with_partial(mut self, partial: AssistantMessage) -> Self {
        self.partial = Some(Box::new(partial));
        self
    }

    /// The same fault with what the endpoint answered instead.
    #[must_use]
    pub fn with_reply(mut self, reply: Option<Json>) -> Self {
        self.reply = reply;
        self
    }
}

/// A language model: one step.
///
/// ```
/// use harness_core::message::AssistantMessage;
/// use harness_core::port::{Deltas, Model, ModelFault, ModelRequest};
///
/// struct Echo;
///
/// impl Model for Echo {
///     async fn step(&self, request: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
///         let said = request.view.last().map(|message| message.joined_text()).unwrap_or_default();
///         Ok(AssistantMessage::text(said))
///     }
/// }
/// ```
///
/// The future is dropped when the turn gives up on it; until then `request.cancel` tells it to stop.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a model",
    note = "implement `Model` with an `async fn step`, or wrap one of the adapters of `harness-adapters`"
)]
pub trait Model: Send + Sync {
    /// Asks for the next step, passing pieces to `deltas` as they come.
    fn step(
        &self,
        request: ModelRequest,
        deltas: &dyn Deltas,
    ) -> impl Future<Output = Result<AssistantMessage, ModelFault>> + Send;
}

twin! {
    DynModel of Model {
        async fn step_boxed = step(request: ModelRequest, deltas: &'a dyn Deltas) -> Result<AssistantMessage, ModelFault>;
    }
}

impl Model for Arc<dyn DynModel> {
    async fn step(&self, request: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        (**self).step_boxed(request, deltas).await
    }
}
