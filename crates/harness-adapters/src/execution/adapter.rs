//! Backends that run a whole turn elsewhere: a hosted API, a local command, a worker behind a relay.
//!
//! The wire names are those of the execution adapters of `@agent-assistant/harness`, so that a worker of
//! either side understands the other. Keys that this version does not know are kept and written back.

use harness_core::message::Usage;
use harness_core::{CallId, Cancel, Json, ToolName};

use super::{ExecutionCapabilities, ExecutionNegotiation, ExecutionRequest, ExecutionResult};

/// Progress of a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExecutionPart {
    /// More of the answer's text.
    Text(String),
    /// More of what the backend thinks.
    Thinking(String),
    /// The backend started one of its tools.
    ToolStarted {
        /// The backend's id of the call.
        id: CallId,
        /// The tool, as the backend names it.
        name: ToolName,
        /// Arguments of the call.
        input: Json,
    },
    /// A tool of the backend's own ended.
    ToolFinished {
        /// The backend's id of the call.
        id: CallId,
        /// Output as text, cut to a bound of the adapter.
        output: String,
        /// Whether the backend says that it failed.
        failed: bool,
    },
    /// Usage so far; the last report is the total.
    Usage(Usage),
    /// Anything else that it said, for a log: a warning, an event of an unknown type.
    Note(String),
}

/// Sink for the progress of a backend. Must not block. Slow readers may lose parts, but never the
/// result.
pub trait ExecutionSink: Send + Sync {
    /// One part.
    fn part(&self, part: ExecutionPart);
}

/// Takes nothing.
impl ExecutionSink for () {
    fn part(&self, _: ExecutionPart) {}
}

/// Context of an execution.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct ExecutionCx<'a> {
    /// Sink for the progress of the backend.
    pub sink: &'a dyn ExecutionSink,
    /// Cancellation signal: the adapter stops the backend and returns a partial result.
    pub cancel: &'a Cancel,
}

impl<'a> ExecutionCx<'a> {
    /// The two together.
    pub fn new(sink: &'a dyn ExecutionSink, cancel: &'a Cancel) -> Self {
        Self { sink, cancel }
    }
}

impl std::fmt::Debug for ExecutionCx<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExecutionCx").field("cancelled", &self.cancel.is_cancelled()).finish_non_exhaustive()
    }
}

/// A backend that runs a whole turn elsewhere.
///
/// The adapter owns translation, invocation, normalization of the output and the truth about what it can
/// do; it does not own identity, context assembly, policies or the storage of continuations.
///
/// ```
/// use harness_adapters::execution::{
///     ExecutionAdapter, ExecutionCapabilities, ExecutionCx, ExecutionPart, ExecutionRequest, ExecutionResult,
/// };
///
/// struct Parrot;
///
/// impl ExecutionAdapter for Parrot {
///     fn backend_id(&self) -> &str {
///         "parrot"
///     }
///
///     fn capabilities(&self) -> ExecutionCapabilities {
///         ExecutionCapabilities::none()
///     }
///
///     async fn execute(&self, request: ExecutionRequest, cx: ExecutionCx<'_>) -> ExecutionResult {
///         let negotiated = self.negotiate(&request);
///         if !negotiated.supported {
///             return ExecutionResult::unsupported(self.backend_id(), negotiated);
///         }
///         cx.sink.part(ExecutionPart::Text(request.message.text.clone()));
///         ExecutionResult::completed(self.backend_id(), request.message.text)
///     }
/// }
/// ```
pub trait ExecutionAdapter: Send + Sync {
    /// The backend's name in results.
    fn backend_id(&self) -> &str;

    /// Capabilities of the backend.
    fn capabilities(&self) -> ExecutionCapabilities;

    /// Whether the backend can do what `request` asks for, and what it would leave out. Does no I/O.
    ///
    /// The rules of [`ExecutionNegotiation::of`] unless the backend has its own.
    fn negotiate(&self, request: &ExecutionRequest) -> ExecutionNegotiation {
        ExecutionNegotiation::of(request, &self.capabilities())
    }

    /// Runs the turn. Negotiates first; every failure is returned as a result.
    ///
    /// Returns soon after `cx.cancel` fires, with every process of the backend stopped. Dropping
    /// the future also stops the backend, but loses the result.
    fn execute(
        &self,
        request: ExecutionRequest,
        cx: ExecutionCx<'_>,
    ) -> impl Future<Output = ExecutionResult> + Send;
}

harness_core::twin! {
    DynExecutionAdapter of ExecutionAdapter {
        async fn execute_boxed = execute(request: ExecutionRequest, cx: ExecutionCx<'a>) -> ExecutionResult;
        fn id = backend_id() -> &str;
        fn describe = capabilities() -> ExecutionCapabilities;
        fn negotiate_dyn = negotiate(request: &ExecutionRequest) -> ExecutionNegotiation;
    }
}

impl ExecutionAdapter for std::sync::Arc<dyn DynExecutionAdapter> {
    fn backend_id(&self) -> &str {
        (**self).id()
    }

    fn capabilities(&self) -> ExecutionCapabilities {
        (**self).describe()
    }

    fn negotiate(&self, request: &ExecutionRequest) -> ExecutionNegotiation {
        (**self).negotiate_dyn(request)
    }

    async fn execute(&self, request: ExecutionRequest, cx: ExecutionCx<'_>) -> ExecutionResult {
        (**self).execute_boxed(request, cx).await
    }
}
