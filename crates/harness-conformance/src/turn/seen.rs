//! Calls of a turn's ports, in the vector's form.

use std::collections::HashMap;
use std::sync::Arc;

use harness_core::message::{AssistantMessage, FinishReason, Message, ModelOutput, ToolResultMessage, Usage};
use harness_core::port::ModelRequest;
use harness_core::tool::{ToolCx, ToolScope};
use harness_core::transcript::Prefix;
use harness_core::{Millis, Origin, Time};
use serde_json::{Map, Value, json};

use super::convert::Done;

/// An object of the keys that have a value.
pub(super) fn object<'a>(entries: impl IntoIterator<Item = (&'a str, Option<Value>)>) -> Value {
    let entries = entries.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    Value::Object(entries.collect::<Map<_, _>>())
}

fn value(json: &harness_core::Json) -> Done<Value> {
    json.to().map_err(|e| e.to_string())
}

/// One request to the model. `begin` is the number of messages before the turn's own.
pub(super) fn model_input(request: &ModelRequest, begin: usize, budgeted: bool) -> Value {
    let progress = &request.progress;
    let mut messages = Vec::new();
    request.view.for_each(|message| messages.push(Arc::clone(message)));
    let tools: Vec<_> = request.tools().iter().map(|def| json!(def.name.as_str())).collect();
    let left = budgeted.then(|| progress.left.cost.to_string().parse::<f64>().ok()).flatten();
    object([
        ("iteration", Some(json!(progress.iteration))),
        ("toolCallCount", Some(json!(progress.tool_calls))),
        ("elapsedMs", Some(json!(progress.elapsed.0))),
        ("remainingBudget", left.map(|left| json!(left))),
        ("availableTools", Some(Value::Array(tools))),
        ("transcript", Some(transcript(&messages, begin, request.view.prefix()))),
    ])
}

/// The turn's steps that a model is shown, in the short form of the source. A step has the iteration that it
/// has in the whole transcript, whatever of it is shown.
fn transcript(messages: &[Arc<Message>], begin: usize, log: &Prefix) -> Value {
    let mut iterations = HashMap::new();
    let mut answers = 0;
    for message in log.iter().skip(begin) {
        answers += u32::from(given(message).is_some());
        iterations.insert(Arc::as_ptr(message), answers);
    }
    let mut steps = Vec::new();
    for message in messages.iter().skip(begin) {
        let iteration = iterations.get(&Arc::as_ptr(message)).copied().unwrap_or_default();
        if let Some(answer) = given(message) {
            steps.push(object([
                ("type", Some(json!("assistant_step"))),
                ("iteration", Some(json!(iteration))),
                ("outputType", Some(json!(answer.output_type()))),
                ("text", step_text(&answer.output(), answer).map(Value::String)),
            ]));
            steps.extend(stop_step(&answer.output(), iteration));
        } else if let Some(result) = message.as_tool_result().filter(|result| was_given(result)) {
            steps.push(object([
                ("type", Some(json!("tool_result"))),
                ("iteration", Some(json!(iteration))),
                ("callId", Some(json!(result.tool_call_id.as_str()))),
                ("toolName", Some(json!(result.tool_name.as_str()))),
                ("status", Some(json!(if result.is_error { "error" } else { "success" }))),
            ]));
        }
    }
    Value::Array(steps)
}

/// The answer that a model gave: the source has no message that says that there was none.
fn given(message: &Message) -> Option<&AssistantMessage> {
    message.as_assistant().filter(|answer| {
        let marked = matches!(answer.stop_reason, FinishReason::Error | FinishReason::Aborted);
        !(marked && answer.content.is_empty())
    })
}

/// Whether a tool gave the result: the source stores none for a call that did not run or whose registry
/// threw.
fn was_given(result: &ToolResultMessage) -> bool {
    let outcome = result.outcome.as_ref().and_then(|outcome| outcome.to::<Value>().ok()).unwrap_or_default();
    !matches!(super::convert::text(&outcome, "errorCode"), "not_run" | "interrupted" | "thrown")
}

