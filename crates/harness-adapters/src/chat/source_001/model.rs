//! The model port, with the source's one retry.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use harness_core::Json;
use harness_core::message::AssistantMessage;
use harness_core::port::{DeltaPart, Deltas, Model, ModelFault, ModelRequest, Secret};
use tokio::time::{sleep, timeout};

use super::body::body;
use super::builder::OpenRouterModelBuilder;
use super::output::{self, Outcome};
use crate::http::service::{Service, no_json};

/// The tool-capable model adapter of source 001.
///
/// ```
/// use harness_adapters::chat::source_001::OpenRouterModel;
///
/// let model = OpenRouterModel::builder().key("sk-or-v1-0123").temperature(0.0).build()?;
/// # Ok::<(), harness_adapters::AdapterError>(())
/// ```
///
/// The message it gives holds the source's output: [`output`](AssistantMessage::output) is a final
/// answer, a request for tools, or invalid with the source's kind, code, reason, raw reply and
/// `retriedAt`; the provider metadata is the source's `metadata`. Usage counts request and answer tokens
/// only.
///
/// - *Cancellation*: the only fault. The connection is closed.
/// - *Secrets*: the key is taken out of everything that came back.
#[derive(Clone)]
pub struct OpenRouterModel(Arc<Inner>);

pub(super) struct Inner {
    pub(super) service: Service,
    pub(super) has_key: bool,
    pub(super) temperature: Option<Json>,
    pub(super) retry_delay: Duration,
}

/// How one attempt ended.
pub(super) enum Reply {
    /// With a reply of this status.
    Answered { status: u16, body: String },
    /// With none in time.
    TimedOut,
    /// With a connection that failed, for this reason.
    Broken(String),
}

impl OpenRouterModel {
    /// Begins with the source's defaults.
    pub fn builder() -> OpenRouterModelBuilder {
        OpenRouterModelBuilder::new()
    }

    pub(super) fn new(inner: Inner) -> Self {
        Self(Arc::new(inner))
    }
}

impl fmt::Debug for OpenRouterModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let service = &self.0.service;
        f.debug_struct("OpenRouterModel")
            .field("endpoint", &service.endpoint.shown())
            .field("model", &service.model)
            .finish_non_exhaustive()
    }
}

impl Model for OpenRouterModel {
    async fn step(&self, request: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        let inner = &*self.0;
        let model = inner.service.model.as_str();
        if !inner.has_key && request.key.as_ref().is_none_or(Secret::is_empty) {
            return Ok(output::without_key(model).into_message());
        }
        let work = inner.with_retry(&request);
        let outcome = tokio::select! {
            biased;
            () = request.cancel.cancelled() => return Err(inner.service.faults.cancelled()),
            outcome = work => outcome?,
        };
        let message = outcome.into_message();
        let text = message.joined_text();
        if !text.is_empty() {
            deltas.part(DeltaPart::Text(text));
        }
        Ok(message)
    }
}

impl Inner {
    /// Asks, and once more when the first answer is a fault that may pass.
    async fn with_retry(&self, request: &ModelRequest) -> Result<Outcome, ModelFault> {
        let model = self.service.model.as_str();
        let body = body(request, model, self.temperature.as_ref()).map_err(|error| no_json(&error))?;
        let first = output::of(&self.attempt(request, body.clone()).await, model);
        if !first.is_transient() {
            return Ok(first);
        }
        let retried_at = self.service.clock.as_ref().map(|clock| clock.now().iso());
        sleep(self.retry_delay).await;
        let mut second = output::of(&self.attempt(request, body).await, model);
        if second.is_transient()
            && let Some(invalid) = &mut second.invalid
        {
            invalid.retried_at = retried_at;
        }
        Ok(second)
    }

    async fn attempt(&self, request: &ModelRequest, body: String) -> Reply {
        let faults = self.service.faults_for(request);
        match timeout(self.service.time_left(request), Box::pin(self.post(request, body))).await {
            Ok(Ok((status, body))) => Reply::Answered { status, body: faults.without_keys(&body) },
            Ok(Err(reason)) => Reply::Broken(faults.without_keys(&reason)),
            Err(_) => Reply::TimedOut,
        }
    }

    /// The reply's status and body, or why there is none.
    async fn post(&self, request: &ModelRequest, body: String) -> Result<(u16, String), String> {
        let key = self.service.key_for(request).map_err(|fault| fault.message)?;
        let mut post = self.service.client.post(self.service.endpoint.url().clone()).body(body);
        if let Some((name, value)) = key {
            post = post.header(name, value);
        }
        let mut response = post.send().await.map_err(|error| innermost(&error))?;
        let limit = self.service.limits.body;
        let mut bytes = Vec::new();
        while let Some(more) = response.chunk().await.map_err(|error| innermost(&error))? {
            bytes.extend_from_slice(&more);
            if bytes.len() > limit {
                return Err(format!("the reply is larger than the bound of {limit} bytes"));
            }
        }
        Ok((response.status().as_u16(), String::from_utf8_lossy(&bytes).into_owned()))
    }
}

/// What lies below an error of the client; it never names the URL.
fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
