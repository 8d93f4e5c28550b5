//! A model as a backend.

use std::sync::Arc;

use harness_core::message::{AssistantMessage, FinishReason, Message, ModelOutput};
use harness_core::port::{
    Clock, DeltaPart, Deltas, DynModel, Model, ModelFault, ModelFaultCode, ModelRequest, PreparedAgent,
};
use harness_core::transcript::{Transcript, View};
use harness_core::{Json, JsonObject};

use super::outcome::{Attempt, Negotiated};
use super::prompt::{trimmed, user_text};
use crate::execution::{
    ContextStrategy, ExecutionAdapter, ExecutionCapabilities, ExecutionCx, ExecutionError,
    ExecutionErrorCode, ExecutionOutput, ExecutionPart, ExecutionRequest, ExecutionResult, ExecutionSink,
};

/// Any model as a backend: each request is one step of it, without tools.
///
/// The system prompt is the model's instructions, everything else of the request one message
/// ([`user_text`](super::user_text)). It keeps no history and never tries again: wrap the model in
/// [`Retry`](crate::Retry) for that, and set its time limits where it is made. Every failure is a result:
///
/// | what came | code | `retryable` |
/// |---|---|---|
/// | an answer without text, a call of a tool, a refusal, a reply of another protocol | `invalid_backend_output` | no |
/// | nothing in time | `timeout` | yes |
/// | cancelled | `other` | no |
/// | any other error of the step | `backend_execution_error` | where it may pass |
///
/// `metadata` of a result has `usage`, and that of an answer `responseId`, and `truncated` when the token limit ended
/// it; that of an error has `status`, the provider's own `code`, `retryAfterMs`, and as `body` the reply in which no answer was.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_adapters::execution::{
///     ExecutionAdapter, ExecutionCx, ExecutionMessage, ExecutionRequest, ModelBackend,
/// };
/// use harness_core::Cancel;
/// use harness_core::port::{Clock, Model};
///
/// # async fn example(model: impl Model + 'static, clock: Arc<dyn Clock>) {
/// let backend = ModelBackend::new("hosted", model, clock);
/// let request = ExecutionRequest::new("a", "t1", "Be brief.", ExecutionMessage::new("m1", "Name a prime."));
/// let result = backend.execute(request, ExecutionCx::new(&(), &Cancel::never())).await;
/// println!("{}", result.text());
/// # }
/// ```
#[derive(Clone, derive_more::Debug)]
pub struct ModelBackend {
    backend_id: String,
    #[debug(skip)]
    model: Arc<dyn DynModel>,
    #[debug(skip)]
    clock: Arc<dyn Clock>,
}

impl ModelBackend {
    /// The model as a backend of this name. The clock is that of traces.
    pub fn new(backend_id: impl Into<String>, model: impl Model + 'static, clock: Arc<dyn Clock>) -> Self {
        Self { backend_id: backend_id.into(), model: Arc::new(model), clock }
    }
}

impl ExecutionAdapter for ModelBackend {
    fn backend_id(&self) -> &str {
        &self.backend_id
    }

    fn capabilities(&self) -> ExecutionCapabilities {
        let mut capabilities =
            ExecutionCapabilities::none().with_notes(["One step of a model, without tools"]);
        capabilities.max_context_strategy = Some(ContextStrategy::Large);
        capabilities
    }

    async fn execute(&self, request: ExecutionRequest, cx: ExecutionCx<'_>) -> ExecutionResult {
        let attempt = match Negotiated::of(self, &request) {
            Ok(negotiated) => negotiated.start(&*self.clock).tool_calls(0),
            Err(unsupported) => return *unsupported,
        };
        let mut asked = step(&request);
        asked.cancel = cx.cancel.clone();
        match self.model.step_boxed(asked, &SinkDeltas(cx.sink)).await {
            Ok(message) => answered(&message, attempt, cx.sink),
            Err(fault) => failed(&fault, attempt, cx.sink),
        }
    }
}

/// Builds the model request.
fn step(request: &ExecutionRequest) -> ModelRequest {
    let log: Transcript = [Arc::new(Message::user(user_text(request)))].into_iter().collect();
    let prepared =
        PreparedAgent::new(request.assistant_id.as_str(), request.instructions.system_prompt.as_str(), []);
    ModelRequest::new(View::whole(log.prefix()), Arc::new(prepared))
}

/// Passes on what a backend may tell.
struct SinkDeltas<'a>(&'a dyn ExecutionSink);

impl Deltas for SinkDeltas<'_> {
    fn part(&self, part: DeltaPart) {
        self.0.part(match part {
            DeltaPart::Text(text) => ExecutionPart::Text(text),
            DeltaPart::Thinking(text) => ExecutionPart::Thinking(text),
            DeltaPart::Note(text) => ExecutionPart::Note(text),
            DeltaPart::BackendToolStarted { id, name, input } => {
                ExecutionPart::ToolStarted { id, name, input }
            }
            DeltaPart::BackendToolFinished { id, output, failed } => {
                ExecutionPart::ToolFinished { id, output, failed }
            }
            DeltaPart::CallStarted { .. } | DeltaPart::CallArguments { .. } | _ => return,
        });
    }
}

