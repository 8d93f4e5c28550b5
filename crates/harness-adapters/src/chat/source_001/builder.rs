//! How the adapter is set up.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use harness_core::port::Clock;
use harness_core::{Json, ModelName};

use super::model::{Inner, OpenRouterModel};
use crate::chat::builder::{CHAT, OPENROUTER};
use crate::http::setup::Setup;
use crate::http::{ReplyLimits, ReplyTimeouts};
use crate::{AdapterError, ApiKey};

const MODEL: &str = "anthropic/claude-sonnet-4-6";

/// Sets up an [`OpenRouterModel`] with the source's settings and defaults.
#[must_use]
pub struct OpenRouterModelBuilder {
    setup: Setup,
    timeout: Duration,
    temperature: Option<f64>,
    retry_delay: Duration,
}

impl OpenRouterModelBuilder {
    pub(super) fn new() -> Self {
        let mut setup = Setup::compatible(&CHAT, OPENROUTER.base_url.to_owned(), ModelName::from(MODEL));
        setup.provider = Some(OPENROUTER.provider.to_owned());
        OPENROUTER.key_name.clone_into(&mut setup.key_name);
        setup.only_model = true;
        Self {
            setup,
            timeout: Duration::from_mins(1),
            temperature: None,
            retry_delay: Duration::from_millis(250),
        }
    }

    /// The key. Without one, or with an empty one, every step is answered as invalid and nothing is sent.
    pub fn key(mut self, key: impl Into<ApiKey>) -> Self {
        self.setup.key = Some(key.into()).filter(|key| !key.is_empty());
        self
    }

    /// The model. Default `anthropic/claude-sonnet-4-6`.
    pub fn model(mut self, model: impl Into<ModelName>) -> Self {
        self.setup.model = model.into();
        self
    }

    /// The endpoint. Default `https://openrouter.ai/api/v1/chat/completions`; the last part of the path is
    /// added where it is missing.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.setup.base_url = url.into();
        self
    }

    /// For each attempt, from sending to the last byte. Default 60 seconds.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sent as `temperature`. Default: not sent.
    pub fn temperature(mut self, temperature: f64) -> Self {
        self.temperature = Some(temperature);
        self
    }

    /// The wait before the only retry. Default 250 ms.
    pub fn retry_delay(mut self, delay: Duration) -> Self {
        self.retry_delay = delay;
        self
    }

    /// Bounds on what a reply may hold.
    pub fn limits(mut self, limits: ReplyLimits) -> Self {
        self.setup.limits = limits;
        self
    }

    /// The clock behind `retriedAt`, by which a request's deadline is read, too. Without it there is no
    /// `retriedAt`.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.setup.clock = Some(clock);
        self
    }

    /// Checks everything and makes the model. Nothing is sent yet.
    ///
    /// # Errors
    /// The one problem, or [`AdapterError::Several`] with all of them.
    pub fn build(mut self) -> Result<OpenRouterModel, AdapterError> {
        self.setup.timeouts = ReplyTimeouts { total: self.timeout, ..ReplyTimeouts::default() };
        let temperature = self.temperature.map(|temperature| Json::parse(&temperature.to_string()));
        let temperature = temperature
            .transpose()
            .map_err(|_| AdapterError::Settings { found: "a temperature that is no number" })?;
        let has_key = self.setup.key.is_some();
        let service = self.setup.build()?;
        Ok(OpenRouterModel::new(Inner { service, has_key, temperature, retry_delay: self.retry_delay }))
    }
}

impl fmt::Debug for OpenRouterModelBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenRouterModelBuilder").field("model", &self.setup.model).finish_non_exhaustive()
    }
}
