//! The model port over HTTP.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use harness_core::message::AssistantMessage;
use harness_core::port::{Clock, DeltaPart, Deltas, Model, ModelFault, ModelFaultCode, ModelRequest};
use harness_core::{Millis, ModelName, ToolName};
use reqwest::header::{CONTENT_TYPE, LOCATION};
use tokio::time::{Instant, timeout};

use super::answer::{self, Asked};
use super::builder::{ChatModelBuilder, ChatTimeouts};
use super::completion::{Completion, InvalidKind, Verdict};
use super::endpoint::Endpoint;
use super::fault::{ErrorReply, Faults, retry_after};
use super::history::Target;
use super::names::ToolNames;
use super::request::{self, Settings};
use super::stream::{Assembler, ReplyLimits};
use crate::ApiKey;

/// A model behind OpenRouter or any other OpenAI-compatible chat-completions endpoint.
///
/// Each step is one streaming request; text, reasoning and calls reach the sink as they arrive. An
/// endpoint that ignores `stream` and sends one JSON document is understood too. Cloning is cheap and
/// shares the connections.
///
/// ```
/// use harness_adapters::chat::ChatModel;
/// use harness_core::Json;
///
/// let local = ChatModel::compatible("http://localhost:11434/v1", "qwen3:8b")
///     .settings(Json::parse(r#"{"temperature":0}"#)?)
///     .without_images()
///     .build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// - *Cancellation*: when the request's signal fires, or the future is dropped, the connection is
///   closed, which ends generation and billing on providers that support it.
/// - *Failure*: a fault carries the text that had arrived; tool calls of a failed answer are left out.
/// - *Retries*: none; wrap it in [`Retry`](crate::Retry).
/// - *Redirects* are not followed, because the key must not travel to where it was not meant for.
/// - *Proxies* come from the usual environment variables; a loopback address is always direct.
#[derive(Clone)]
pub struct ChatModel(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) client: reqwest::Client,
    pub(crate) endpoint: Endpoint,
    pub(crate) provider: String,
    pub(crate) model: ModelName,
    pub(crate) only_model: bool,
    pub(crate) settings: Settings,
    pub(crate) sees_images: bool,
    pub(crate) limits: ReplyLimits,
    pub(crate) timeouts: ChatTimeouts,
    pub(crate) faults: Faults,
    pub(crate) clock: Option<Arc<dyn Clock>>,
}

impl ChatModel {
    /// A model of OpenRouter, for example `anthropic/claude-sonnet-4.5`.
    pub fn openrouter(model: impl Into<ModelName>, key: impl Into<ApiKey>) -> ChatModelBuilder {
        ChatModelBuilder::openrouter(model.into(), key.into())
    }

    /// A model of any compatible endpoint; `base_url` is what the vendor calls the base URL
    /// (`http://localhost:11434/v1`), or the full endpoint.
    pub fn compatible(base_url: impl Into<String>, model: impl Into<ModelName>) -> ChatModelBuilder {
        ChatModelBuilder::compatible(base_url.into(), model.into())
    }

    pub(crate) fn new(inner: Inner) -> Self {
        Self(Arc::new(inner))
    }
}

impl fmt::Debug for ChatModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let endpoint = self.0.endpoint.shown();
        f.debug_struct("ChatModel")
            .field("endpoint", &endpoint)
            .field("model", &self.0.model)
            .finish_non_exhaustive()
    }
}

impl Model for ChatModel {
    async fn step(&self, request: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        let inner = &*self.0;
        let started = Instant::now();
        let names = ToolNames::of(request.offer.tools.iter().map(|tool| tool.name.as_str()));
        let wish = request.offer.model.as_ref().filter(|_| !inner.only_model);
        let asked = Asked {
            provider: &inner.provider,
            model: wish.unwrap_or(&inner.model).as_str(),
            names: &names,
            messages: request.view.len(),
        };
        let body = inner.body(&request, asked)?;
        let limit = inner.time_left(&request);
        let mut exchange =
            Exchange { inner, deltas, names: &names, assembler: Assembler::new(inner.limits.clone()) };
        let outcome = tokio::select! {
            biased;
            () = request.cancel.cancelled() => Err(inner.faults.cancelled()),
            outcome = timeout(limit, exchange.run(body)) => {
                outcome.unwrap_or_else(|_| Err(inner.faults.timeout("did not finish the answer", limit.into())))
            }
        };
        let streamed = exchange.assembler.finish();
        let result = match outcome {
            Ok(document) => judge(&document.unwrap_or(streamed), asked, &inner.faults),
            Err(fault) => Err(with_partial(fault, &streamed, asked)),
        };
        finish(result, started.elapsed())
    }
}

