//! What a turn showed to its ports, in the vector's form.

use std::sync::Arc;

use harness_core::Time;
use harness_core::machine::Origin;
use harness_core::message::{AssistantMessage, ModelOutput};
use harness_core::port::{ModelRequest, ToolCx, ToolScope};
use serde_json::{Map, Value, json};

use super::convert::Done;

/// An object of the keys that have a value.
fn object<'a>(entries: impl IntoIterator<Item = (&'a str, Option<Value>)>) -> Value {
    let entries = entries.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    Value::Object(entries.collect::<Map<_, _>>())
}

fn value(json: &harness_core::Json) -> Done<Value> {
    json.to().map_err(|e| e.to_string())
}

/// One request to the model. `begin` is the number of messages before the turn's own.
pub(super) fn model_input(request: &ModelRequest, begin: usize, budgeted: bool) -> Value {
    let progress = &request.progress;
    let tools: Vec<_> = request.tools().iter().map(|def| json!(def.name.as_str())).collect();
    let left = budgeted.then(|| progress.left.cost.to_string().parse::<f64>().ok()).flatten();
    object([
        ("iteration", Some(json!(progress.iteration))),
        ("toolCallCount", Some(json!(progress.tool_calls))),
        ("elapsedMs", Some(json!(progress.elapsed.0))),
        ("remainingBudget", left.map(|left| json!(left))),
        ("availableTools", Some(Value::Array(tools))),
        ("transcript", Some(transcript(request, begin))),
    ])
}

/// The turn's steps so far in the short form of the source.
fn transcript(request: &ModelRequest, begin: usize) -> Value {
    let mut messages = Vec::new();
    request.view.for_each(|message| messages.push(Arc::clone(message)));
    let mut iteration = 0;
    let mut steps = Vec::new();
    for message in messages.iter().skip(begin) {
        if let Some(answer) = message.as_assistant() {
            iteration += 1;
            steps.push(object([
                ("type", Some(json!("assistant_step"))),
                ("iteration", Some(json!(iteration))),
                ("outputType", Some(json!(answer.output_type()))),
                ("text", step_text(&answer.output(), answer).map(Value::String)),
            ]));
        } else if let Some(result) = message.as_tool_result() {
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
