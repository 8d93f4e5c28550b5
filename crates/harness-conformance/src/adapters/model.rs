//! The adapters `model` and `single-shot`: one step of a chat model.

use std::sync::Arc;
use std::time::Duration;

use harness::adapters::{Retry, RetryPolicy};
use harness::system::SystemClock;
use harness_core::message::{
    ApprovalRequest, AssistantMessage, Block, FinishReason, Message, ModelOutput, SystemMessage, ToolCall,
    ToolResultMessage, Usage,
};
use harness_core::port::{DeltaPart, Deltas, Model, ModelFault, ModelFaultCode, ModelRequest, PreparedAgent};
use harness_core::transcript::{Transcript, View};
use harness_core::{Json, ModelName};
use serde_json::{Map, Value, json};

use super::words::{ChatConfig, ContextWords, Item, ItemType, Role, Step};
use super::{execution, vectors};
use crate::Done;
use crate::case::block_on;
use crate::turn::convert::{product, tool_def};
use crate::turn::words::{OutputType, Status, ToolResult};

/// The models where a vector names none.
const MODEL: &str = "anthropic/claude-sonnet-4-6";
const QUICK_MODEL: &str = "anthropic/claude-haiku-4-5";

/// One step against the server at `url`, tried twice; the model's output in the source's form.
pub(super) fn play(config: &ChatConfig, mut step: Step, url: &str) -> Done<Value> {
    let mut policy = RetryPolicy::default();
    policy.attempts = 2;
    policy.jitter = false;
    policy.first_wait = config.transient_retry_delay_ms.map_or(policy.first_wait, Duration::from_millis);
    let says_something = |context: &ContextWords| {
        !context.blocks.is_empty() || context.structured.as_ref().is_some_and(|data| *data != json!({}))
    };
    if step.context.as_ref().is_some_and(says_something) {
        return Err("no message of the product is made of a context".to_owned());
    }
    let model = Retry::new(execution::chat(config, MODEL, url)?, policy).clock(Arc::new(SystemClock::new()));
    let said = transcript(std::mem::take(&mut step.transcript))?;
    let asked = config.model.as_deref().unwrap_or(MODEL);
    match block_on(model.step(request(step, said), &Unheard))? {
        Ok(message) => output(&message),
        Err(fault) => Ok(fault_output(&fault, asked)),
    }
}

/// One question to the server at `url`: `{text, usage?}`, or `{error}`.
pub(super) fn ask(config: &ChatConfig, mut step: Step, url: &str) -> Done<Value> {
    let model = execution::chat(config, QUICK_MODEL, url)?;
    let said = std::mem::take(&mut step.thread_history).into_iter().map(|said| match said.role {
        Role::User => Message::user(said.content),
        Role::Assistant => Message::Assistant(AssistantMessage::text(said.content)),
    });
    let request = request(step, said.collect());
    Ok(match block_on(model.step(request, &Unheard))? {
        Ok(message) if message.output() == ModelOutput::FinalAnswer => vectors::present([
            ("text", Some(json!(message.joined_text()))),
            ("usage", message.usage.as_deref().map(usage)),
        ]),
        Ok(message) => json!({ "error": format!("no answer but a {}", message.output().kind()) }),
        Err(fault) => json!({ "error": fault.message }),
    })
}

struct Unheard;

impl Deltas for Unheard {
    fn part(&self, _: DeltaPart) {}
}

/// The system prompt as instructions, then the developer's prompt unless it is blank, what was said, and the message.
fn request(step: Step, said: Vec<Message>) -> ModelRequest {
    let developer = step.instructions.developer_prompt;
    let developer = (!developer.trim().is_empty()).then(|| SystemMessage::text(developer).into());
    let prompt = Message::user(step.message.map(|message| message.text).unwrap_or_default());
    let log: Transcript = developer.into_iter().chain(said).chain([prompt]).map(Arc::new).collect();
    let tools: Vec<_> = step.available_tools.iter().map(tool_def).collect();
    let offer = PreparedAgent::new("main", step.instructions.system_prompt, tools);
    ModelRequest::new(View::whole(log.prefix()), Arc::new(offer))
}

/// The source's transcript as messages: a request for tools holds the calls of the results that follow
/// it, since the source keeps them nowhere else.
fn transcript(items: Vec<Item>) -> Done<Vec<Message>> {
    let mut messages = Vec::new();
    let mut rest = items.into_iter().peekable();
    while let Some(item) = rest.next() {
        match item.r#type {
            ItemType::AssistantStep => {
                let mut answer = AssistantMessage::text(item.text.unwrap_or_default());
                let mut results = Vec::new();
                while item.output_type == Some(OutputType::ToolRequest)
                    && let Some(next) = rest.next_if(|next| next.r#type == ItemType::ToolResult)
                {
                    let (call, result) = tool_result(next.result)?;
                    answer.content.push(Block::from(call));
                    results.push(Message::ToolResult(result));
                }
                messages.push(Message::Assistant(answer));
                messages.append(&mut results);
            }
            ItemType::ToolResult => messages.push(Message::ToolResult(tool_result(item.result)?.1)),
            ItemType::ClarificationRequest => {
                let question = item.question.ok_or("a clarification has a question")?;
                messages.push(Message::Assistant(AssistantMessage::clarification(&question)));
            }
            ItemType::ApprovalRequest => {
                let request: ApprovalRequest = product(&item.request.ok_or("an approval has a request")?)?;
                messages.push(Message::Assistant(AssistantMessage::approval_request(&request)));
            }
        }
    }
    Ok(messages)
}

fn tool_result(result: Option<ToolResult>) -> Done<(ToolCall, ToolResultMessage)> {
    let result = result.ok_or("a tool result has a result")?;
    let (id, name) = (result.call_id.unwrap_or_default(), result.tool_name.unwrap_or_default());
    let call = ToolCall::new(id, name, Json::empty_object());
    let shown = result.output.or(result.error.map(|error| error.message)).unwrap_or_default();
    let is_error = matches!(result.status, Status::Error);
    let result = ToolResultMessage::new(&call, vec![Block::text(shown)], is_error);
    Ok((call, result))
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

/// An error in that form. The source has two kinds, and one code for everything without a separate code.
fn fault_output(fault: &ModelFault, asked: &str) -> Value {
    let unnamed = [ModelFaultCode::Network, ModelFaultCode::Provider, ModelFaultCode::Protocol];
    let code = if unnamed.contains(&fault.code) { ModelFaultCode::Unknown } else { fault.code };
    vectors::present([
        ("type", Some(json!("invalid"))),
        ("kind", Some(json!(if fault.transient { "transient" } else { "provider_error" }))),
        ("code", Some(json!(code.as_str()))),
        ("reason", Some(json!(fault.message))),
        ("raw", fault.reply.as_ref().and_then(|reply| reply.to().ok())),
        ("httpStatus", fault.http_status.map(Value::from)),
        ("retriedAt", fault.retried_at.map(|at| json!(at.iso()))),
        ("metadata", Some(json!({ "modelId": asked }))),
    ])
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
    let input = used.input.map(|_| parts.sum::<u64>());
    vectors::present([
        ("inputTokens", input.map(Value::from)),
        ("outputTokens", used.output.map(Value::from)),
    ])
}
