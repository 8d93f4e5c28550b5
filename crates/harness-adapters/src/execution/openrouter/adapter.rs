//! The execution adapter over one request.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use harness_core::port::execution::{
    ContextStrategy, ExecutionError, ExecutionErrorCode, ExecutionNegotiation, ExecutionOutput,
    NegotiationCode, NegotiationReason, Severity, TraceDepth, Usefulness, Wish,
};
use harness_core::port::{
    Clock, ExecutionAdapter, ExecutionCapabilities, ExecutionCx, ExecutionPart, ExecutionRequest,
    ExecutionResult,
};
use harness_core::{Json, Millis, ModelName};

use super::direct::{BASE_URL, Broken, Direct, Reply};
use crate::chat::{Completion, usage_of};
use crate::execution::{Attempt, Negotiated, object, trimmed, user_text};
use crate::http::fault::transient;
use crate::{AdapterError, ApiKey};

const NO_KEY: &str = "OpenRouter API key is not configured.";
const NO_TEXT: &str = "OpenRouter response did not contain assistant text.";

/// Bytes of a reply without text that its result shows.
const BODY_SHOWN: usize = 64 << 10;

/// A turn without tools as one request to OpenRouter, or to any endpoint that speaks the same protocol.
///
/// It needs no stream, keeps no history and never tries again; every failure is a result. Where the source
/// loses something, this does not: an error within a reply of status 200 is told as that error, a reply
/// whose text comes in parts is read, an answer that a filter cut off is a failure, 408, 429 and a 402 for
/// work in flight are retryable, an error page keeps its status. `metadata.usage` says what was used, and
/// `metadata.truncated` that the token limit ended the answer.
///
/// - *Cancellation*: the connection is closed at once; the result is `failed` with code `other`.
/// - *Redirects* are not followed: the key must not travel to where it was not meant for.
pub struct OpenRouterExecutionAdapter {
    direct: Direct,
    clock: Arc<dyn Clock>,
}

/// Sets up an [`OpenRouterExecutionAdapter`].
#[must_use]
pub struct OpenRouterExecutionBuilder {
    key: Option<ApiKey>,
    clock: Arc<dyn Clock>,
    model: ModelName,
    base_url: String,
    timeout: Duration,
}

impl fmt::Debug for OpenRouterExecutionAdapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenRouterExecutionAdapter")
            .field("timeout", &self.direct.timeout)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for OpenRouterExecutionBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenRouterExecutionBuilder").field("model", &self.model).finish_non_exhaustive()
    }
}

impl OpenRouterExecutionBuilder {
    /// The model. Default `openai/gpt-5-mini`.
    pub fn model(mut self, model: impl Into<ModelName>) -> Self {
        self.model = model.into();
        self
    }

    /// Another base URL, or a full endpoint. Default OpenRouter's.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = url.into();
        self
    }

    /// How long the whole reply may take. Default 30 seconds.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Checks everything and makes the adapter. Nothing is sent yet.
    ///
    /// # Errors
    /// When the URL or the key cannot be used.
    pub fn build(self) -> Result<OpenRouterExecutionAdapter, AdapterError> {
        let direct = Direct::new(self.base_url, self.model, self.key, self.timeout)?;
        Ok(OpenRouterExecutionAdapter { direct, clock: self.clock })
    }
}

impl OpenRouterExecutionAdapter {
    /// The name of this backend in results.
    pub const BACKEND_ID: &str = "openrouter-api";

    /// Begins to set up an adapter. Without a key, or with an empty one, every request fails.
    pub fn builder(key: Option<ApiKey>, clock: Arc<dyn Clock>) -> OpenRouterExecutionBuilder {
        OpenRouterExecutionBuilder {
            key,
            clock,
            model: ModelName::from("openai/gpt-5-mini"),
            base_url: BASE_URL.to_owned(),
            timeout: Duration::from_secs(30),
        }
    }

    fn answered(&self, reply: Reply, attempt: Attempt<'_>, cx: ExecutionCx<'_>) -> ExecutionResult {
        match &reply.body {
            Err(fault) => self.unreadable(&reply, fault, attempt),
            Ok(body) if reply.is_success() => match self.direct.read(body) {
                Ok(completion) => self.judged(&completion, body, attempt, cx),
                Err(fault) => {
                    let error = failure(ExecutionErrorCode::InvalidBackendOutput, fault.to_string());
                    attempt.failed(error, Some(reason("too_large")))
                }
            },
            Ok(_) => self.refused(&reply, attempt),
        }
    }

