//! The tool-capable model adapter: [`OpenRouterModel`].

use std::sync::Arc;
use std::time::Duration;

use harness::adapters::chat::source_001::{OpenRouterModel, system_messages};
use harness::system::SystemClock;
use harness_core::Json;
use harness_core::message::{
    ApprovalRequest, AssistantMessage, Block, Message, ModelOutput, ToolCall, ToolResultMessage,
};
use harness_core::port::{DeltaPart, Deltas, Model, ModelRequest, Offer, ToolDef};
use harness_core::transcript::{Transcript, View};
use serde_json::{Map, Value, json};

use crate::turn::convert::{Done, at, json as exact, list, text, tool_def};

/// One step against the server at `url`; the model's output in the source's form.
pub(super) fn play(vector: &Value, url: &str) -> Done<Value> {
    let model = adapter(at(vector, "config"), url)?;
    let request = request(at(vector, "input"))?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
    let message = runtime.block_on(model.step(request, &Unheard)).map_err(|fault| fault.message)?;
    output(&message)
}

struct Unheard;

impl Deltas for Unheard {
    fn part(&self, _: DeltaPart) {}
}

fn adapter(config: &Value, url: &str) -> Done<OpenRouterModel> {
    let mut builder = OpenRouterModel::builder().base_url(url).clock(Arc::new(SystemClock::new()));
    let millis = |key: &str| config.get(key).and_then(Value::as_u64).map(Duration::from_millis);
    if let Some(key) = config.get("apiKey").and_then(Value::as_str) {
        builder = builder.key(key);
    }
    if let Some(model) = config.get("model").and_then(Value::as_str) {
        builder = builder.model(model);
    }
    if let Some(temperature) = config.get("defaultTemperature").and_then(Value::as_f64) {
        builder = builder.temperature(temperature);
    }
    if let Some(timeout) = millis("timeoutMs") {
        builder = builder.timeout(timeout);
    }
    if let Some(delay) = millis("transientRetryDelayMs") {
        builder = builder.retry_delay(delay);
    }
    builder.build().map_err(|e| e.to_string())
}

fn request(input: &Value) -> Done<ModelRequest> {
    let instructions = at(input, "instructions");
    let context = at(input, "context");
    let structured = context.get("structured").map(exact).transpose()?;
    let blocks = list(context, "blocks").iter().map(|block| (text(block, "label"), text(block, "content")));
    let developer = instructions.get("developerPrompt").and_then(Value::as_str);
    let mut log: Transcript = Transcript::default();
    let opening = system_messages(developer, blocks, structured.as_ref());
    let prompt = Message::user(text(at(input, "message"), "text"));
    for message in opening.into_iter().chain(transcript(list(input, "transcript"))?).chain([prompt]) {
        log.push(Arc::new(message));
    }
    let tools = list(input, "availableTools").iter().map(tool_def).collect::<Done<Vec<ToolDef>>>()?;
    let offer = Offer::new("main", text(instructions, "systemPrompt"), tools);
    Ok(ModelRequest::new(View::whole(log.prefix()), Arc::new(offer)))
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
        ModelOutput::Clarification { .. }
        | ModelOutput::ApprovalRequest(_)
        | ModelOutput::Refusal { .. }
        | _ => return Err("the adapter gave an output that the source's never gives".to_owned()),
    }
    if let Some(metadata) = &message.rare.provider_metadata {
        out.insert("metadata".to_owned(), metadata.to().map_err(|e| e.to_string())?);
    }
    if let Some(usage) = &message.usage {
        let counts = [("inputTokens", usage.input), ("outputTokens", usage.output)];
        let counts = counts.into_iter().filter_map(|(key, count)| Some((key.to_owned(), json!(count?))));
        out.insert("usage".to_owned(), Value::Object(counts.collect()));
    }
    Ok(Value::Object(out))
}
