//! One endpoint with everything that was set up for it.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use harness_core::message::AssistantMessage;
use harness_core::port::{Clock, Deltas, ModelFault, ModelFaultCode, ModelRequest, PreparedAgent, Secret};
use harness_core::{Millis, ModelName};
use reqwest::header::{HeaderName, HeaderValue};
use tokio::time::timeout;

use super::endpoint::Endpoint;
use super::exchange::{Exchange, Reply};
use super::fault::Faults;
use super::frames::Frames;
use super::names::ToolNames;
use super::settings::{RESPONSE_FORMAT, Settings};
use super::setup::{Auth, OPENROUTER, Protocol, Thought};
use super::{ReplyLimits, ReplyTimeouts};
use crate::structured::{OutputSchema, checked};
use crate::{AdapterError, PriceTable, ThinkingLevels};

/// Endpoint and settings of a model.
pub(crate) struct Service {
    pub(crate) client: reqwest::Client,
    pub(crate) endpoint: Endpoint,
    pub(crate) auth: Auth,
    pub(crate) provider: String,
    pub(crate) model: ModelName,
    pub(crate) only_model: bool,
    pub(crate) settings: Settings,
    pub(crate) sees_images: bool,
    pub(crate) limits: ReplyLimits,
    pub(crate) timeouts: ReplyTimeouts,
    pub(crate) faults: Faults,
    pub(crate) clock: Option<Arc<dyn Clock>>,
    pub(crate) prices: PriceTable,
    pub(crate) levels: ThinkingLevels,
    /// Whether the endpoint understands schemas of answers.
    pub(crate) structured_output: bool,
    /// Whether the endpoint's events are passed on as they are, too.
    pub(crate) provider_events: bool,
}

impl Service {
    /// The model to ask: the agent's, unless only this adapter's own may be used.
    pub(crate) fn model_for<'a>(&'a self, request: &'a ModelRequest) -> &'a str {
        let wish = request.prepared.model.as_ref().filter(|_| !self.only_model);
        wish.unwrap_or(&self.model).as_str()
    }

    /// The settings of this adapter with those of the agent on top, and above them the request's own level of
    /// thinking.
    pub(crate) fn settings_for(&self, request: &ModelRequest) -> Result<Settings, ModelFault> {
        let mut settings = self.settings_of_agent(request)?;
        if let Some(schema) = &request.prepared.output {
            let format = OutputSchema::of_answer(schema).map_err(|error| fault(request, &error))?;
            settings.set(RESPONSE_FORMAT.to_owned(), format);
        }
        if let Some(level) = request.thinking {
            let routed = self.provider == OPENROUTER.provider;
            (self.protocol().think)(&mut settings, &Thought { level, levels: &self.levels, routed });
        }
        Ok(settings)
    }

    fn settings_of_agent(&self, request: &ModelRequest) -> Result<Settings, ModelFault> {
        let agent = request.prepared.settings.as_ref().filter(|settings| !settings.is_null());
        let parsed = agent.map(|settings| Settings::parse(settings, self.protocol().reserved)).transpose();
        match parsed {
            Ok(None) => Ok(self.settings.clone()),
            Ok(Some(stronger)) => Ok(self.settings.overlaid(stronger)),
            Err(error) => Err(fault(request, &error)),
        }
    }

    /// Whether the endpoint is sent the output schema of this agent. Endpoints take schemas of objects only.
    pub(crate) fn has_structured_output(&self, agent: &PreparedAgent) -> bool {
        let entries = agent.output.as_ref().and_then(|schema| schema.entries().ok()).unwrap_or_default();
        self.structured_output
            && entries.iter().any(|(key, value)| key == "type" && value.text() == r#""object""#)
    }

    /// The header with the request's own key, which goes before the adapter's.
    pub(crate) fn key_for(
        &self,
        request: &ModelRequest,
    ) -> Result<Option<(HeaderName, HeaderValue)>, ModelFault> {
        let header = own_key(request).map(|key| self.auth.header(key.expose()));
        header.transpose().map_err(|error| ModelFault::new(ModelFaultCode::AuthFailed, error.to_string()))
    }

    /// Errors of a request, which also redact its own API key.
    pub(crate) fn faults_for(&self, request: &ModelRequest) -> Cow<'_, Faults> {
        self.faults.of_request(own_key(request))
    }

