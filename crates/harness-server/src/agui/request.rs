//! Requests of AG-UI clients.

use axum::http::StatusCode;
use harness::core::message::Message;
use harness::core::{Json, ThreadId};
use harness::runtime::MessageOptions;
use serde::Deserialize;
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::messages::{self, AgUiMessage};
use super::resume::ResumeEntry;
use crate::app::{App, thread_id};
use crate::fault::Fault;
use crate::openai::TOOLS;

/// Agent of a run.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AgUiQuery {
    /// Agent that the run starts with. Default: the agent of the thread; the entry agent of a new one.
    agent: Option<String>,
}

/// Input of a run. Unknown fields are ignored.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunAgentInput {
    /// Id of the thread, which is created if it does not exist: up to 128 letters, digits, `-`, `_` and `.`.
    #[schema(example = "thread-1")]
    thread_id: String,
    /// Id of the client for the run, repeated in its events.
    #[schema(example = "run-1")]
    run_id: String,
    /// The whole conversation, or its end.
    messages: Vec<AgUiMessage>,
    /// Decisions on the pending calls of the thread.
    resume: Option<Vec<ResumeEntry>>,
    /// Information for the agents: a system message, added when it changes.
    context: Option<Vec<ContextEntry>>,
    /// Data of the caller for the run: an object.
    #[schema(value_type = Option<Object>)]
    forwarded_props: Option<Value>,
    /// Must be empty: tools of the client are not called.
    #[schema(value_type = Option<Vec<Object>>)]
    tools: Option<Vec<Value>>,
    /// Must be empty: the server has no state to share.
    #[schema(value_type = Option<Object>)]
    state: Option<Value>,
}

/// Information for the agents.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct ContextEntry {
    /// Meaning of the value.
    description: String,
    /// Text for the agents.
    value: String,
}

/// A validated request.
pub(super) struct Request {
    /// Messages with the ids of the client.
    pub(super) messages: Vec<(String, Message)>,
    /// Text of the context.
    pub(super) context: Option<String>,
    pub(super) resume: Vec<ResumeEntry>,
    pub(super) options: MessageOptions,
}

/// First line of a context, by which the last one is found in a thread.
pub(super) const CONTEXT: &str = "Context of the application:";

impl Request {
    /// Reads an input: the thread, the run's id of the client, and the request.
    pub(super) fn read(
        app: &App,
        query: AgUiQuery,
        input: RunAgentInput,
    ) -> Result<(ThreadId, String, Self), Fault> {
        if input.tools.is_some_and(|tools| !tools.is_empty()) {
            let hint = "give the tools to the agents, and send an empty list";
            return Err(unsupported("tools", TOOLS).hint(hint));
        }
        if input.state.as_ref().is_some_and(|state| !is_empty(state)) {
            let hint = "send data for tools as `forwardedProps`, and information for the agents as `context`";
            return Err(unsupported("state", "the server has no state to share").hint(hint));
        }
        let mut options = MessageOptions::default();
        options.metadata = metadata(input.forwarded_props)?;
        if let Some(agent) = query.agent {
            let known = app.options.agents.iter().find(|known| known.as_str() == agent);
            options.agent = Some(known.cloned().ok_or_else(|| unknown_agent(&agent))?);
        }
        let thread = thread_id(&input.thread_id).map_err(|fault| fault.at("threadId"))?;
        let request = Self {
            messages: messages::read(input.messages)?,
            context: text_of(&input.context.unwrap_or_default()),
            resume: input.resume.unwrap_or_default(),
            options,
        };
        Ok((thread, input.run_id, request))
    }
}

fn unsupported(field: &str, reason: &str) -> Fault {
    Fault::unreadable(format!("`{field}` is not supported: {reason}")).at(field)
}

fn unknown_agent(agent: &str) -> Fault {
    let agent: String = agent.chars().take(128).collect();
    Fault::new(StatusCode::BAD_REQUEST, "request.query", format!("the agent `{agent}` was not found"))
        .hint("GET /v1/models lists the agents")
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => false,
    }
}

fn metadata(given: Option<Value>) -> Result<Option<Json>, Fault> {
    match given {
        None => Ok(None),
        Some(value) if is_empty(&value) => Ok(None),
        Some(value @ Value::Object(_)) => Ok(Some(Json::from(value))),
        Some(_) => Err(Fault::unreadable("expected an object").at("forwardedProps")),
    }
}

fn text_of(context: &[ContextEntry]) -> Option<String> {
    let lines: Vec<String> =
        context.iter().map(|ContextEntry { description, value }| format!("{description}: {value}")).collect();
    (!lines.is_empty()).then(|| format!("{CONTEXT}\n{}", lines.join("\n")))
}
