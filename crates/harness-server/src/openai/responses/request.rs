//! Requests for responses.

use harness::core::Json;
use harness::core::message::Message;
use harness::runtime::MessageOptions;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::super::described::{ConversationParam, Input};
use super::super::fields::{Fields, Rejected, TOOLS};
use super::super::format::Format;
use super::super::models::agent_of;
use super::items::{self, Approved};
use crate::app::App;
use crate::fault::Fault;

const FIELDS: Fields = Fields {
    ignored: &[
        "include",
        "max_output_tokens",
        "parallel_tool_calls",
        "prompt_cache_key",
        "prompt_cache_retention",
        "reasoning",
        "service_tier",
        "stream_options",
        "temperature",
        "top_p",
        "truncation",
        "verbosity",
    ],
    rejected: &[
        Rejected::new("tools", &[], TOOLS),
        Rejected::new("tool_choice", &["auto", "none"], TOOLS),
        Rejected::new("max_tool_calls", &[], "the limits of the agents apply"),
        Rejected::new("background", &[], "use POST /v1/threads/{thread}/prompt to run without a connection"),
        Rejected::new("prompt", &[], "prompt templates are not stored on the server"),
        Rejected::new("top_logprobs", &["0"], "token probabilities are not available"),
        Rejected::new("context_management", &[], "the settings of the agents apply"),
    ],
};

/// Input to answer. Further fields of OpenAI's API are ignored or rejected, as described by the route.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResponseRequest {
    /// A model of `GET /v1/models`.
    #[schema(example = "harness")]
    model: String,
    /// A text, or a list of messages and `mcp_approval_response` items.
    #[schema(value_type = Input, example = "Where is my order 1042?")]
    #[serde(default)]
    input: Value,
    /// System message in front of the input, added once to a thread.
    instructions: Option<String>,
    /// Response to continue.
    previous_response_id: Option<String>,
    /// Conversation to continue: an id, or an object with an `id`. It is a thread of the server.
    #[schema(value_type = Option<ConversationParam>)]
    conversation: Option<Value>,
    /// Whether the response is stored, to be read and continued. Default: `true`.
    store: Option<bool>,
    /// Whether the response is sent as server-sent events. Default: `false`.
    #[serde(default)]
    stream: bool,
    /// Format of the answer.
    text: Option<TextOptions>,
    /// Data of the caller for the run.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map<String, Value>>,
    /// User of the run.
    user: Option<String>,
    /// User of the run; takes precedence over `user`.
    safety_identifier: Option<String>,
}

/// Options of the answer's text.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct TextOptions {
    /// Format of the answer. Default: text.
    format: Option<Format>,
}

/// Origin of the thread of a response.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Continued {
    New,
    Response(String),
    Conversation(String),
}

/// A validated request.
pub(super) struct Asked {
    pub(super) model: String,
    pub(super) continued: Continued,
    /// Instructions, until they are added to the thread.
    pub(super) instructions: Option<String>,
    /// Instructions as the response repeats them.
    pub(super) echoed_instructions: Option<String>,
    pub(super) messages: Vec<Message>,
    pub(super) approved: Vec<Approved>,
    pub(super) options: MessageOptions,
    pub(super) metadata: Option<Map<String, Value>>,
    pub(super) is_stored: bool,
    pub(super) stream: bool,
}

impl Asked {
    pub(super) fn read(app: &App, body: Map<String, Value>) -> Result<Self, Fault> {
        let request: ResponseRequest = FIELDS.read(body)?;
        let agent = agent_of(app, &request.model)?;
        let continued = continued(request.previous_response_id, request.conversation)?;
        let (messages, approved) = items::read(&request.input)?;
        let instructions = request.instructions.filter(|text| !text.trim().is_empty());
        let format = request.text.and_then(|text| text.format);
        let mut options = MessageOptions::default();
        options.output = format.map(|format| format.output("text.format")).transpose()?.flatten();
        options.agent = agent;
        options.user = request.safety_identifier.or(request.user).map(Into::into);
        options.metadata = request.metadata.clone().map(|data| Json::from(Value::Object(data)));
        Ok(Self {
            model: request.model,
            continued,
            echoed_instructions: instructions.clone(),
            instructions,
            messages,
            approved,
            options,
            metadata: request.metadata,
            is_stored: request.store.unwrap_or(true),
            stream: request.stream,
        })
    }
}

fn continued(previous: Option<String>, conversation: Option<Value>) -> Result<Continued, Fault> {
    let conversation = match conversation {
        None => None,
        Some(Value::String(id)) => Some(id),
        Some(given) => {
            let invalid =
                || Fault::unreadable("expected an id, or an object with an `id`").at("conversation");
            Some(given.get("id").and_then(Value::as_str).ok_or_else(invalid)?.to_owned())
        }
    };
    match (previous, conversation) {
        (None, None) => Ok(Continued::New),
        (Some(response), None) => Ok(Continued::Response(response)),
        (None, Some(conversation)) => Ok(Continued::Conversation(conversation)),
        (Some(_), Some(_)) => {
            Err(Fault::unreadable("set `previous_response_id` or `conversation`, not both")
                .at("conversation"))
        }
    }
}
