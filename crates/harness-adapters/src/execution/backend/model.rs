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

/// A backend that runs whole turns, as a model of one step: a run with it goes through the same loop, events,
/// sessions, limits and reports as any other.
///
/// - *What it is told*: the agent's instructions, what the user said last, and what was said before. Where the
///   backend left something to go on with in the conversation ([`BackendNote`](super::BackendNote)), that is
///   given back instead of what it knows already.
/// - *What it tells*: text and thinking become deltas, its own tools' work becomes
///   [`DeltaPart::BackendToolStarted`] and [`DeltaPart::BackendToolFinished`] and stays in the message.
/// - *How it ends*: a question ends the turn `needs_clarification`, a wish for approval `awaiting_approval`, a
///   deferral `deferred` with `backend_deferred`; a failure is a fault of the step, with what there is of an
///   answer, and so are an empty answer and a request that is not supported; they say why.
/// - *Tools*: the backend uses its own. The agent's tools and handoffs run in this process and are not
///   offered to it; a [`DeltaPart::Note`] says so. [`tools`](Self::tools) allows tools of its own by name.
/// - *Cancellation* reaches the backend, and so does a dropped future. It is never asked again by itself:
///   what it did is not known to be safe to repeat.
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

    /// The same for an adapter that others use, too.
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

/// What the backend is not told or given, for people.
fn notes(request: &ModelRequest, backend: &str, left_out: usize) -> Vec<String> {
    let mut notes = Vec::new();
    let tools: Vec<_> = request.tools().iter().map(|tool| tool.name.as_str()).collect();
    if !tools.is_empty() {
        notes.push(format!("the backend `{backend}` does not have the tools {}", tools.join(", ")));
    }
    if left_out > 0 {
        notes.push(format!("the backend `{backend}` is not told the {left_out} oldest messages"));
    }
    notes
}