/// The step that the source adds when an answer stops the turn.
fn stop_step(output: &ModelOutput<'_>, iteration: u32) -> Option<Value> {
    match output {
        ModelOutput::Clarification { question } => {
            Some(json!({ "type": "clarification_request", "iteration": iteration, "question": question }))
        }
        ModelOutput::ApprovalRequest(request) => {
            Some(json!({ "type": "approval_request", "iteration": iteration, "requestId": request.id }))
        }
        ModelOutput::FinalAnswer
        | ModelOutput::ToolRequest
        | ModelOutput::Refusal { .. }
        | ModelOutput::Invalid(_)
        | _ => None,
    }
}

/// The state that a hook is given.
pub(super) fn hook_state(
    log: &Prefix,
    begin: usize,
    (iteration, tool_calls, elapsed): (u32, u32, Millis),
) -> Value {
    let messages: Vec<_> = log.iter().cloned().collect();
    let answers = messages.iter().skip(begin).filter_map(|message| given(message));
    json!({
        "iteration": iteration,
        "toolCallCount": tool_calls,
        "elapsedMs": elapsed.0,
        "transcript": transcript(&messages, begin, log),
        "modelCalls": answers.zip(1..).map(|(answer, n)| model_call(answer, n)).collect::<Vec<_>>(),
    })
}

fn model_call(answer: &AssistantMessage, iteration: u32) -> Value {
    let is_invalid = matches!(answer.output(), ModelOutput::Invalid(_)) && answer.output_type() == "invalid";
    let model = answer.model.as_ref().filter(|_| !is_invalid);
    object([
        ("iteration", Some(json!(iteration))),
        ("outputType", Some(json!(answer.output_type()))),
        ("modelId", model.map(|model| json!(model.as_str()))),
        ("usage", answer.usage.as_deref().map(usage)),
    ])
}

fn usage(usage: &Usage) -> Value {
    let cost = usage.total_cost().and_then(|cost| cost.to_string().parse::<f64>().ok());
    object([
        ("inputTokens", usage.input.map(|n| json!(n))),
        ("outputTokens", usage.output.map(|n| json!(n))),
        ("costUnits", cost.map(|cost| json!(cost))),
        ("latencyMs", usage.latency_ms.map(|n| json!(n))),
    ])
}

fn step_text(output: &ModelOutput<'_>, answer: &AssistantMessage) -> Option<String> {
    if answer.output_type() == ModelOutput::ToolRequest.kind() {
        return None;
    }
    Some(match output {
        ModelOutput::Clarification { question } => question.clone(),
        ModelOutput::ApprovalRequest(request) => request.summary.clone(),
        ModelOutput::Refusal { reason } => (*reason).to_owned(),
        ModelOutput::Invalid(invalid) => invalid.reason.clone(),
        ModelOutput::FinalAnswer | ModelOutput::ToolRequest | _ => answer.joined_text(),
    })
}

/// One listing of the tools.
pub(super) fn list_input(scope: &ToolScope) -> Value {
    let origin = &scope.origin;
    let allowed = scope.allowed.as_ref().map(|names| names.iter().map(|n| json!(n.as_str())).collect());
    object(ids(origin).into_iter().chain([
        ("workspaceId", origin.workspace.as_ref().map(|id| json!(**id))),
        ("userId", origin.user.as_ref().map(|id| json!(**id))),
        ("allowedToolNames", allowed.map(Value::Array)),
    ]))
}

/// One request to the approvals adapter.
pub(super) fn approval_input(origin: &Origin, request: Value) -> Value {
    object(ids(origin).into_iter().chain([("request", Some(request))]))
}

fn ids(origin: &Origin) -> [(&'static str, Option<Value>); 3] {
    [
        ("assistantId", origin.assistant.as_ref().map(|id| json!(**id))),
        ("turnId", origin.turn.as_ref().map(|id| json!(id.as_str()))),
        ("sessionId", origin.session.as_ref().map(|id| json!(id.as_str()))),
    ]
}

/// One execution of a tool.
pub(super) fn execution(cx: &ToolCx) -> Done<Value> {
    Ok(json!({
        "callId": cx.call.id.as_str(),
        "toolName": cx.call.name.as_str(),
        "input": value(&cx.call.arguments)?,
        "iteration": cx.iteration,
        "toolCallIndex": cx.index,
    }))
}

pub(super) fn clock(now: Time) -> Value {
    json!(now.0)
}
