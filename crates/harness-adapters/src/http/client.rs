//! The model port over HTTP: the same for every protocol.

use std::fmt;
use std::sync::Arc;

use harness_core::Json;
use harness_core::message::{AssistantMessage, Cost, FinishReason, Message, Usage};
use harness_core::port::{Deltas, ModelFault, ModelRequest, PreparedAgent};
use harness_core::tool::ToolDef;
use tokio::time::Instant;

use super::draft::Asked;
use super::exchange::{End, Reply};
use super::fault::Faults;
use super::names::ToolNames;
use super::service::{Service, no_json};
use super::settings::Settings;
use crate::history::{IdRule, Target, Turn, prepare};

/// Continuations of one paused answer.
const MAX_CONTINUATIONS: usize = 8;

/// Form of the requests and replies of a protocol.
pub(crate) trait Form: Send + Sync {
    /// Value of `protocol` in messages.
    const PROTOCOL: &'static str;
    /// Legal ids of calls.
    const IDS: IdRule;
    type Reply: Reply;

    /// Writes the body of a request.
    fn body(&self, outgoing: &Outgoing<'_>) -> Result<String, serde_json::Error>;
}

/// Parts of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outgoing<'a> {
    pub(crate) request: &'a ModelRequest,
    pub(crate) turns: &'a [Turn<'a>],
    pub(crate) model: &'a str,
    pub(crate) names: &'a ToolNames,
    pub(crate) settings: &'a Settings,
}

impl<'a> Outgoing<'a> {
    /// The tools to offer. Some providers reject a conversation with calls when the tools are
    /// missing: the result then has all tools, and says that none may be called.
    pub(crate) fn tools(&self, has_calls: bool) -> (&'a [ToolDef], bool) {
        let explains_calls = !self.request.with_tools && has_calls;
        let tools = if explains_calls { &*self.request.prepared.tools } else { self.request.tools() };
        (tools, explains_calls)
    }

    /// The settings to send. Endpoints reject two of them when no tools come with them.
    pub(crate) fn settings(&self) -> impl Iterator<Item = (&'a str, Json)> {
        let has_tools = !self.request.tools().is_empty();
        let entries = self.settings.entries().iter().map(|(key, value)| (key.as_str(), value.clone()));
        entries.filter(move |(key, _)| has_tools || !matches!(*key, "tool_choice" | "parallel_tool_calls"))
    }
}

/// A model of one endpoint, without its API key in `Debug`.
pub(crate) struct Client<F> {
    pub(crate) service: Service,
    pub(crate) form: F,
}

impl<F: Form> Client<F> {
    /// Whether the endpoint is sent the output schema of this agent.
    pub(crate) fn has_structured_output(&self, agent: &PreparedAgent) -> bool {
        self.service.has_structured_output(agent)
    }

    /// Performs one step. A paused answer is continued, at most eight times: the parts so far are
    /// sent back, and the next part is appended to the message.
    pub(crate) async fn step(
        &self,
        request: &ModelRequest,
        deltas: &dyn Deltas,
    ) -> Result<AssistantMessage, ModelFault> {
        let started = Instant::now();
        let settings = self.service.settings_for(request)?;
        let mut result = self.part(request, &settings, None, deltas).await;
        for _ in 0..MAX_CONTINUATIONS {
            let paused = match result {
                Ok(message) if message.stop_reason == FinishReason::Paused => message,
                result => return Service::finish(result, &settings, started.elapsed()),
            };
            result = match self.part(request, &settings, Some(paused.clone()), deltas).await {
                Ok(next) => Ok(joined(paused, next)),
                Err(mut fault) => {
                    let next = fault.partial.take().map(|partial| *partial).unwrap_or_default();
                    Err(fault.with_partial(joined(paused, next)))
                }
            };
        }
        Service::finish(result, &settings, started.elapsed())
    }

