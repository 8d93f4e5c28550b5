//! Conversion of an execution result to a message, or to the error of a step.

use harness_core::JsonObject;
use std::sync::Arc;

use harness_core::message::{ApprovalRequest, AssistantMessage, Block, FinishReason, Usage};
use harness_core::port::{ModelFault, ModelFaultCode};

use super::gathered::Gathered;
use super::note::BackendNote;
use crate::execution::{ExecutionErrorCode, ExecutionResult, ExecutionStatus};

/// Value of `protocol` in messages of a backend.
const PROTOCOL: &str = "execution";

/// Maximum characters of standard error in an error message, taken from its end.
const STDERR: usize = 500;

/// Converts a result to the message of a step. Deferred, refused and unsupported results are never
/// reported as answers.
pub(super) fn answer(result: &ExecutionResult, gathered: Gathered) -> Result<AssistantMessage, ModelFault> {
    match result.status {
        ExecutionStatus::Completed => completed(result, &gathered),
        ExecutionStatus::NeedsClarification => {
            let question = said(result, &gathered);
            Ok(dressed(AssistantMessage::clarification(&question), result, &gathered))
        }
        ExecutionStatus::AwaitingApproval => {
            Ok(dressed(AssistantMessage::approval_request(&wish(result, &gathered)), result, &gathered))
        }
        ExecutionStatus::Deferred => {
            let told = told(result).unwrap_or_else(|| {
                format!("the backend `{}` stopped early and can be resumed", result.backend_id)
            });
            Err(broken_off(ModelFault::new(ModelFaultCode::Deferred, told), result, &gathered))
        }
        ExecutionStatus::Unsupported => {
            let why = told(result).unwrap_or_else(|| "it gives no reason".to_owned());
            let told = format!("the backend `{}` does not support the request: {why}", result.backend_id);
            Err(ModelFault::new(ModelFaultCode::Configuration, told))
        }
        ExecutionStatus::Failed => Err(failed(result, &gathered)),
    }
}

/// Converts a completed result. An empty answer is an error, not an invalid output: the turn would
/// repeat the request, and the backend's actions may not be safe to repeat.
fn completed(result: &ExecutionResult, gathered: &Gathered) -> Result<AssistantMessage, ModelFault> {
    let text = said(result, gathered);
    if text.trim().is_empty() {
        let told = format!("the backend `{}` gave an empty answer", result.backend_id);
        return Err(broken_off(ModelFault::new(ModelFaultCode::Protocol, told), result, gathered));
    }
    let mut message = dressed(AssistantMessage::text(text), result, gathered);
    if was_cut(result) {
        message.stop_reason = FinishReason::Length;
    }
    Ok(message)
}

/// The text of the answer: the result's own, its data when it has no text, else what was streamed.
fn said(result: &ExecutionResult, gathered: &Gathered) -> String {
    let output = result.output.as_ref();
    let text = result.text();
    if !text.is_empty() {
        return text.to_owned();
    }
    let data = output.and_then(|output| output.structured.as_ref()).map(|data| data.text().to_owned());
    data.unwrap_or_else(|| gathered.text.clone())
}

/// Whether the trace says that the token limit cut the answer.
fn was_cut(result: &ExecutionResult) -> bool {
    let events = result.trace.iter().flat_map(|trace| trace.events.iter().flatten());
    events.filter_map(|event| event.data.as_ref()?.entries().ok()).flatten().any(|(key, value)| {
        key == "finishReason" && value.to::<String>().is_ok_and(|reason| reason == "length")
    })
}

fn wish(result: &ExecutionResult, gathered: &Gathered) -> ApprovalRequest {
    let asked = result.approval_request.clone().unwrap_or_default();
    let text = said(result, gathered);
    let summary = asked.reason.unwrap_or_else(|| text.clone());
    let summary = if summary.is_empty() {
        format!("the backend `{}` waits for an approval", result.backend_id)
    } else {
        summary
    };
    let mut wish = ApprovalRequest::new(asked.approval_key.unwrap_or_default(), "backend", summary);
    wish.details = (!text.is_empty() && text != wish.summary).then_some(text);
    wish.metadata = asked.metadata;
    wish
}

fn failed(result: &ExecutionResult, gathered: &Gathered) -> ModelFault {
    let error = result.error.as_ref();
    let code = match error.map(|error| error.code) {
        Some(ExecutionErrorCode::Timeout) => ModelFaultCode::Timeout,
        Some(ExecutionErrorCode::InvalidBackendOutput) => ModelFaultCode::Protocol,
        Some(ExecutionErrorCode::UnsupportedCapability) => ModelFaultCode::Configuration,
        Some(ExecutionErrorCode::BudgetExceeded) => ModelFaultCode::Deferred,
        Some(
            ExecutionErrorCode::BackendExecutionError
            | ExecutionErrorCode::ToolBridgeError
            | ExecutionErrorCode::Other,
        ) => ModelFaultCode::Provider,
        None => ModelFaultCode::Unknown,
    };
    let told =
        told(result).unwrap_or_else(|| format!("the backend `{}` failed without a word", result.backend_id));
    let fault = ModelFault::new(code, told);
    let retryable = error.is_some_and(|error| error.retryable == Some(true));
    broken_off(if retryable { fault.transient() } else { fault }, result, gathered)
}

/// Error with the partial answer. Without one, the message still has the backend's tool calls and
/// its continuation.
fn broken_off(fault: ModelFault, result: &ExecutionResult, gathered: &Gathered) -> ModelFault {
    let text = said(result, gathered);
    let message = if text.is_empty() { AssistantMessage::default() } else { AssistantMessage::text(text) };
    let mut partial = dressed(message, result, gathered);
    partial.stop_reason = FinishReason::Aborted;
    let nothing = partial.usage.is_none() && result.continuation.is_none() && gathered.tools.is_empty();
    if nothing && said(result, gathered).is_empty() { fault } else { fault.with_partial(partial) }
}

/// The error's message, with the end of the backend's standard error unless the message includes
/// it.
fn told(result: &ExecutionResult) -> Option<String> {
    let error = result.error.as_ref()?;
    let message = error.message.trim();
    let stderr = error.metadata.as_ref().and_then(|told| JsonObject::of(told)?.to::<String>("stderr"));
    let stderr = stderr.unwrap_or_default();
    let skipped = stderr.trim().chars().count().saturating_sub(STDERR);
    let end: String = stderr.trim().chars().skip(skipped).collect();
    let known = end.lines().last().is_none_or(|line| message.contains(line.trim()));
    match (message.is_empty(), known) {
        (true, true) => None,
        (false, true) => Some(message.to_owned()),
        (true, false) => Some(end),
        (false, false) => Some(format!("{}: {end}", message.trim_end_matches('.'))),
    }
}

/// The message with who made it, what it used, what was thought and done, and the note for the next step.
fn dressed(mut message: AssistantMessage, result: &ExecutionResult, gathered: &Gathered) -> AssistantMessage {
    let mut content: Vec<Block> = gathered.blocks().collect();
    content.append(&mut message.content);
    content.push(BackendNote::of(result, gathered.tools_left_out).block());
    message.content = content;
    let usage = || JsonObject::of(result.metadata.as_ref()?)?.to::<Usage>("usage");
    let usage = gathered.usage.clone().or_else(usage);
    message.usage = usage.map(Arc::new);
    message.protocol = Some(PROTOCOL.to_owned());
    message.provider = Some(result.backend_id.clone());
    message
}
