//! The adapters `model` and `single-shot`: one step of a chat model.

use std::sync::Arc;
use std::time::Duration;

use harness::adapters::{Retry, RetryPolicy};
use harness_core::message::{
    ApprovalRequest, AssistantMessage, Block, FinishReason, Message, ModelOutput, SystemMessage, ToolCall,
    ToolResultMessage, Usage,
};
use harness_core::port::{
    DeltaPart, Deltas, Model, ModelFault, ModelFaultCode, ModelRequest, PreparedAgent, ToolDef,
};
use harness_core::transcript::{Transcript, View};
use harness_core::{Json, ModelName};
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::{execution, vectors};
use crate::turn::convert::{Done, at, json as exact, list, text, tool_def};
use crate::turn::words::Definition;

/// The models where a vector names none.
const MODEL: &str = "anthropic/claude-sonnet-4-6";
const QUICK_MODEL: &str = "anthropic/claude-haiku-4-5";

/// One step against the server at `url`, tried twice; the model's output in the source's form.
pub(super) fn play(vector: &Value, url: &str) -> Done<Value> {
    let config = at(vector, "config");
    let mut policy = RetryPolicy::default();
    policy.attempts = 2;
    policy.jitter = false;
    if let Some(delay) = config.get("transientRetryDelayMs").and_then(Value::as_u64) {
        policy.first_wait = Duration::from_millis(delay);
    }
    let input = at(vector, "input");
    let context = at(input, "context");
    if !list(context, "blocks").is_empty() || context.get("structured").is_some_and(|data| *data != json!({}))
    {
        return Err("no message of the product is made of a context".to_owned());
    }
    let model = Retry::new(execution::chat(config, MODEL, url)?, policy);
    let request = request(input, transcript(list(input, "transcript"))?)?;
    let asked = config.get("model").and_then(Value::as_str).unwrap_or(MODEL);
    match vectors::on_a_runtime(model.step(request, &Unheard))? {
        Ok(message) => output(&message),
        Err(fault) => Ok(fault_output(&fault, asked)),
    }
}

/// One question to the server at `url`: `{text, usage?}`, or `{error}`.
pub(super) fn ask(vector: &Value, url: &str) -> Done<Value> {
    let model = execution::chat(at(vector, "config"), QUICK_MODEL, url)?;
    let input = at(vector, "input");
    let request = request(input, history(list(input, "threadHistory"))?)?;
    Ok(match vectors::on_a_runtime(model.step(request, &Unheard))? {
        Ok(message) if message.output() == ModelOutput::FinalAnswer => {
            let mut answer = json!({ "text": message.joined_text() });
            if let (Some(used), Some(answer)) = (&message.usage, answer.as_object_mut()) {
                answer.insert("usage".to_owned(), usage(used));
            }
            answer
        }
        Ok(message) => json!({ "error": format!("no answer but a {}", message.output().kind()) }),
        Err(fault) => json!({ "error": fault.message }),
    })
}

struct Unheard;

impl Deltas for Unheard {
    fn part(&self, _: DeltaPart) {}
}

/// The system prompt as instructions, then the developer's prompt unless it is blank, what was said, and the message.
fn request(input: &Value, said: Vec<Message>) -> Done<ModelRequest> {
    let instructions = at(input, "instructions");
    let developer = text(instructions, "developerPrompt");
    let developer = (!developer.trim().is_empty()).then(|| SystemMessage::text(developer).into());
    let prompt = Message::user(text(at(input, "message"), "text"));
    let log: Transcript = developer.into_iter().chain(said).chain([prompt]).map(Arc::new).collect();
    let tool = |words: &Value| {
        Definition::deserialize(words).map(|words| tool_def(&words)).map_err(|e| e.to_string())
    };
    let tools = list(input, "availableTools").iter().map(tool).collect::<Done<Vec<ToolDef>>>()?;
    let prepared = PreparedAgent::new("main", text(instructions, "systemPrompt"), tools);
    Ok(ModelRequest::new(View::whole(log.prefix()), Arc::new(prepared)))
}

fn history(said: &[Value]) -> Done<Vec<Message>> {
    let message = |said: &Value| match text(said, "role") {
        "user" => Ok(Message::user(text(said, "content"))),
        "assistant" => Ok(Message::Assistant(AssistantMessage::text(text(said, "content")))),
        other => Err(format!("`{other}` is no role of a history")),
    };
    said.iter().map(message).collect()
}

/// The source's transcript as messages: a request for tools holds the calls of the results that follow
/// it, since the source keeps them nowhere else.
fn transcript(items: &[Value]) -> Done<Vec<Message>> {
    let mut messages = Vec::new();
    let mut rest = items.iter().peekable();
    while let Some(item) = rest.next() {
        match text(item, "type") {
            "assistant_step" => {
                let mut answer = AssistantMessage::text(text(item, "text"));
                let mut results = Vec::new();
                while text(item, "outputType") == "tool_request"
                    && let Some(result) = rest.next_if(|next| text(next, "type") == "tool_result")
                {
                    let (call, result) = tool_result(at(result, "result"));
                    answer.content.push(Block::from(call));
                    results.push(Message::ToolResult(result));
                }
                messages.push(Message::Assistant(answer));
                messages.append(&mut results);
            }
            "tool_result" => messages.push(Message::ToolResult(tool_result(at(item, "result")).1)),
            "clarification_request" => {
                messages.push(Message::Assistant(AssistantMessage::clarification(text(item, "question"))));
            }
            "approval_request" => {
                let request: ApprovalRequest = exact(at(item, "request"))?.to().map_err(|e| e.to_string())?;
                messages.push(Message::Assistant(AssistantMessage::approval_request(&request)));
            }
            other => return Err(format!("`{other}` is no item of a transcript")),
        }
    }
    Ok(messages)
}

