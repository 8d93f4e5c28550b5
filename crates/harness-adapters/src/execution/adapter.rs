//! Backends that run a whole turn elsewhere: a hosted API, a local command, a worker behind a relay.
//!
//! The wire names are those of the execution adapters of `@agent-assistant/harness`, so that a worker of
//! either side understands the other. Keys that this version does not know are kept and written back.

use harness_core::message::Usage;
use harness_core::{CallId, Cancel, Json, ToolName};

use super::{ExecutionCapabilities, ExecutionNegotiation, ExecutionRequest, ExecutionResult};

/// Something that a backend tells while it works.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExecutionPart {
    /// More of the answer's text.
    Text(String),
    /// More of what the backend thinks.
    Thinking(String),
    /// The backend runs one of its own tools.
    ToolStarted {
        /// The backend's id of the call.
        id: CallId,
        /// The tool, as the backend names it.
        name: ToolName,
        /// Its arguments.
        input: Json,
    },
    /// A tool of the backend's own ended.
    ToolFinished {
        /// The backend's id of the call.
        id: CallId,
        /// What came of it, as text, cut to a bound of the adapter.
        output: String,
        /// Whether the backend says that it failed.
        failed: bool,
    },
    /// What the backend has used so far; the last one told is the whole.
    Usage(Usage),
    /// Anything else that it said, for a log: a warning, an event of an unknown type.
    Note(String),
}

/// Takes what a backend tells while it works. Never blocks; parts may be lost by slow readers, the result
/// never is.
pub trait ExecutionSink: Send + Sync {
    /// One part.
    fn part(&self, part: ExecutionPart);
}

/// Takes nothing.
impl ExecutionSink for () {
    fn part(&self, _: ExecutionPart) {}
}

/// What an execution runs under.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct ExecutionCx<'a> {
    /// Takes what the backend tells while it works.
    pub sink: &'a dyn ExecutionSink,
    /// Fires when the result is not wanted any more: the adapter then stops the backend and answers with
    /// what there is.
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

    /// What the backend can do.
    fn capabilities(&self) -> ExecutionCapabilities;

    /// Whether the backend can do what `request` asks for, and what it would leave out. Does no I/O.
    ///
    /// The rules of [`ExecutionNegotiation::of`] unless the backend has its own.
    fn negotiate(&self, request: &ExecutionRequest) -> ExecutionNegotiation {
        ExecutionNegotiation::of(request, &self.capabilities())
    }

    /// Runs the turn. Negotiates first; every failure comes back as a result.
    ///
    /// Ends soon after `cx.cancel` fires, with nothing of the backend left running. A dropped future stops
    /// the backend, too, but then nobody learns what came of it.
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
