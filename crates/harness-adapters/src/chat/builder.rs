//! How a chat model is set up.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use harness_core::port::Clock;
use harness_core::{Json, ModelName};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};

use super::endpoint::Endpoint;
use super::fault::Faults;
use super::model::{ChatModel, Inner};
use super::request::Settings;
use super::stream::ReplyLimits;
use crate::{AdapterError, ApiKey};

const OPENROUTER: &str = "https://openrouter.ai/api/v1";

/// How long a chat model waits, at most.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChatTimeouts {
    /// For the connection. Default 10 seconds.
    pub connect: Duration,
    /// For the next byte, the first one included; a keep-alive comment counts. Default 5 minutes.
    pub idle: Duration,
    /// For the whole answer. Default 10 minutes.
    pub total: Duration,
}

impl Default for ChatTimeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            idle: Duration::from_mins(5),
            total: Duration::from_mins(10),
        }
    }
}

/// Sets up a [`ChatModel`]; made by [`ChatModel::openrouter`] and [`ChatModel::compatible`].
#[must_use]
pub struct ChatModelBuilder {
    provider: Option<String>,
    base_url: String,
    model: ModelName,
    only_model: bool,
    key: Option<ApiKey>,
    key_name: String,
    settings: Json,
    headers: Vec<(String, String)>,
    sees_images: bool,
    limits: ReplyLimits,
    timeouts: ChatTimeouts,
    clock: Option<Arc<dyn Clock>>,
}

impl ChatModelBuilder {
    pub(crate) fn openrouter(model: ModelName, key: ApiKey) -> Self {
        let mut builder = Self::compatible(OPENROUTER.to_owned(), model);
        builder.provider = Some("openrouter".to_owned());
        builder.key = Some(key);
        "OPENROUTER_API_KEY".clone_into(&mut builder.key_name);
        builder
    }

    pub(crate) fn compatible(base_url: String, model: ModelName) -> Self {
        Self {
            provider: None,
            base_url,
            model,
            only_model: false,
            key: None,
            key_name: "the API key".to_owned(),
            settings: Json::empty_object(),
            headers: Vec::new(),
            sees_images: true,
            limits: ReplyLimits::default(),
            timeouts: ChatTimeouts::default(),
            clock: None,
        }
    }

    /// The key, sent as a bearer token. Default none.
    pub fn key(mut self, key: impl Into<ApiKey>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// What a message tells people to check when the key is refused, for example the name of an
    /// environment variable. Default `OPENROUTER_API_KEY` for OpenRouter, else `the API key`.
    pub fn key_name(mut self, name: impl Into<String>) -> Self {
        self.key_name = name.into();
        self
    }

    /// Another base URL (`https://host/api/v1`), or a full endpoint.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = url.into();
        self
    }

    /// Asks for this adapter's model even where an agent names another one. Default false: an agent's
    /// model goes first.
    pub fn only_model(mut self) -> Self {
        self.only_model = true;
        self
    }

    /// Settings that become part of each request's body (`temperature`, `max_tokens`, `reasoning`,
    /// `provider`, …), an object. An agent's own settings win key by key.
    pub fn settings(mut self, settings: Json) -> Self {
        self.settings = settings;
        self
    }

    /// A header of each request, in addition to the adapter's own.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Names your application to OpenRouter, which lists it under its URL and title.
    pub fn attribution(self, url: impl Into<String>, title: impl Into<String>) -> Self {
        self.header("http-referer", url).header("x-title", title)
    }

    /// Replaces images by a short note, for models that see none.
    pub fn without_images(mut self) -> Self {
        self.sees_images = false;
        self
    }

    /// Bounds on what a reply may hold.
    pub fn limits(mut self, limits: ReplyLimits) -> Self {
        self.limits = limits;
        self
    }

    /// How long to wait.
    pub fn timeouts(mut self, timeouts: ChatTimeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// The clock by which a request's deadline is read. Without it the deadline is left to the driver,
    /// which drops the call when it passes.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Checks everything and makes the model. Nothing is sent yet.
    ///
    /// # Errors
    /// The one problem, or [`AdapterError::Several`] with all of them.
    pub fn build(self) -> Result<ChatModel, AdapterError> {
        let mut problems = Vec::new();
        let endpoint = Endpoint::parse(&self.base_url).map_err(|problem| problems.push(problem)).ok();
        let settings = Settings::parse(&self.settings).map_err(|problem| problems.push(problem)).ok();
        let headers = self.all_headers().map_err(|problem| problems.push(problem)).ok();
        let (Some(endpoint), Some(settings), Some(headers)) = (endpoint, settings, headers) else {
            return Err(AdapterError::of(problems));
        };
        let mut client = reqwest::Client::builder()
            .default_headers(headers)
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(self.timeouts.connect);
        if endpoint.url().scheme() == "http" {
            // A system without certificates can still use a local server.
            client = client.tls_certs_only([]);
        }
        if endpoint.is_loopback() {
            client = client.no_proxy();
        }
        let client = client.build().map_err(|error| AdapterError::Client { reason: error.to_string() })?;
        let faults = Faults { endpoint: endpoint.shown(), key_name: self.key_name, key: self.key };
        Ok(ChatModel::new(Inner {
            client,
            provider: self.provider.unwrap_or_else(|| endpoint.host().to_owned()),
            endpoint,
            model: self.model,
            only_model: self.only_model,
            settings,
            sees_images: self.sees_images,
            limits: self.limits,
            timeouts: self.timeouts,
            faults,
            clock: self.clock,
        }))
    }

    fn all_headers(&self) -> Result<HeaderMap, AdapterError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("harness/", env!("CARGO_PKG_VERSION"))));
        for (name, value) in &self.headers {
            let fault = || AdapterError::Header { name: name.clone() };
            let header = HeaderName::try_from(name.as_str()).map_err(|_| fault())?;
            headers.insert(header, HeaderValue::try_from(value.as_str()).map_err(|_| fault())?);
        }
        if let Some(key) = &self.key {
            if key.is_empty() {
                return Err(AdapterError::Key { reason: "is empty" });
            }
            let mut value = HeaderValue::try_from(format!("Bearer {}", key.expose()))
                .map_err(|_| AdapterError::Key { reason: "holds a character that no header may carry" })?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Ok(headers)
    }
}

impl fmt::Debug for ChatModelBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatModelBuilder").field("model", &self.model).finish_non_exhaustive()
    }
}