    /// Sends one request, with what a paused answer holds so far, and reads the reply.
    async fn part(
        &self,
        request: &ModelRequest,
        settings: &Settings,
        paused: Option<AssistantMessage>,
        deltas: &dyn Deltas,
    ) -> Result<AssistantMessage, ModelFault> {
        let service = &self.service;
        let names = ToolNames::of(request.prepared.tools.iter().map(|tool| tool.name.as_str()));
        let asked = Asked {
            protocol: F::PROTOCOL,
            provider: &service.provider,
            model: service.model_for(request),
            names: &names,
            messages: request.view.len(),
        };
        let target = Target {
            protocol: F::PROTOCOL,
            provider: asked.provider,
            model: asked.model,
            sees_images: service.sees_images,
            ids: F::IDS,
        };
        let paused = paused.map(Message::Assistant);
        let mut messages = Vec::with_capacity(request.view.len().saturating_add(1));
        request.view.for_each(|message| messages.push(&**message));
        messages.extend(&paused);
        let turns = prepare(messages.into_iter(), target);
        let outgoing = Outgoing { request, turns: &turns, model: asked.model, names: &names, settings };
        let body = self.form.body(&outgoing).map_err(|error| no_json(&error))?;
        let mut reply = F::Reply::default();
        let sent = service.send(request, body, &mut reply, deltas, &names).await;
        let mut result = judge(&mut reply, sent, asked, &service.faults_for(request));
        service.price(&mut result, reply.cached_for_an_hour());
        result
    }
}

/// Interprets a reply whose transfer ended with `sent`.
pub(crate) fn judge<R: Reply>(
    reply: &mut R,
    sent: Result<(), ModelFault>,
    asked: Asked<'_>,
    faults: &Faults,
) -> Result<AssistantMessage, ModelFault> {
    reply.finish();
    let document = reply.whole_document().and_then(|text| faults.document(text));
    let draft = reply.draft(asked);
    let undecoded = reply.undecoded();
    let fault = match (sent, reply.error(), undecoded.first(), reply.end()) {
        (Err(fault), ..) => fault,
        (Ok(()), Some(error), ..) => ModelFault { reply: document, ..faults.reported(error) },
        (Ok(()), None, Some(event), _) => faults.undecoded(event, undecoded.count),
        (Ok(()), None, None, End::Stopped(stop)) => return Ok(draft.finish(stop, document)),
        (Ok(()), None, None, End::Failed) => ModelFault { reply: document, ..faults.unexplained() },
        (Ok(()), None, None, End::Cut) => ModelFault { reply: document, ..faults.cut() },
    };
    Err(match draft.partial() {
        Some(partial) => fault.with_partial(partial),
        None => fault,
    })
}

/// A paused message with its continuation.
fn joined(paused: AssistantMessage, mut next: AssistantMessage) -> AssistantMessage {
    next.usage = match (paused.usage, next.usage) {
        (Some(before), Some(after)) => Some(Arc::new(summed(&before, &after))),
        (before, after) => before.or(after),
    };
    next.content.splice(0..0, paused.content);
    next
}

/// Usage of two requests; the cost is unknown if that of either is.
fn summed(before: &Usage, after: &Usage) -> Usage {
    let sum = |one: Option<u64>, other: Option<u64>| {
        one.or(other).map(|_| one.unwrap_or(0).saturating_add(other.unwrap_or(0)))
    };
    let plus = |one: Option<Cost>, other: Option<Cost>| one.zip(other).map(|(one, other)| one.plus(other));
    let mut usage = after.clone();
    usage.input = sum(before.input, after.input);
    usage.output = sum(before.output, after.output);
    usage.cache_read = sum(before.cache_read, after.cache_read);
    usage.cache_write = sum(before.cache_write, after.cache_write);
    usage.reasoning = sum(before.reasoning, after.reasoning);
    usage.total_tokens = sum(before.total_tokens, after.total_tokens);
    usage.requests = sum(before.requests.or(Some(1)), Some(1));
    usage.cost = before.cost.as_ref().zip(after.cost.as_ref()).map(|(before, after)| {
        let mut cost = after.clone();
        cost.input = plus(before.input, after.input);
        cost.output = plus(before.output, after.output);
        cost.cache_read = plus(before.cache_read, after.cache_read);
        cost.cache_write = plus(before.cache_write, after.cache_write);
        cost.total = plus(before.total, after.total);
        cost
    });
    usage
}

impl<F> fmt::Debug for Client<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("endpoint", &self.service.endpoint.shown())
            .field("model", &self.service.model)
            .finish_non_exhaustive()
    }
}

/// Makes a type over a [`Client`] a model.
macro_rules! http_model {
    ($model:ty) => {
        impl harness_core::port::Model for $model {
            async fn step(
                &self,
                request: harness_core::port::ModelRequest,
                deltas: &dyn harness_core::port::Deltas,
            ) -> Result<harness_core::message::AssistantMessage, harness_core::port::ModelFault> {
                self.0.step(&request, deltas).await
            }

            fn has_structured_output(&self, agent: &harness_core::port::PreparedAgent) -> bool {
                self.0.has_structured_output(agent)
            }
        }
    };
}
pub(crate) use http_model;