    /// Sends `body` and reads the reply into `reply`, passing deltas to `deltas`. Ends early when
    /// the request is cancelled or its time is over; `reply` then has what had arrived.
    pub(crate) async fn send<R: Reply>(
        &self,
        request: &ModelRequest,
        body: String,
        reply: &mut R,
        deltas: &dyn Deltas,
        names: &ToolNames,
    ) -> Result<(), ModelFault> {
        let limit = self.time_left(request);
        let (key, faults) = (self.key_for(request)?, self.faults_for(request));
        let frames = Frames::new(&self.limits).passing_events(self.provider_events);
        let mut exchange = Exchange { service: self, key, faults: &faults, deltas, names, reply, frames };
        tokio::select! {
            biased;
            () = request.cancel.cancelled() => Err(self.faults.cancelled()),
            outcome = timeout(limit, exchange.run(body)) => {
                outcome.unwrap_or_else(|_| Err(self.faults.timeout("did not finish the answer", limit.into())))
            }
        }
    }

    /// Completes the result of a step: checks an answer that must be JSON, and notes the time.
    pub(crate) fn finish(
        result: Result<AssistantMessage, ModelFault>,
        settings: &Settings,
        took: Duration,
    ) -> Result<AssistantMessage, ModelFault> {
        let mut result = match result {
            Ok(message) if settings.expects_json() => Ok(checked(message)),
            result => result,
        };
        let took = Millis::from(took);
        if let Err(fault) = &result {
            tracing::debug!(code = fault.code.as_str(), status = fault.http_status, %took, "model call failed");
        }
        if let Some(usage) = message_of(&mut result).and_then(|message| message.usage.as_mut()) {
            Arc::make_mut(usage).latency_ms = Some(took.0);
        }
        result
    }

    /// Calculates a cost that the provider did not report; `hour` counts the tokens that were written
    /// to a cache for an hour.
    pub(crate) fn price(&self, result: &mut Result<AssistantMessage, ModelFault>, hour: u64) {
        let Some(message) = message_of(result) else { return };
        let asked = message.model.as_ref().map(ModelName::as_str);
        let served = message.response_model.as_deref().or(asked).unwrap_or_default();
        if let Some(usage) = message.usage.as_mut() {
            self.prices.settle_call(&self.provider, served, Arc::make_mut(usage), hour);
        }
    }

    fn protocol(&self) -> &'static Protocol {
        self.faults.protocol
    }

    /// The time that this request may take.
    pub(crate) fn time_left(&self, request: &ModelRequest) -> Duration {
        let deadline = request.deadline.zip(self.clock.as_ref());
        let left = deadline.map(|(deadline, clock)| deadline.since(clock.now()).duration());
        left.map_or(self.timeouts.total, |left| left.min(self.timeouts.total))
    }
}

fn fault(request: &ModelRequest, error: &AdapterError) -> ModelFault {
    let hint = error.hint().unwrap_or_default();
    let text = format!("agent `{}`: {error}; {hint}", request.prepared.agent);
    ModelFault::new(ModelFaultCode::Configuration, text)
}

/// The key of the request itself; an empty one is none.
fn own_key(request: &ModelRequest) -> Option<&Secret> {
    request.key.as_ref().filter(|key| !key.is_empty())
}

/// Error for a body that cannot be serialized.
pub(crate) fn no_json(error: &serde_json::Error) -> ModelFault {
    ModelFault::new(ModelFaultCode::Configuration, format!("the request has no JSON form: {error}"))
}

/// The message of a step, whole or partial.
fn message_of(result: &mut Result<AssistantMessage, ModelFault>) -> Option<&mut AssistantMessage> {
    match result {
        Ok(message) => Some(message),
        Err(fault) => fault.partial.as_deref_mut(),
    }
}