impl Inner {
    fn body(&self, request: &ModelRequest, asked: Asked<'_>) -> Result<String, ModelFault> {
        let wrong = |text: String| ModelFault::new(ModelFaultCode::Configuration, text);
        let agent = request.offer.settings.as_ref().filter(|settings| !settings.is_null());
        let settings = match agent.map(Settings::parse).transpose() {
            Ok(None) => self.settings.clone(),
            Ok(Some(stronger)) => self.settings.overlaid(stronger),
            Err(error) => {
                let hint = error.hint().unwrap_or_default();
                return Err(wrong(format!("agent `{}`: {error}; {hint}", request.offer.agent)));
            }
        };
        let target = Target { provider: asked.provider, model: asked.model, sees_images: self.sees_images };
        request::body(request, target, asked.names, &settings)
            .map_err(|error| wrong(format!("the request has no JSON form: {error}")))
    }

    /// The time that this request may take.
    fn time_left(&self, request: &ModelRequest) -> Duration {
        let deadline = request.deadline.zip(self.clock.as_ref());
        let left = deadline.map(|(deadline, clock)| deadline.since(clock.now()).duration());
        left.map_or(self.timeouts.total, |left| left.min(self.timeouts.total))
    }
}

/// One request and what has arrived of its answer.
struct Exchange<'a> {
    inner: &'a Inner,
    deltas: &'a dyn Deltas,
    names: &'a ToolNames,
    assembler: Assembler,
}

impl Exchange<'_> {
    /// Sends the request and reads the reply: a document is returned, a stream goes to the assembler.
    async fn run(&mut self, body: String) -> Result<Option<Completion>, ModelFault> {
        let request = self.inner.client.post(self.inner.endpoint.url().clone()).body(body);
        let sent = timeout(self.inner.timeouts.idle, Box::pin(request.send())).await;
        let mut response = match sent {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(self.inner.faults.transport(&error.without_url())),
            Err(_) => return Err(self.idle("did not begin an answer")),
        };
        if !response.status().is_success() {
            return Err(self.error_reply(response).await);
        }
        let header = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        if header.is_some_and(|kind| kind.to_ascii_lowercase().contains("text/event-stream")) {
            return self.stream(&mut response).await.map(|()| None);
        }
        self.document(response).await
    }

    /// Reads a stream to its end. An answer that is whole, or failed, does not wait for the formal end:
    /// some endpoints never send it, and what happens to the connection then changes nothing.
    async fn stream(&mut self, response: &mut reqwest::Response) -> Result<(), ModelFault> {
        loop {
            match self.next(response).await {
                Ok(Some(bytes)) => self.feed(&bytes)?,
                Ok(None) => return Ok(()),
                Err(_) if self.assembler.has_finish_reason() => return Ok(()),
                Err(fault) => return Err(fault),
            }
            if self.assembler.is_done() || self.assembler.has_error() {
                return Ok(());
            }
        }
    }

    fn feed(&mut self, bytes: &[u8]) -> Result<(), ModelFault> {
        let (deltas, names) = (self.deltas, self.names);
        let fed = self.assembler.feed(bytes, &mut |part| deltas.part(renamed(part, names)));
        fed.map_err(|error| self.inner.faults.too_large(&error))
    }

    async fn next(&self, response: &mut reqwest::Response) -> Result<Option<bytes::Bytes>, ModelFault> {
        match timeout(self.inner.timeouts.idle, response.chunk()).await {
            Ok(Ok(bytes)) => Ok(bytes),
            Ok(Err(error)) => Err(self.inner.faults.transport(&error.without_url())),
            Err(_) => Err(self.idle("sent nothing more")),
        }
    }

    fn idle(&self, what: &str) -> ModelFault {
        self.inner.faults.timeout(what, self.inner.timeouts.idle.into())
    }

    /// A reply that does not call itself an event stream: usually one JSON document, sometimes a stream
    /// under the wrong name.
    async fn document(&mut self, mut response: reqwest::Response) -> Result<Option<Completion>, ModelFault> {
        let mut body = Vec::new();
        while let Some(bytes) = self.next(&mut response).await? {
            body.extend_from_slice(&bytes);
            if body.len() > self.inner.limits.body {
                let limit = self.inner.limits.body;
                let error = crate::AdapterError::TooLarge { what: "reply", limit, unit: "bytes" };
                return Err(self.inner.faults.too_large(&error));
            }
        }
        let text = String::from_utf8_lossy(&body);
        let start = text.trim_start_matches('\u{feff}').trim_start();
        if start.starts_with("data:") || start.starts_with(':') || start.starts_with("event:") {
            self.feed(&body)?;
            return Ok(None);
        }
        if !start.starts_with('{') || harness_core::Json::parse(start).is_err() {
            return Err(self.inner.faults.protocol("a reply that is neither JSON nor an event stream"));
        }
        let (deltas, names) = (self.deltas, self.names);
        let limits = self.inner.limits.clone();
        let read = Completion::from_document(start, limits, &mut |part| deltas.part(renamed(part, names)));
        read.map(Some).map_err(|error| self.inner.faults.too_large(&error))
    }

    async fn error_reply(&self, mut response: reqwest::Response) -> ModelFault {
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        let mut reply = ErrorReply {
            status: response.status().as_u16(),
            retry_after: retry_after(header),
            location: header(LOCATION.as_str()).map(str::to_owned),
            body: String::new(),
        };
        let mut body = Vec::new();
        while let Ok(Some(bytes)) = self.next(&mut response).await {
            body.extend_from_slice(&bytes);
            if body.len() >= self.inner.limits.error_body {
                body.truncate(self.inner.limits.error_body);
                break;
            }
        }
        reply.body = String::from_utf8_lossy(&body).into_owned();
        self.inner.faults.http(&reply)
    }
}

