//! From the vector's scripts to the product's types.

use std::sync::Arc;

use harness_core::message::{
    ApprovalRequest, AssistantMessage, Block, FinishReason, Invalid, ToolCall, Usage,
};
use harness_core::port::{DeltaPart, ModelFault, ModelFaultCode, Prepared};
use harness_core::testing::{ModelStep, ToolStep as ScriptedStep};
use harness_core::tool::{ToolDef, ToolOutcome, ToolStatus};
use harness_core::{Fault, FaultSource, Json, Millis, Origin};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::words::{
    self, Approval, Call, Definition, Input, Mode, Output, OutputType, Status, Step, Thrown, ToolResult,
    ToolStep,
};

pub(crate) use crate::Done;

/// The text at a key; empty when there is none.
pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The value at a key; null when there is none.
pub(crate) fn at<'a>(value: &'a Value, key: &str) -> &'a Value {
    value.get(key).unwrap_or(&Value::Null)
}

/// The list at a key; empty when there is none.
pub(crate) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// A word as the product's type of the same form.
pub(crate) fn product<T: DeserializeOwned>(word: &impl Serialize) -> Done<T> {
    Json::of(word).and_then(|json| json.to()).map_err(|e| e.to_string())
}

pub(super) fn origin(input: Input) -> Origin {
    let mut origin = Origin::default();
    origin.assistant = Some(input.assistant_id.into());
    origin.turn = Some(input.turn_id.into());
    origin.session = Some(input.session_id.into());
    origin.thread = input.thread_id.map(Into::into);
    origin.workspace = input.workspace_id.map(Arc::from);
    origin.user = input.user_id.map(Arc::from);
    origin.metadata = input.metadata;
    origin.allowed_tools = input.allowed_tool_names.map(|names| names.into_iter().map(Into::into).collect());
    origin
}

pub(crate) fn tool_def(words: &Definition) -> ToolDef {
    let mut def = ToolDef::new(&*words.name, words.description.as_deref().unwrap_or_default());
    def.input_schema.clone_from(&words.input_schema);
    def.requires_approval = words.requires_approval.unwrap_or(false);
    def.sequential = words.execution_mode != Some(Mode::Parallel);
    def.metadata.clone_from(&words.metadata);
    def
}

pub(super) fn model_step(step: Step, streams: bool) -> Done<ModelStep> {
    let made = match (step.throw, step.output) {
        (Some(Thrown { name, message }), _) => {
            let aborted = name.as_deref() == Some("AbortError");
            let code = if aborted { ModelFaultCode::Cancelled } else { ModelFaultCode::Unknown };
            ModelStep::fault(ModelFault::new(code, message))
        }
        (None, Some(output)) => ModelStep::answer(answer(output)?),
        (None, None) => return Err("a model step has an output or throws".to_owned()),
    };
    let pieces = step.deltas.into_iter().flatten().filter(|_| streams);
    Ok(made.with_deltas(pieces.map(DeltaPart::Text)).taking(Millis(step.duration_ms.unwrap_or(0))))
}

fn answer(output: Output) -> Done<AssistantMessage> {
    let reason = output.reason.unwrap_or_default();
    let mut message = match output.r#type {
        OutputType::FinalAnswer => AssistantMessage::text(output.text.unwrap_or_default()),
        OutputType::Clarification => AssistantMessage::clarification(&output.question.unwrap_or_default()),
        OutputType::Refusal => AssistantMessage::refusal(reason),
        OutputType::Invalid => {
            let mut invalid = Invalid::new(reason);
            (invalid.kind, invalid.code, invalid.raw) = (output.kind, output.code, output.raw);
            (invalid.http_status, invalid.retried_at) = (output.http_status, output.retried_at);
            AssistantMessage::invalid(&invalid)
        }
        OutputType::ApprovalRequest => {
            let request = output.request.ok_or("an approval request has a request")?;
            AssistantMessage::approval_request(&product::<ApprovalRequest>(&request)?)
        }
        OutputType::ToolRequest => calls(output.calls.unwrap_or_default(), output.text),
    };
    let metadata = output.metadata.unwrap_or_default();
    let model = metadata.get("modelId").or_else(|| metadata.get("model")).and_then(Value::as_str);
    if let Some(model) = model.filter(|model| !model.is_empty()) {
        message.model = Some(model.into());
    }
    message.usage = output.usage.map(|words| Arc::new(usage(words)));
    Ok(message)
}

fn calls(calls: Vec<Call>, said: Option<String>) -> AssistantMessage {
    let calls = calls.into_iter().map(|call| ToolCall::new(call.id, call.name, call.input));
    let mut message = AssistantMessage::calls(calls);
    message.stop_reason = FinishReason::ToolUse;
    message.content.splice(0..0, said.map(Block::text));
    message
}

fn usage(words: words::Usage) -> Usage {
    let mut made = Usage::default();
    (made.input, made.output, made.latency_ms) = (words.input_tokens, words.output_tokens, words.latency_ms);
    // A cost below nothing has no place in the product: it reads as not reported.
    match words.cost_units.and_then(|cost| cost.to_string().parse().ok()) {
        Some(cost) => made.with_cost(cost),
        None => made,
    }
}

pub(super) fn tool_step(step: ToolStep) -> Done<ScriptedStep> {
    let made = match (step.throw, step.result) {
        (Some(thrown), _) => ScriptedStep::fault(Fault::new(FaultSource::Tool, "thrown", thrown.message)),
        (None, Some(result)) => ScriptedStep::outcome(outcome(result)?),
        (None, None) => return Err("a tool step has a result or throws".to_owned()),
    };
    Ok(made.taking(Millis(step.duration_ms.unwrap_or(0))))
}

pub(crate) fn outcome(result: ToolResult) -> Done<ToolOutcome> {
    let mut outcome = ToolOutcome::default();
    outcome.status = match result.status {
        Status::Error => ToolStatus::Failed,
        Status::Success => ToolStatus::Success,
    };
    outcome.content = result.output.map(Block::text).into_iter().collect();
    outcome.structured = result.structured_output;
    outcome.error = result.error.as_ref().map(product).transpose()?;
    outcome.terminate = result.terminate == Some(true);
    outcome.usage = result.usage.map(|words| Arc::new(usage(words)));
    outcome.metadata = result.metadata;
    Ok(outcome)
}

/// Returns the scripted result of the approvals adapter.
pub(super) fn prepared(step: Approval) -> Done<Result<Prepared, Fault>> {
    if let Some(thrown) = step.throw {
        return Ok(Err(Fault::new(FaultSource::Approver, "thrown", thrown.message)));
    }
    let words::Prepared { request, continuation } = step.prepared.ok_or("an approval prepares or throws")?;
    let continuation = continuation.map(|words| Json::of(&words)).transpose().map_err(|e| e.to_string())?;
    Ok(Ok(Prepared { request: product(&request)?, continuation }))
}
