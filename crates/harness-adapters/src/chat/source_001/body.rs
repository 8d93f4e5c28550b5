//! The body of the source's request.

use std::borrow::Cow;
use std::sync::Arc;

use harness_core::Json;
use harness_core::message::{AssistantMessage, Block, Message, ModelOutput, ToolCall, ToolResultMessage};
use harness_core::port::ModelRequest;
use serde::Serialize;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Sent<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<SentTool<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<&'a Json>,
}

#[derive(Serialize)]
struct Sent<'a> {
    role: &'static str,
    content: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<SentCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

#[derive(Serialize)]
struct SentCall<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: CalledFunction<'a>,
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: &'a str,
    arguments: &'a str,
}

#[derive(Serialize)]
struct SentTool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<&'a Json>,
}

/// Writes the body: model, messages, tools, temperature. The calls of earlier answers have their own
/// arguments, where the source sends `{}`.
pub(super) fn body(
    request: &ModelRequest,
    model: &str,
    temperature: Option<&Json>,
) -> Result<String, serde_json::Error> {
    let mut log: Vec<&Message> = Vec::with_capacity(request.view.len());
    request.view.for_each(|message: &Arc<Message>| log.push(message));
    let tools: Vec<SentTool<'_>> = request
        .tools()
        .iter()
        .map(|tool| SentTool {
            kind: "function",
            function: Function {
                name: tool.name.as_str(),
                description: &tool.description,
                parameters: tool.input_schema.as_ref(),
            },
        })
        .collect();
    let has_tools = !tools.is_empty();
    let body = Body {
        model,
        messages: messages(&request.offer.instructions, &log),
        tools: has_tools.then_some(tools),
        tool_choice: has_tools.then_some("auto"),
        temperature,
    };
    serde_json::to_string(&body)
}

fn messages<'a>(instructions: &'a str, log: &[&'a Message]) -> Vec<Sent<'a>> {
    let mut out = vec![plain("system", Cow::Borrowed(instructions))];
    let mut rest = log.iter().copied().peekable();
    while let Some(message) = rest.next() {
        match message {
            Message::System(_) => out.push(plain("system", Cow::Owned(message.joined_text()))),
            Message::User(_) => out.push(plain("user", Cow::Owned(message.joined_text()))),
            Message::Custom(custom) if custom.to_model => {
                out.push(plain("user", Cow::Owned(message.joined_text())));
            }
            Message::Assistant(answer) => {
                let mut results = Vec::new();
                while let Some(Message::ToolResult(result)) =
                    rest.next_if(|next| matches!(next, Message::ToolResult(_)))
                {
                    results.push(result);
                }
                assistant(answer, &results, &mut out);
            }
            // A result that follows no request belongs to nothing that the endpoint would know.
            Message::ToolResult(_) | Message::Custom(_) | _ => {}
        }
    }
    out
}

fn plain<'a>(role: &'static str, text: Cow<'a, str>) -> Sent<'a> {
    Sent { role, content: Some(text), tool_calls: Vec::new(), tool_call_id: None }
}

/// An answer with the results that directly follow it; a call without a result is not sent.
fn assistant<'a>(answer: &'a AssistantMessage, results: &[&'a ToolResultMessage], out: &mut Vec<Sent<'a>>) {
    let mut calls: Vec<&'a ToolCall> = answer.tool_calls().map(|call| &**call).collect();
    let mut sent = plain("assistant", Cow::Owned(said(answer)));
    let mut answers = Vec::new();
    for result in results {
        let Some(at) = calls.iter().position(|call| call.id == result.tool_call_id) else { continue };
        let call = calls.remove(at);
        let function = CalledFunction { name: call.name.as_str(), arguments: call.arguments.text() };
        sent.tool_calls.push(SentCall { id: call.id.as_str(), kind: "function", function });
        let texts: Vec<&str> = result.content.iter().filter_map(Block::as_text).collect();
        let content = Some(Cow::Owned(texts.join("\n")));
        let id = Some(result.tool_call_id.as_str());
        answers.push(Sent { role: "tool", content, tool_calls: Vec::new(), tool_call_id: id });
    }
    let asked = answer.tool_calls().next().is_some();
    sent.content = sent.content.filter(|text| !asked || !text.is_empty());
    out.push(sent);
    out.append(&mut answers);
}

fn said(answer: &AssistantMessage) -> String {
    match answer.output() {
        ModelOutput::ApprovalRequest(request) => format!("Approval requested: {}", request.summary),
        ModelOutput::FinalAnswer
        | ModelOutput::ToolRequest
        | ModelOutput::Clarification { .. }
        | ModelOutput::Refusal { .. }
        | ModelOutput::Invalid(_)
        | _ => answer.joined_text(),
    }
}
