//! Model port: one step, with deltas.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{PreparedAgent, request_tokens};
use crate::cancel::Cancel;
use crate::ids::{CallId, ToolName};
use crate::json::Json;
use crate::limits::Amount;
use crate::message::AssistantMessage;
use crate::origin::Origin;
use crate::time::{Millis, Time};
use crate::tool::ToolDef;
use crate::transcript::View;
use crate::twin;

/// Progress of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Progress {
    /// Iteration, starting at 1.
    pub iteration: u32,
    /// Tool calls so far.
    pub tool_calls: u32,
    /// Time since the start of the turn.
    pub elapsed: Millis,
    /// Rest of the budgets.
    pub left: Amount,
}

impl Progress {
    /// Progress at the start of a turn without limits.
    pub fn start() -> Self {
        Self { iteration: 1, tool_calls: 0, elapsed: Millis(0), left: Amount::UNLIMITED }
    }
}

/// Request to a model. A clone is cheap.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ModelRequest {
    /// Messages, without the instructions.
    pub view: View,
    /// Agent: instructions, tools, model name and settings.
    pub prepared: Arc<PreparedAgent>,
    /// Whether the model may call tools; false in the closing step. An adapter may still send the definitions, if its
    /// protocol requires them for earlier calls, but must forbid their use.
    pub with_tools: bool,
    /// Progress of the turn.
    pub progress: Progress,
    /// Ids and caller data of the work; empty for a request outside of a run.
    pub origin: Arc<Origin>,
    /// Time after which the response is ignored.
    pub deadline: Option<Time>,
    /// Thinking effort; `None` uses the adapter's settings.
    pub thinking: Option<ThinkingLevel>,
    /// API key for this request; `None` uses the adapter's.
    pub key: Option<Secret>,
    /// Fires when the request is cancelled: close the connection.
    pub cancel: Cancel,
}

impl ModelRequest {
    /// Creates a request for tests and direct use, without limits.
    pub fn new(view: View, prepared: Arc<PreparedAgent>) -> Self {
        Self {
            view,
            prepared,
            with_tools: true,
            progress: Progress::start(),
            origin: Arc::default(),
            deadline: None,
            thinking: None,
            key: None,
            cancel: Cancel::never(),
        }
    }

    /// Estimates its tokens, for a call whose usage stays unknown.
    pub fn estimated_tokens(&self) -> u64 {
        request_tokens(&self.view, &self.prepared, self.with_tools)
    }

    /// Returns the tools that the model may call.
    pub fn tools(&self) -> &[ToolDef] {
        if self.with_tools { &self.prepared.tools } else { &[] }
    }
}

/// Content of a delta.
///
/// ```
/// use harness_core::port::{DeltaPart, Deltas};
///
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum DeltaPart {
    /// Text.
    Text(String),
    /// Reasoning.
    Thinking(String),
    /// Start of a tool call.
    CallStarted {
        /// Number of the call in the response, starting at 0.
        index: u32,
        /// Provider's id, if any. The response has the final id: missing ids are created, and repeated ones made unique.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<CallId>,
        /// Tool.
        name: ToolName,
    },
    /// Arguments of a tool call.
    CallArguments {
        /// Number of the call in the response.
        index: u32,
        /// Text.
        text: String,
    },
    /// Start of a tool that a backend runs in its own loop, without decisions and limits of the turn.
    BackendToolStarted {
        /// Backend's call id.
        id: CallId,
        /// Backend's tool name.
        name: ToolName,
        /// Arguments.
        input: Json,
    },
    /// End of a backend's tool.
    BackendToolFinished {
        /// Backend's call id.
        id: CallId,
        /// Output, cut at a limit of the adapter.
        output: String,
        /// Whether it failed.
        failed: bool,
    },
    /// Note of a backend or its adapter for the user, such as a warning.
    Note(String),
    /// Event of the provider, as it arrived. Only on request, and never through a driver that redacts: a secret may be
    /// split between two events.
    Provider(ProviderEvent),
}

/// One event of a provider's stream, or its whole answer if it does not stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ProviderEvent {
    /// Provider's name of the event, such as `response.output_text.delta`; `None` if the protocol has none.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Content, unchanged.
    pub data: Json,
    /// Number of the item of the answer that it belongs to, starting at 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_index: Option<u32>,
    /// Number of the block of that item, starting at 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_index: Option<u32>,
}

impl ProviderEvent {
    /// Creates an event; name and numbers are read from its data: `type`, `output_index`, and `content_index` or `index`.
    ///
    /// ```
    /// use harness_core::Json;
    /// use harness_core::port::ProviderEvent;
    ///
    /// let data = Json::parse(r#"{"type":"content_block_stop","index":2}"#)?;
    /// let event = ProviderEvent::new(data);
    /// assert_eq!((event.kind.as_deref(), event.content_index), (Some("content_block_stop"), Some(2)));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn new(data: Json) -> Self {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Head {
            #[serde(rename = "type")]
            kind: Option<String>,
            output_index: Option<u32>,
            content_index: Option<u32>,
            index: Option<u32>,
        }
        let head = data.to::<Head>().unwrap_or_default();
        let content_index = head.content_index.or(head.index);
        Self { kind: head.kind, data, output_index: head.output_index, content_index }
    }
}

/// Receives the deltas of a response. Must not block. Slow readers may miss deltas, but never the final message.
pub trait Deltas: Send + Sync {
    /// Receives a delta.
    fn part(&self, part: DeltaPart);
}