fn answered(message: &AssistantMessage, attempt: Attempt<'_>, sink: &dyn ExecutionSink) -> ExecutionResult {
    let (told, body) = match message.output() {
        ModelOutput::FinalAnswer => match trimmed(&message.joined_text()) {
            "" => ("the answer holds no text".to_owned(), None),
            text => return completed(text, message, attempt, sink),
        },
        ModelOutput::Invalid(invalid) => (invalid.reason, invalid.raw),
        ModelOutput::Refusal { reason } => (format!("the model declined: {reason}"), None),
        other @ (ModelOutput::ToolRequest
        | ModelOutput::Clarification { .. }
        | ModelOutput::ApprovalRequest(_)
        | _) => (format!("the model gave no answer but a {}", other.kind()), None),
    };
    let data = Json::object([("reason", Json::string(message.output().kind()))]);
    let error = ExecutionError::new(ExecutionErrorCode::InvalidBackendOutput, told)
        .with_metadata(body.map(|body| Json::object([("body", body)])));
    with_usage(attempt.failed(error, Some(data)), message, sink)
}

fn completed(
    text: &str,
    message: &AssistantMessage,
    attempt: Attempt<'_>,
    sink: &dyn ExecutionSink,
) -> ExecutionResult {
    let output = ExecutionOutput { text: Some(text.to_owned()), ..ExecutionOutput::default() };
    let reason = Json::object([("finishReason", Json::string(message.stop_reason.as_str()))]);
    let mut result = attempt.completed(output, Some(reason));
    let id = message.response_id.as_deref().map(|id| ("responseId", Json::string(id)));
    let is_cut = message.stop_reason == FinishReason::Length;
    let cut = is_cut.then(|| Json::of(&true).ok()).flatten().map(|yes| ("truncated", yes));
    let metadata: Vec<_> = id.into_iter().chain(cut).collect();
    result.metadata = (!metadata.is_empty()).then(|| Json::object(metadata));
    with_usage(result, message, sink)
}

/// Converts an error of the step, with the partial answer.
fn failed(fault: &ModelFault, attempt: Attempt<'_>, sink: &dyn ExecutionSink) -> ExecutionResult {
    let code = match fault.code {
        ModelFaultCode::Timeout => ExecutionErrorCode::Timeout,
        ModelFaultCode::Protocol => ExecutionErrorCode::InvalidBackendOutput,
        ModelFaultCode::Cancelled => ExecutionErrorCode::Other,
        ModelFaultCode::AuthFailed
        | ModelFaultCode::CreditsExhausted
        | ModelFaultCode::RateLimited
        | ModelFaultCode::ModelNotFound
        | ModelFaultCode::InvalidRequest
        | ModelFaultCode::ContextLengthExceeded
        | ModelFaultCode::Network
        | ModelFaultCode::Provider
        | ModelFaultCode::Recording
        | ModelFaultCode::Configuration
        | ModelFaultCode::Deferred
        | ModelFaultCode::BudgetReached
        | ModelFaultCode::Unknown
        | _ => ExecutionErrorCode::BackendExecutionError,
    };
    let status = fault.http_status.and_then(|status| Json::of(&status).ok()).map(|status| ("status", status));
    let said = fault.reply.as_ref().and_then(|reply| JsonObject::of(reply)?.object("error"));
    let said = said.and_then(|error| error.present("code").cloned());
    let wait = fault.retry_after.and_then(|wait| Json::of(&wait.0).ok()).map(|wait| ("retryAfterMs", wait));
    let metadata: Vec<_> =
        status.iter().cloned().chain(said.map(|code| ("code", code))).chain(wait).collect();
    let error = ExecutionError::new(code, fault.message.as_str())
        .retryable(fault.transient)
        .with_metadata((!metadata.is_empty()).then(|| Json::object(metadata)));
    let data = Json::object(status.into_iter().chain([("error", Json::string(&fault.message))]));
    let mut result = attempt.failed(error, Some(data));
    let Some(partial) = &fault.partial else { return result };
    let text = partial.joined_text();
    if !text.is_empty() {
        result.output.get_or_insert_default().text = Some(text);
    }
    with_usage(result, partial, sink)
}

/// The result with what its message used.
fn with_usage(
    mut result: ExecutionResult,
    message: &AssistantMessage,
    sink: &dyn ExecutionSink,
) -> ExecutionResult {
    let Some(usage) = message.usage.as_deref() else { return result };
    sink.part(ExecutionPart::Usage(usage.clone()));
    let known = result.metadata.as_ref().and_then(JsonObject::of).unwrap_or_default();
    result.metadata = Some(known.with("usage", Some(usage)).json());
    result
}
