//! Requests of chat completions.

use std::collections::HashMap;

use harness::core::Json;
use harness::core::message::{AssistantMessage, Block, Message, ToolCall};
use harness::runtime::Prompt;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::super::content::{self, Said};
use super::super::described::Content;
use super::super::fields::{Fields, Rejected, TOOLS};
use super::super::format::Format;
use super::super::models::agent_of;
use crate::app::App;
use crate::fault::Fault;

const FIELDS: Fields = Fields {
    ignored: &[
        "frequency_penalty",
        "logit_bias",
        "max_completion_tokens",
        "max_tokens",
        "parallel_tool_calls",
        "prediction",
        "presence_penalty",
        "prompt_cache_key",
        "prompt_cache_retention",
        "reasoning_effort",
        "seed",
        "service_tier",
        "store",
        "temperature",
        "top_p",
        "verbosity",
    ],
    rejected: &[
        Rejected::new("tools", &[], TOOLS),
        Rejected::new("functions", &[], TOOLS),
        Rejected::new("tool_choice", &["auto", "none"], TOOLS),
        Rejected::new("function_call", &["auto", "none"], TOOLS),
        Rejected::new("n", &["1"], "one answer is given per request"),
        Rejected::new("stop", &[], "agents do not stop at words"),
        Rejected::new("logprobs", &[], "token probabilities are not available"),
        Rejected::new("top_logprobs", &["0"], "token probabilities are not available"),
        Rejected::new("modalities", &["text"], "answers are texts"),
        Rejected::new("audio", &[], "answers are texts"),
        Rejected::new("web_search_options", &[], TOOLS),
    ],
};

/// Conversation to answer. Further fields of OpenAI's API are ignored or rejected, as described by the route.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChatRequest {
    /// A model of `GET /v1/models`.
    #[schema(example = "harness")]
    model: String,
    /// The conversation; the last message is one of the user.
    messages: Vec<ChatMessage>,
    /// Whether the answer is sent as server-sent events. Default: `false`.
    #[serde(default)]
    stream: bool,
    /// Options of a stream.
    stream_options: Option<StreamOptions>,
    /// Format of the answer. Default: text.
    response_format: Option<Format>,
    /// User of the run.
    user: Option<String>,
    /// User of the run; takes precedence over `user`.
    safety_identifier: Option<String>,
    /// Data of the caller for the run.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map<String, Value>>,
}

/// A message of a conversation.
#[derive(Debug, Deserialize, ToSchema)]
struct ChatMessage {
    /// `system`, `developer`, `user`, `assistant` or `tool`.
    #[schema(example = "user")]
    role: String,
    /// A text, or a list of parts.
    #[schema(value_type = Option<Content>, example = "Where is my order 1042?")]
    content: Option<Value>,
    /// Name of the sender.
    name: Option<String>,
    /// Refusal of the assistant.
    refusal: Option<String>,
    /// Calls of the assistant.
    tool_calls: Option<Vec<ChatToolCall>>,
    /// Call whose result this is.
    tool_call_id: Option<String>,
}

/// A call in a history.
#[derive(Debug, Deserialize, ToSchema)]
struct ChatToolCall {
    id: String,
    function: ChatFunction,
}

/// The called function.
#[derive(Debug, Deserialize, ToSchema)]
struct ChatFunction {
    name: String,
    /// Arguments as JSON text.
    #[serde(default)]
    arguments: String,
}

/// Options of a stream.
#[derive(Debug, Deserialize, ToSchema)]
struct StreamOptions {
    /// Whether the last chunk has the usage. Default: `false`.
    include_usage: Option<bool>,
}

/// A validated request.
pub(super) struct Chat {
    pub(super) model: String,
    pub(super) said: Said,
    pub(super) prompt: Prompt,
    pub(super) stream: bool,
    pub(super) has_usage: bool,
    /// Whether the answer is JSON, of which a stream sends the valid one only.
    pub(super) is_json: bool,
}

impl Chat {
    pub(super) fn read(app: &App, body: Map<String, Value>) -> Result<Self, Fault> {
        let request: ChatRequest = FIELDS.read(body)?;
        let agent = agent_of(app, &request.model)?;
        let mut said = Said::split(messages(request.messages)?, "messages")?;
        let mut prompt = Prompt::new(std::mem::take(&mut said.prompt));
        let output = request.response_format.map(|format| format.output("response_format")).transpose()?;
        prompt.options.output = output.flatten();
        prompt.options.agent = agent;
        prompt.options.user = request.safety_identifier.or(request.user).map(Into::into);
        prompt.options.metadata = request.metadata.map(|data| Json::from(Value::Object(data)));
        Ok(Self {
            model: request.model,
            said,
            stream: request.stream,
            has_usage: request.stream_options.and_then(|options| options.include_usage).unwrap_or(false),
            is_json: prompt.options.output.is_some(),
            prompt,
        })
    }
}

fn messages(given: Vec<ChatMessage>) -> Result<Vec<Message>, Fault> {
    let mut calls = HashMap::new();
    let read = |(index, message)| read_message(message, &format!("messages[{index}]"), &mut calls);
    given.into_iter().enumerate().map(read).collect()
}

fn read_message(
    message: ChatMessage,
    at: &str,
    calls: &mut HashMap<String, ToolCall>,
) -> Result<Message, Fault> {
    let mut content = content::blocks(&message.content.unwrap_or_default(), &format!("{at}.content"))?;
    match message.role.as_str() {
        "user" => Ok(content::user(content, message.name)),
        "system" | "developer" => Ok(content::system(content)),
        "assistant" => {
            content.extend(message.refusal.map(Block::refusal));
            for (index, given) in message.tool_calls.unwrap_or_default().into_iter().enumerate() {
                let at = format!("{at}.tool_calls[{index}].function.arguments");
                let call = content::call(&given.id, &given.function.name, &given.function.arguments, &at)?;
                calls.insert(given.id, call.clone());
                content.push(Block::from(call));
            }
            let mut answer = AssistantMessage::default();
            answer.content = content;
            Ok(answer.into())
        }
        "tool" => {
            let call = message.tool_call_id.and_then(|id| calls.get(&id));
            let missing = || {
                Fault::unreadable("`tool_call_id` does not name an earlier call")
                    .at(format!("{at}.tool_call_id"))
            };
            Ok(content::result(call.ok_or_else(missing)?, content, false))
        }
        other => Err(Fault::unreadable(format!("unknown role `{other}`"))
            .at(format!("{at}.role"))
            .hint("use `system`, `developer`, `user`, `assistant` or `tool`")),
    }
}