crate::wire_enum! {
    /// Code of a model error.
    #[derive(Default)]
    #[non_exhaustive]
    pub enum ModelFaultCode {
        /// Missing, invalid or unauthorized API key.
        AuthFailed = "auth_failed",
        /// No credits left.
        CreditsExhausted = "credits_exhausted",
        /// Too many requests; see `retry_after`.
        RateLimited = "rate_limited",
        /// Unknown model, or not available with this key.
        ModelNotFound = "model_not_found",
        /// Request rejected by the provider.
        InvalidRequest = "invalid_request",
        /// Messages exceed the context window.
        ContextLengthExceeded = "context_length_exceeded",
        /// No response in time.
        Timeout = "timeout",
        /// Provider unreachable, or connection interrupted.
        Network = "network",
        /// Error of the provider (5xx, or in the stream).
        Provider = "provider",
        /// Response violates the protocol.
        Protocol = "protocol",
        /// Recording does not match the request.
        Recording = "recording",
        /// Invalid configuration of the adapter.
        Configuration = "configuration",
        /// Stopped by the caller: the turn ends `cancelled`.
        Cancelled = "cancelled",
        /// A backend that runs a whole turn stopped early and can continue: the turn ends `deferred`.
        Deferred = "deferred",
        /// Request exceeds a budget: the model was not called, and the turn ends `budget_reached`.
        BudgetReached = "budget_reached",
        /// Any other error, including panics.
        #[default]
        Unknown = "unknown",
    }
}

/// Error of a model call: the turn ends `runtime_error` (or `context_overflow`) with this evidence.
///
/// For an invalid response use [`AssistantMessage::marked_invalid`] instead, which counts towards the limit of invalid
/// outputs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
#[error("{message}")]
pub struct ModelFault {
    /// Code.
    pub code: ModelFaultCode,
    /// Human-readable message: what failed and what to do. Never contains a secret.
    pub message: String,
    /// Whether a retry may succeed.
    pub transient: bool,
    /// HTTP status, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    /// Delay that the provider requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Millis>,
    /// Time of the last retry, if the call was retried and the error stayed transient.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retried_at: Option<Time>,
    /// Partial response, kept in the transcript with a mark. Its calls never run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<Box<AssistantMessage>>,
    /// JSON body of an error response, without secrets. Never stored.
    #[serde(skip)]
    pub reply: Option<Json>,
}

impl ModelFault {
    /// Creates a permanent error.
    pub fn new(code: ModelFaultCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), ..Self::default() }
    }

    /// Declares that a retry may succeed.
    #[must_use]
    pub fn transient(mut self) -> Self {
        self.transient = true;
        self
    }

    /// Sets the partial response.
    #[must_use]
    pub fn with_partial(mut self, partial: AssistantMessage) -> Self {
        self.partial = Some(Box::new(partial));
        self
    }
}

/// Language model.
///
/// ```
/// use harness_core::message::AssistantMessage;
/// use harness_core::port::{Deltas, Model, ModelFault, ModelRequest};
///
/// struct Echo;
///
/// impl Model for Echo {
///     async fn step(&self, request: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
///         let text = request.view.last().map(|message| message.joined_text()).unwrap_or_default();
///         Ok(AssistantMessage::text(text))
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a model",
    note = "implement `Model` with an `async fn step`, or wrap one of the adapters of `harness-adapters`"
)]
pub trait Model: Send + Sync {
    /// Returns the next response, passing deltas as they arrive.
    ///
    /// # Cancel safety
    /// `request.cancel` fires first; the future is dropped when the turn gives up on it.
    fn step(
        &self,
        request: ModelRequest,
        deltas: &dyn Deltas,
    ) -> impl Future<Output = Result<AssistantMessage, ModelFault>> + Send;

    /// Whether it sends [`PreparedAgent::output`] to its provider for this agent. Otherwise threads ask for such an
    /// answer as the call of a tool. Default false; wrappers pass the question on.
    fn has_structured_output(&self, agent: &PreparedAgent) -> bool {
        let _ = agent;
        false
    }
}

twin! {
    DynModel of Model {
        async fn step_boxed = step(request: ModelRequest, deltas: &'a dyn Deltas) -> Result<AssistantMessage, ModelFault>;
        fn has_structured_output_dyn = has_structured_output(agent: &PreparedAgent) -> bool;
    }
}

impl Model for Arc<dyn DynModel> {
    async fn step(&self, request: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        (**self).step_boxed(request, deltas).await
    }

    fn has_structured_output(&self, agent: &PreparedAgent) -> bool {
        (**self).has_structured_output_dyn(agent)
    }
}

/// API key. It is neither printed nor stored. White space around it is removed, because key files often end in a newline.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Creates a key.
    pub fn new(key: impl AsRef<str>) -> Self {
        Self(Arc::from(key.as_ref().trim()))
    }

    /// Whether the key is blank.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the key, for use in a request only.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(redacted)")
    }
}

crate::wire_enum! {
    /// Thinking effort of a model.
    #[derive(PartialOrd, Ord)]
    #[non_exhaustive]
    pub enum ThinkingLevel {
        /// None.
        Off = "off",
        /// Minimal.
        Minimal = "minimal",
        /// Low.
        Low = "low",
        /// Medium: suits most tasks.
        Medium = "medium",
        /// High.
        High = "high",
        /// Maximum.
        XHigh = "xhigh",
    }
}