/// A piece with the tool's own name in place of the one that was sent.
fn renamed(part: DeltaPart, names: &ToolNames) -> DeltaPart {
    if let DeltaPart::CallStarted { index, name } = part {
        return DeltaPart::CallStarted { index, name: ToolName::from(names.own(name.as_str())) };
    }
    part
}

/// What a reply that came to its end amounts to.
fn judge(answer: &Completion, asked: Asked<'_>, faults: &Faults) -> Result<AssistantMessage, ModelFault> {
    let verdict = answer.verdict();
    let fault = match verdict {
        Verdict::Invalid(InvalidKind::Transient | InvalidKind::ProviderError) => match &answer.error {
            Some(error) => faults.reported(error),
            None if answer.finish_reason.is_some() => faults.unexplained(),
            None if answer.malformed_events > 0 && answer::partial(answer, asked).is_none() => {
                faults.protocol("an event stream that is no chat completion")
            }
            None => faults.cut(),
        },
        Verdict::FinalAnswer { .. } | Verdict::ToolRequest | Verdict::Invalid(_) => {
            return Ok(answer::message(answer, verdict, asked));
        }
    };
    Err(with_partial(fault, answer, asked))
}

fn with_partial(fault: ModelFault, answer: &Completion, asked: Asked<'_>) -> ModelFault {
    match answer::partial(answer, asked) {
        Some(partial) => fault.with_partial(partial),
        None => fault,
    }
}

/// Notes how long the call took.
fn finish(
    mut result: Result<AssistantMessage, ModelFault>,
    took: Duration,
) -> Result<AssistantMessage, ModelFault> {
    let took = Millis::from(took);
    let message = match &mut result {
        Ok(message) => Some(message),
        Err(fault) => {
            tracing::debug!(code = fault.code.as_str(), status = fault.http_status, %took, "model call failed");
            fault.partial.as_deref_mut()
        }
    };
    if let Some(usage) = message.and_then(|message| message.usage.as_mut()) {
        Arc::make_mut(usage).latency_ms = Some(took.0);
    }
    result
}
