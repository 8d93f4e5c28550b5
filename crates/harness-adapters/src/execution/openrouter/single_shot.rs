//! One request, one text.

use std::fmt;
use std::time::Duration;

use harness_core::cancel::Cancel;
use harness_core::{Json, ModelName};

use super::direct::{BASE_URL, Broken, Direct, Reply};
use crate::chat::usage_of;
use crate::execution::single_shot::{SingleShot, SingleShotAnswer, SingleShotFault, SingleShotRequest};
use crate::execution::trimmed;
use crate::{AdapterError, ApiKey};

/// A question with its history as one request to OpenRouter.
///
/// It never tries again. The text comes as it is; an empty one is a fault, as is an answer that a filter cut
/// off or that came with an error.
///
/// ```no_run
/// use harness_adapters::ApiKey;
/// use harness_adapters::execution::{OpenRouterSingleShotAdapter, SingleShot, SingleShotRequest};
/// use harness_core::cancel::Cancel;
///
/// # async fn ask(key: ApiKey) -> Result<(), Box<dyn std::error::Error>> {
/// let quick = OpenRouterSingleShotAdapter::builder(Some(key)).build()?;
/// let request = SingleShotRequest::new("Answer in one line.", "Name three primes.");
/// let answer = quick.generate(request, &Cancel::never()).await?;
/// println!("{}", answer.text);
/// # Ok(())
/// # }
/// ```
pub struct OpenRouterSingleShotAdapter {
    direct: Direct,
    temperature: Option<f64>,
}

/// Sets up an [`OpenRouterSingleShotAdapter`].
#[must_use]
pub struct OpenRouterSingleShotBuilder {
    key: Option<ApiKey>,
    model: ModelName,
    base_url: String,
    timeout: Duration,
    temperature: Option<f64>,
}

impl fmt::Debug for OpenRouterSingleShotAdapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenRouterSingleShotAdapter")
            .field("timeout", &self.direct.timeout)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for OpenRouterSingleShotBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenRouterSingleShotBuilder").field("model", &self.model).finish_non_exhaustive()
    }
}

impl OpenRouterSingleShotBuilder {
    /// The model. Default `anthropic/claude-haiku-4-5`.
    pub fn model(mut self, model: impl Into<ModelName>) -> Self {
        self.model = model.into();
        self
    }

    /// Another base URL, or a full endpoint. Default OpenRouter's.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = url.into();
        self
    }

    /// How long the whole reply may take. Default 30 seconds.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The temperature. Default none: the model's own.
    pub fn temperature(mut self, temperature: f64) -> Self {
        self.temperature = Some(temperature);
        self
    }

    /// Checks everything and makes the adapter. Nothing is sent yet.
    ///
    /// # Errors
    /// When the URL or the key cannot be used.
    pub fn build(self) -> Result<OpenRouterSingleShotAdapter, AdapterError> {
        let direct = Direct::new(self.base_url, self.model, self.key, self.timeout)?;
        let temperature = self.temperature.filter(|temperature| temperature.is_finite());
        Ok(OpenRouterSingleShotAdapter { direct, temperature })
    }
}

impl OpenRouterSingleShotAdapter {
    /// Begins to set up an adapter. Without a key, or with an empty one, every request fails.
    pub fn builder(key: Option<ApiKey>) -> OpenRouterSingleShotBuilder {
        OpenRouterSingleShotBuilder {
            key,
            model: ModelName::from("anthropic/claude-haiku-4-5"),
            base_url: BASE_URL.to_owned(),
            timeout: Duration::from_secs(30),
            temperature: None,
        }
    }

    fn body(&self, request: &SingleShotRequest) -> String {
        let developer = request.developer_prompt.as_deref().filter(|text| !trimmed(text).is_empty());
        let messages = [("system", request.system_prompt.as_str())]
            .into_iter()
            .chain(developer.map(|text| ("system", text)))
            .chain(request.history.iter().map(|said| (said.role.as_str(), said.content.as_str())))
            .chain([("user", request.text.as_str())]);
        let temperature = self.temperature.and_then(|value| Json::of(&value).ok());
        self.direct.body(messages, temperature.map(|value| ("temperature", value)))
    }

    fn answer(&self, reply: &Reply) -> Result<SingleShotAnswer, SingleShotFault> {
        if !reply.is_success() {
            let message = reply.said().message.map(|message| self.direct.shown(&message));
            let (status, retryable) = (reply.status, reply.retryable());
            let retry_after = reply.retry_after;
            return Err(SingleShotFault::Http { status, message, retryable, retry_after });
        }
        let unreadable = |reason: String| SingleShotFault::Unreadable { reason };
        let body = reply.body.as_ref().map_err(|reason| unreadable(reason.clone()))?;
        let answer = self.direct.read(body).map_err(|error| unreadable(error.to_string()))?;
        if let Some(error) = &answer.error {
            return Err(SingleShotFault::Reported { message: self.direct.shown(&error.message) });
        }
        let finish = answer.finish_reason.as_deref();
        if let Some(stopped @ ("error" | "content_filter")) = finish {
            return Err(SingleShotFault::Stopped { finish_reason: stopped.to_owned() });
        }
        let truncated = finish == Some("length");
        let usage = answer.usage.as_ref().map(usage_of);
        let text = answer.content.filter(|text| !text.is_empty()).ok_or(SingleShotFault::NoText)?;
        Ok(SingleShotAnswer::new(text, usage, truncated))
    }
}

impl SingleShot for OpenRouterSingleShotAdapter {
    async fn generate(
        &self,
        request: SingleShotRequest,
        cancel: &Cancel,
    ) -> Result<SingleShotAnswer, SingleShotFault> {
        if !self.direct.has_key() {
            return Err(SingleShotFault::NoKey);
        }
        match self.direct.post(self.body(&request), cancel).await {
            Ok(reply) => self.answer(&reply),
            Err(Broken::Timeout) => Err(SingleShotFault::Timeout { after: self.direct.timeout.into() }),
            Err(Broken::Transport(reason)) => Err(SingleShotFault::Transport { reason }),
            Err(Broken::Cancelled) => Err(SingleShotFault::Cancelled),
        }
    }
}
