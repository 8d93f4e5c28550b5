//! The model port over an execution adapter.

use std::fmt;
use std::sync::Arc;

use harness_core::ThreadId;
use harness_core::message::AssistantMessage;
use harness_core::port::{DeltaPart, Deltas, Ids, Model, ModelFault, ModelFaultCode, ModelRequest};

use super::answer::answer;
use super::gathered::Gathering;
use super::request::execution_request;
use crate::execution::{DynExecutionAdapter, ExecutionAdapter, ExecutionCx, ExecutionTool};

/// A backend that runs whole turns, as a model of one step. A run with it uses the same loop,
/// events, sessions, limits and reports as any other.
///
/// - *Input*: the agent's instructions, the last message of the user, and the earlier messages. If
///   the backend left a continuation in the conversation ([`BackendNote`](super::BackendNote)), it
///   is passed instead of the messages that the backend already has.
/// - *Progress*: text and reasoning become deltas. Calls of the backend's own tools become
///   [`DeltaPart::BackendToolStarted`] and [`DeltaPart::BackendToolFinished`] and are kept in the
///   message.
/// - *Outcome*: a question ends the turn as `needs_clarification`, a request for approval as
///   `awaiting_approval`, a deferral as `deferred` with `backend_deferred`. A failure, an empty
///   answer and an unsupported request are errors of the step, with the partial answer and the
///   reason.
/// - *Tools*: the backend uses its own. The agent's tools and handoffs run in this process and are
///   not offered to it; a [`DeltaPart::Note`] reports this. [`tools`](Self::tools) allows the
///   backend's own tools by name.
/// - *Cancellation* reaches the backend, and so does a dropped future. A request is never repeated
///   automatically, because the backend's actions may not be safe to repeat.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_adapters::execution::{
///     BackendModel, ExecutionAdapter, ExecutionCapabilities, ExecutionCx, ExecutionRequest,
///     ExecutionResult,
/// };
/// use harness_core::port::Ids;
///
/// # struct Numbered;
/// # impl Ids for Numbered {
/// #     fn run_id(&self) -> harness_core::RunId {
/// #         "1".into()
/// #     }
/// # }
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
///     async fn execute(&self, request: ExecutionRequest, _: ExecutionCx<'_>) -> ExecutionResult {
///         ExecutionResult::completed(self.backend_id(), request.message.text)
///     }
/// }
///
/// let model = BackendModel::new(Parrot, Arc::new(Numbered)).thread("t-1");
/// ```
#[derive(Clone)]
pub struct BackendModel {
    adapter: Arc<dyn DynExecutionAdapter>,
    ids: Arc<dyn Ids>,
    thread: Option<ThreadId>,
    tools: Vec<ExecutionTool>,
}

impl BackendModel {
    /// A backend as a model. `ids` name its turns, by which a worker knows a request again.
    pub fn new(adapter: impl ExecutionAdapter + 'static, ids: Arc<dyn Ids>) -> Self {
        Self::shared(Arc::new(adapter), ids)
    }

    /// Creates the model from a shared adapter.
    pub fn shared(adapter: Arc<dyn DynExecutionAdapter>, ids: Arc<dyn Ids>) -> Self {
        Self { adapter, ids, thread: None, tools: Vec::new() }
    }

    /// The thread that requests name. Default none: the turn stands for it.
    #[must_use]
    pub fn thread(mut self, thread: impl Into<ThreadId>) -> Self {
        self.thread = Some(thread.into());
        self
    }

    /// Tools of the backend's own that it may use, by the names that it gives them. Default none named: what
    /// it may use then is the adapter's matter.
    #[must_use]
    pub fn tools<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.tools = names.into_iter().map(|name| ExecutionTool::new(name)).collect();
        self
    }
}

impl fmt::Debug for BackendModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackendModel").field("backend", &self.adapter.id()).finish_non_exhaustive()
    }
}

impl Model for BackendModel {
    async fn step(&self, request: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        let backend = self.adapter.id();
        let turn = self.ids.run_id();
        let thread = self.thread.as_ref().map(ThreadId::as_str);
        let mut asked = execution_request(&request, backend, turn.as_str(), thread);
        if !self.tools.is_empty() {
            asked.request.tools = Some(self.tools.clone());
        }
        for note in notes(&request, backend, asked.left_out) {
            deltas.part(DeltaPart::Note(note));
        }
        let gathering = Gathering::new(deltas);
        let cx = ExecutionCx::new(&gathering, &request.cancel);
        let result = self.adapter.execute_boxed(asked.request, cx).await;
        if result.output.is_some() {
            for reason in result.degradation.iter().flatten() {
                deltas.part(DeltaPart::Note(format!("degraded: {}", reason.message)));
            }
        }
        match answer(&result, gathering.into_gathered()) {
            Err(mut fault) if request.cancel.is_cancelled() => {
                (fault.code, fault.transient) = (ModelFaultCode::Cancelled, false);
                Err(fault)
            }
            done => done,
        }
    }
}

/// Notes about content and tools that the backend does not receive.
fn notes(request: &ModelRequest, backend: &str, left_out: usize) -> Vec<String> {
    let mut notes = Vec::new();
    let tools: Vec<_> = request.tools().iter().map(|tool| tool.name.as_str()).collect();
    if !tools.is_empty() {
        notes.push(format!("the backend `{backend}` does not have the tools {}", tools.join(", ")));
    }
    if left_out > 0 {
        notes.push(format!("the backend `{backend}` does not receive the oldest messages ({left_out})"));
    }
    notes
}