    /// What a reply of status 2xx amounts to.
    fn judged(
        &self,
        answer: &Completion,
        body: &Json,
        attempt: Attempt<'_>,
        cx: ExecutionCx<'_>,
    ) -> ExecutionResult {
        let finish = answer.finish_reason.as_deref();
        let usage = answer.usage.as_ref().map(usage_of);
        if let Some(usage) = &usage {
            cx.sink.part(ExecutionPart::Usage(usage.clone()));
        }
        let usage = usage.and_then(|usage| Json::of(&usage).ok()).map(|usage| ("usage", usage));
        if let Some(reported) = &answer.error {
            let code = reported.code.as_deref().map(|code| ("code", Json::string(code)));
            let told = if reported.message.is_empty() { NO_TEXT } else { &reported.message };
            let error = failure(ExecutionErrorCode::BackendExecutionError, self.direct.shown(told))
                .retryable(transient(reported))
                .with_metadata(Some(object(code.into_iter().chain(usage))));
            return attempt.failed(error, Some(reason("reported_error")));
        }
        if matches!(finish, Some("error" | "content_filter")) {
            let filtered = finish == Some("content_filter");
            let told = if filtered {
                "OpenRouter stopped the answer: a content filter intervened."
            } else {
                "OpenRouter ended the answer with an error."
            };
            let code = if filtered {
                ExecutionErrorCode::InvalidBackendOutput
            } else {
                ExecutionErrorCode::BackendExecutionError
            };
            let error = failure(code, told).retryable(!filtered);
            return attempt.failed(error, Some(reason(finish.unwrap_or_default())));
        }
        let text = trimmed(answer.content.as_deref().unwrap_or_default());
        if text.is_empty() {
            let error = failure(ExecutionErrorCode::InvalidBackendOutput, NO_TEXT)
                .with_metadata(Some(object([("body", self.body_shown(body))])));
            return attempt.failed(error, Some(reason("missing_text")));
        }
        cx.sink.part(ExecutionPart::Text(text.to_owned()));
        let mut output = ExecutionOutput::default();
        output.text = Some(text.to_owned());
        let finish_reason = finish.map(|finish| ("finishReason", Json::string(finish)));
        let mut result = attempt.completed(output, Some(object(finish_reason)));
        let id = answer.id.as_deref().map(|id| ("responseId", Json::string(id)));
        let cut = (finish == Some("length")).then(|| ("truncated", yes()));
        let metadata: Vec<_> = id.into_iter().chain(usage).chain(cut).collect();
        result.metadata = (!metadata.is_empty()).then(|| object(metadata));
        result
    }

    /// A status other than 2xx, with a document that says why.
    fn refused(&self, reply: &Reply, attempt: Attempt<'_>) -> ExecutionResult {
        let status = || ("status", Json::of(&reply.status).unwrap_or_else(|_| Json::null()));
        let said = reply.said();
        let message = said.message.as_deref().map(|message| self.direct.shown(message));
        let wait = reply.retry_after.and_then(|wait| Json::of(&wait.0).ok());
        let metadata =
            [Some(status()), said.code.map(|code| ("code", code)), wait.map(|w| ("retryAfterMs", w))];
        let told = message.as_deref().map(|message| ("error", Json::string(message)));
        let message = message
            .clone()
            .unwrap_or_else(|| format!("OpenRouter request failed with status {}.", reply.status));
        let error = failure(ExecutionErrorCode::BackendExecutionError, message)
            .retryable(reply.retryable())
            .with_metadata(Some(object(metadata.into_iter().flatten())));
        attempt.failed(error, Some(object([status()].into_iter().chain(told))))
    }

    /// A body that is no JSON: at a good status the reply was damaged on its way, at another one the status
    /// says what happened.
    fn unreadable(&self, reply: &Reply, fault: &str, attempt: Attempt<'_>) -> ExecutionResult {
        if reply.is_success() {
            let told = format!("OpenRouter response is not valid JSON: {fault}.");
            return self.broken(failure(ExecutionErrorCode::BackendExecutionError, told), None, attempt);
        }
        let told =
            format!("OpenRouter request failed with status {} and a body that is no JSON.", reply.status);
        let status = Json::of(&reply.status).unwrap_or_else(|_| Json::null());
        let error = failure(ExecutionErrorCode::BackendExecutionError, told)
            .retryable(reply.retryable())
            .with_metadata(Some(object([("status", status.clone())])));
        attempt.failed(error, Some(object([("status", status)])))
    }

    /// A failure on the way, which another try may not meet.
    fn broken(&self, error: ExecutionError, cause: Option<&str>, attempt: Attempt<'_>) -> ExecutionResult {
        let limit = Json::of(&Millis::from(self.direct.timeout)).unwrap_or_else(|_| Json::null());
        let cause = Json::string(cause.unwrap_or(&error.message));
        attempt.failed(error.retryable(true), Some(object([("timeoutMs", limit), ("error", cause)])))
    }

    fn body_shown(&self, body: &Json) -> Json {
        let shown = self.direct.without_key(body.text());
        if shown.len() <= BODY_SHOWN {
            return Json::parse(&shown).unwrap_or_else(|_| Json::string(&shown));
        }
        let end = shown.floor_char_boundary(BODY_SHOWN);
        Json::string(&format!("{}…", shown.get(..end).unwrap_or_default()))
    }
}