fn tool_result(result: &Value) -> (ToolCall, ToolResultMessage) {
    let call = ToolCall::new(text(result, "callId"), text(result, "toolName"), Json::empty_object());
    let output = result.get("output").and_then(Value::as_str);
    let error = result.pointer("/error/message").and_then(Value::as_str);
    let shown = Block::text(output.or(error).unwrap_or_default());
    let result = ToolResultMessage::new(&call, vec![shown], text(result, "status") == "error");
    (call, result)
}

/// A message in the form of the source's model output.
fn output(message: &AssistantMessage) -> Done<Value> {
    let mut out = Map::new();
    out.insert("type".to_owned(), json!(message.output().kind()));
    match message.output() {
        ModelOutput::FinalAnswer => {
            out.insert("text".to_owned(), json!(message.joined_text()));
        }
        ModelOutput::ToolRequest => {
            let call = |call: &Arc<ToolCall>| {
                let input = call.arguments.to::<Value>().map_err(|e| e.to_string())?;
                Ok(json!({ "id": call.id.as_str(), "name": call.name.as_str(), "input": input }))
            };
            out.insert("calls".to_owned(), message.tool_calls().map(call).collect::<Done<_>>()?);
        }
        ModelOutput::Invalid(invalid) => {
            let fields = serde_json::to_value(invalid).map_err(|e| e.to_string())?;
            out.extend(fields.as_object().cloned().unwrap_or_default());
        }
        ModelOutput::Refusal { reason } => {
            out.insert("reason".to_owned(), json!(reason));
        }
        ModelOutput::Clarification { .. } | ModelOutput::ApprovalRequest(_) | _ => {
            return Err("the model gave an output that the source's never gives".to_owned());
        }
    }
    out.insert("metadata".to_owned(), metadata(message));
    if let Some(used) = &message.usage {
        out.insert("usage".to_owned(), usage(used));
    }
    Ok(Value::Object(out))
}

/// A fault in that form, of which the source has two kinds and one code for whatever has none of its own.
fn fault_output(fault: &ModelFault, asked: &str) -> Value {
    let unnamed = [ModelFaultCode::Network, ModelFaultCode::Provider, ModelFaultCode::Protocol];
    let code = if unnamed.contains(&fault.code) { ModelFaultCode::Unknown } else { fault.code };
    let fields = [
        ("type", Some(json!("invalid"))),
        ("kind", Some(json!(if fault.transient { "transient" } else { "provider_error" }))),
        ("code", Some(json!(code.as_str()))),
        ("reason", Some(json!(fault.message))),
        ("raw", fault.reply.as_ref().and_then(|reply| reply.to().ok())),
        ("httpStatus", fault.http_status.map(Value::from)),
        ("metadata", Some(json!({ "modelId": asked }))),
    ];
    fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

fn metadata(message: &AssistantMessage) -> Value {
    let kept = message.provider_metadata.as_ref().and_then(|kept| kept.to::<Value>().ok());
    let own = match &message.stop_reason {
        FinishReason::ToolUse => "tool_calls",
        FinishReason::ContentFilter => "content_filter",
        other @ (FinishReason::Stop
        | FinishReason::Length
        | FinishReason::Error
        | FinishReason::Aborted
        | FinishReason::Refusal
        | FinishReason::Paused
        | FinishReason::Other(_)
        | _) => other.as_str(),
    };
    let own = Some(own).filter(|_| message.stop_reason != FinishReason::Error);
    let thought = |block: &Block| {
        if let Block::Thinking(thinking) = block { Some(thinking.thinking.clone()) } else { None }
    };
    let thoughts = message.content.iter().filter_map(thought).collect::<Vec<_>>().join("\n\n");
    let fields = [
        ("modelId", message.model.as_ref().map(ModelName::as_str)),
        ("responseId", message.response_id.as_deref()),
        ("finishReason", kept.as_ref().and_then(|kept| kept.get("finishReason")?.as_str()).or(own)),
        ("reasoning", Some(thoughts.as_str()).filter(|thoughts| !thoughts.is_empty())),
    ];
    fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), json!(value?)))).collect()
}

/// The two counts of the source; all parts of a request's tokens are in the first.
fn usage(used: &Usage) -> Value {
    let parts = [used.input, used.cache_read, used.cache_write].into_iter().flatten();
    let counts = [("inputTokens", used.input.map(|_| parts.sum::<u64>())), ("outputTokens", used.output)];
    counts.into_iter().filter_map(|(key, count)| Some((key.to_owned(), json!(count?)))).collect()
}
