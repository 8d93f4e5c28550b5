//! From the vector's scripts to the product's types.

use std::sync::Arc;

use harness_core::machine::Origin;
use harness_core::message::{
    ApprovalRequest, AssistantMessage, Block, FinishReason, Invalid, ToolCall, Usage,
};
use harness_core::port::{DeltaPart, ModelFault, ModelFaultCode, Prepared, ToolDef, ToolOutcome, ToolStatus};
use harness_core::testing::{ModelStep, ToolStep};
use harness_core::{Fault, FaultSource, Json, Millis, ToolName};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::vector::Vector;

pub(crate) use crate::Done;

/// The structured outputs of all tool results, per turn, as they are written: the order of their keys
/// counts.
#[derive(Debug, Default)]
pub(super) struct Payloads(Vec<Vec<Option<Json>>>);

impl Payloads {
    pub(super) fn of(vector: &Vector) -> Done<Self> {
        #[derive(Deserialize)]
        struct Written {
            turns: Vec<Turn>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Turn {
            #[serde(default)]
            tool_results: Vec<Step>,
        }
        #[derive(Deserialize)]
        struct Step {
            result: Option<Output>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Output {
            structured_output: Option<Json>,
        }
        let written: Written = vector.parse()?;
        let outputs =
            |turn: Turn| turn.tool_results.into_iter().map(|s| s.result?.structured_output).collect();
        Ok(Self(written.turns.into_iter().map(outputs).collect()))
    }

    /// The structured output of the `step`-th tool result of the `turn`-th turn.
    pub(super) fn get(&self, turn: usize, step: usize) -> Option<Json> {
        self.0.get(turn)?.get(step)?.clone()
    }
}

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

pub(crate) fn json(value: &Value) -> Done<Json> {
    Json::of(value).map_err(|e| e.to_string())
}

fn read<T: DeserializeOwned>(value: &Value) -> Done<T> {
    T::deserialize(value).map_err(|e| format!("{value}: {e}"))
}

pub(super) fn origin(input: &Value) -> Done<Origin> {
    let shared = |key: &str| input.get(key).and_then(Value::as_str);
    let mut origin = Origin::default();
    origin.assistant = shared("assistantId").map(Arc::from);
    origin.turn = shared("turnId").map(Into::into);
    origin.session = shared("sessionId").map(Into::into);
    origin.thread = shared("threadId").map(Into::into);
    origin.workspace = shared("workspaceId").map(Arc::from);
    origin.user = shared("userId").map(Arc::from);
    origin.metadata = input.get("metadata").map(json).transpose()?;
    if let Some(allowed) = input.get("allowedToolNames") {
        let names: Vec<String> = read(allowed)?;
        origin.allowed_tools = Some(names.into_iter().map(ToolName::from).collect());
    }
    Ok(origin)
}

pub(crate) fn tool_def(definition: &Value) -> Done<ToolDef> {
    let mut def = ToolDef::new(text(definition, "name"), text(definition, "description"));
    def.input_schema = definition.get("inputSchema").map(json).transpose()?;
    def.requires_approval = definition.get("requiresApproval").and_then(Value::as_bool).unwrap_or(false);
    def.sequential = definition.get("executionMode").and_then(Value::as_str) != Some("parallel");
    def.metadata = definition.get("metadata").map(json).transpose()?;
    Ok(def)
}

fn duration(step: &Value) -> Millis {
    Millis(step.get("durationMs").and_then(Value::as_u64).unwrap_or(0))
}

/// What was thrown, as its message; nothing when nothing was.
pub(super) fn thrown(step: &Value) -> Option<String> {
    let thrown = step.get("throw")?;
    let said = [Some(thrown), thrown.get("message"), thrown.get("value")];
    let text = said.into_iter().flatten().find_map(Value::as_str).map(str::to_owned);
    Some(text.or_else(|| Some(thrown.get("value")?.to_string())).unwrap_or_default())
}

pub(super) fn model_step(step: &Value, streams: bool) -> Done<ModelStep> {
    let made = match (thrown(step), step.get("output")) {
        (Some(message), _) => {
            let aborted = step.pointer("/throw/name").and_then(Value::as_str) == Some("AbortError");
            let code = if aborted { ModelFaultCode::Cancelled } else { ModelFaultCode::Unknown };
            ModelStep::fault(ModelFault::new(code, message))
        }
        (None, Some(output)) => ModelStep::answer(answer(output)?),
        (None, None) => return Err(format!("{step}: a model step has an output or throws")),
    };
    let pieces = list(step, "deltas").iter().filter(|_| streams).filter_map(Value::as_str);
    let made = made.with_deltas(pieces.map(|piece| DeltaPart::Text(piece.to_owned())));
    Ok(made.taking(duration(step)))
}

fn answer(output: &Value) -> Done<AssistantMessage> {
    let mut message = match text(output, "type") {
        "final_answer" => AssistantMessage::text(text(output, "text")),
        "clarification" => AssistantMessage::clarification(text(output, "question")),
        "refusal" => AssistantMessage::refusal(text(output, "reason")),
        "invalid" => AssistantMessage::invalid(&read::<Invalid>(output)?),
        "approval_request" => {
            let request: ApprovalRequest = json(at(output, "request"))?.to().map_err(|e| e.to_string())?;
            AssistantMessage::approval_request(&request)
        }
        "tool_request" => calls(output)?,
        other => return Err(format!("`{other}` is no model output")),
    };
    let metadata = at(output, "metadata");
    let model = metadata.get("modelId").or_else(|| metadata.get("model")).and_then(Value::as_str);
    if let Some(model) = model.filter(|model| !model.is_empty()) {
        message.model = Some(model.into());
    }
    message.usage = output.get("usage").map(|part| Arc::new(usage(part)));
    Ok(message)
}

fn calls(output: &Value) -> Done<AssistantMessage> {
    let call =
        |call: &Value| Ok(ToolCall::new(text(call, "id"), text(call, "name"), json(at(call, "input"))?));
    let calls: Vec<ToolCall> = list(output, "calls").iter().map(call).collect::<Done<_>>()?;
    let mut message = AssistantMessage::calls(calls);
    message.stop_reason = FinishReason::ToolUse;
    if let Some(said) = output.get("text").and_then(Value::as_str) {
        message.content.insert(0, Block::text(said));
    }
    Ok(message)
}

fn usage(usage: &Value) -> Usage {
    let number = |key: &str| usage.get(key).and_then(Value::as_u64);
    let mut made = Usage::default();
    made.input = number("inputTokens");
    made.output = number("outputTokens");
    made.latency_ms = number("latencyMs");
    if let Some(cost) = usage.get("costUnits") {
        // A cost below nothing has no place in the product: it reads as not reported.
        made = cost.to_string().parse().map_or(made.clone(), |cost| made.with_cost(cost));
    }
    made
}

pub(super) fn tool_step(step: &Value, payload: Option<Json>) -> Done<ToolStep> {
    let made = match (thrown(step), step.get("result")) {
        (Some(message), _) => ToolStep::fault(Fault::new(FaultSource::Tool, "thrown", message)),
        (None, Some(result)) => ToolStep::outcome(outcome(result, payload)?),
        (None, None) => return Err(format!("{step}: a tool step has a result or throws")),
    };
    Ok(made.taking(duration(step)))
}

pub(crate) fn outcome(result: &Value, payload: Option<Json>) -> Done<ToolOutcome> {
    let mut outcome = ToolOutcome::default();
    outcome.status = if text(result, "status") == "error" { ToolStatus::Failed } else { ToolStatus::Success };
    outcome.content = result.get("output").and_then(Value::as_str).map(Block::text).into_iter().collect();
    outcome.structured = payload;
    outcome.error = match result.get("error") {
        Some(error) => Some(json(error)?.to().map_err(|e| e.to_string())?),
        None => None,
    };
    outcome.terminate = result.get("terminate") == Some(&Value::Bool(true));
    outcome.usage = result.get("usage").map(|part| Arc::new(usage(part)));
    outcome.metadata = result.get("metadata").map(json).transpose()?;
    Ok(outcome)
}

/// What the approvals adapter gives for the model's request.
pub(super) fn prepared(step: &Value) -> Done<Result<Prepared, Fault>> {
    if let Some(message) = thrown(step) {
        return Ok(Err(Fault::new(FaultSource::Approver, "thrown", message)));
    }
    let prepared = at(step, "prepared");
    let request = json(at(prepared, "request"))?.to().map_err(|e| e.to_string())?;
    let continuation = prepared.get("continuation").map(json).transpose()?;
    Ok(Ok(Prepared::new(request, continuation)))
}