fn failure(code: ExecutionErrorCode, message: impl Into<String>) -> ExecutionError {
    ExecutionError::new(code, message)
}

fn reason(text: &str) -> Json {
    object([("reason", Json::string(text))])
}

fn yes() -> Json {
    Json::of(&true).unwrap_or_else(|_| Json::null())
}

impl ExecutionAdapter for OpenRouterExecutionAdapter {
    fn backend_id(&self) -> &str {
        Self::BACKEND_ID
    }

    fn capabilities(&self) -> ExecutionCapabilities {
        let mut capabilities = ExecutionCapabilities::none()
            .with_notes(["Direct hosted API adapter", "Bounded no-tool proof slice only"]);
        capabilities.max_context_strategy = Some(ContextStrategy::Large);
        capabilities
    }

    /// The rules of this adapter, with reasons in its own words.
    fn negotiate(&self, request: &ExecutionRequest) -> ExecutionNegotiation {
        ExecutionNegotiation::from_reasons(reasons(request), self.capabilities())
    }

    async fn execute(&self, request: ExecutionRequest, cx: ExecutionCx<'_>) -> ExecutionResult {
        let negotiated = match Negotiated::of(self, &request) {
            Ok(negotiated) => negotiated,
            Err(unsupported) => return *unsupported,
        };
        if !self.direct.has_key() {
            return negotiated.refused(failure(ExecutionErrorCode::BackendExecutionError, NO_KEY));
        }
        let attempt = negotiated.start(&*self.clock).tool_calls(0);
        let user = user_text(&request);
        let system = request.instructions.system_prompt.as_str();
        let body = self.direct.body([("system", system), ("user", &user)], []);
        match self.direct.post(body, cx.cancel).await {
            Ok(reply) => self.answered(reply, attempt, cx),
            Err(Broken::Timeout) => {
                let limit = self.direct.timeout.as_millis();
                let told = format!("OpenRouter request timed out after {limit}ms.");
                let aborted = Some("This operation was aborted");
                self.broken(failure(ExecutionErrorCode::Timeout, told), aborted, attempt)
            }
            Err(Broken::Transport(told)) => {
                self.broken(failure(ExecutionErrorCode::BackendExecutionError, told), None, attempt)
            }
            Err(Broken::Cancelled) => {
                let told = "OpenRouter request was cancelled.";
                attempt.failed(failure(ExecutionErrorCode::Other, told), Some(reason("cancelled")))
            }
        }
    }
}

/// What this backend has to say to a request, in the order of the rules.
fn reasons(request: &ExecutionRequest) -> Vec<NegotiationReason> {
    let mut found = Vec::new();
    let mut say = |code, severity, text: &str| found.push(NegotiationReason::new(code, severity, text));
    let wants = request.requirements.clone().unwrap_or_default();
    if !request.tools().is_empty() {
        let text = "OpenRouter proof adapter does not support tool-bearing requests in this slice.";
        say(NegotiationCode::ToolUseUnsupported, Severity::Blocking, text);
    }
    if wants.tool_use == Some(Usefulness::Required) {
        say(NegotiationCode::ToolUseUnsupported, Severity::Blocking, "Backend does not support tool use.");
    }
    if wants.structured_tool_calls == Some(Wish::Required) {
        let text = "Structured tool calls are required but unsupported by this adapter.";
        say(NegotiationCode::StructuredToolCallsUnsupported, Severity::Blocking, text);
    }
    let wishes = [
        (
            NegotiationCode::ContinuationUnsupported,
            wants.continuation_support,
            "Structured continuation support is unavailable in this OpenRouter proof slice.",
            "Continuation support is preferred but unavailable in this OpenRouter proof slice.",
        ),
        (
            NegotiationCode::ApprovalInterruptUnsupported,
            wants.approval_interrupts,
            "Approval interrupts are required but unsupported by this adapter.",
            "Approval interrupts are preferred but unavailable in this OpenRouter proof slice.",
        ),
    ];
    for (code, wish, required, preferred) in wishes {
        match wish {
            Some(Wish::Required) => say(code, Severity::Blocking, required),
            Some(Wish::Preferred) => say(code, Severity::Warning, preferred),
            _ => {}
        }
    }
    if !request.attachments().is_empty() || wants.attachments == Some(Usefulness::Required) {
        let text = "Attachments are unsupported by this OpenRouter proof adapter.";
        say(NegotiationCode::AttachmentsUnsupported, Severity::Blocking, text);
    }
    if wants.trace_depth.is_some_and(|depth| depth > TraceDepth::Minimal) {
        let text = "Only minimal execution trace facts are available in this OpenRouter proof slice.";
        say(NegotiationCode::TraceDepthReduced, Severity::Warning, text);
    }
    found
}
