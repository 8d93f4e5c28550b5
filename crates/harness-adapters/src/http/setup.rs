//! Common state of the builders of HTTP models, from which a [`Service`] is built.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use harness_core::port::{Clock, ThinkingLevel};
use harness_core::{Json, ModelName};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};

use super::endpoint::Endpoint;
use super::fault::Faults;
use super::service::Service;
use super::settings::{RESPONSE_FORMAT, Settings};
use super::{ReplyLimits, ReplyTimeouts};
use crate::{AdapterError, ApiKey, OutputSchema, PriceTable, ThinkingLevels};

/// Properties of a protocol.
#[derive(Debug)]
pub(crate) struct Protocol {
    /// Name of its endpoints in messages, with an article.
    pub(crate) endpoint: &'static str,
    /// Name of its replies in messages, without an article.
    pub(crate) reply: &'static str,
    /// The path that is added to a base URL.
    pub(crate) path: &'static str,
    /// Keys of the body that the adapter writes itself.
    pub(crate) reserved: &'static [&'static str],
    /// Header of the API key.
    pub(crate) auth: Auth,
    /// Headers of every request, which a user's own replace.
    pub(crate) headers: &'static [(&'static str, &'static str)],
    /// Writes a level of thinking into the settings of a request, in place of what they say of it.
    pub(crate) think: fn(&mut Settings, &Thought<'_>),
}

/// How hard a request is to think.
#[derive(Debug)]
pub(crate) struct Thought<'a> {
    /// Requested level.
    pub(crate) level: ThinkingLevel,
    /// Supported levels.
    pub(crate) levels: &'a ThinkingLevels,
    /// Whether a router is asked, which has one word for all its models.
    pub(crate) routed: bool,
}

impl Thought<'_> {
    /// The word for it, where there is one.
    pub(crate) fn effort(&self) -> Option<&str> {
        self.levels.effort(self.level, self.routed)
    }
}

/// Header of an API key.
#[derive(Debug, Clone)]
pub(crate) enum Auth {
    /// `authorization`, as a bearer token.
    Bearer,
    /// This header, without a prefix.
    Header(Cow<'static, str>),
}

impl Auth {
    /// The header that carries `key`.
    pub(crate) fn header(&self, key: &str) -> Result<(HeaderName, HeaderValue), AdapterError> {
        let (name, value) = match self {
            Self::Bearer => (AUTHORIZATION, HeaderValue::try_from(format!("Bearer {key}"))),
            Self::Header(name) => {
                let fault = |_| AdapterError::Header { name: name.to_string() };
                (HeaderName::try_from(&**name).map_err(fault)?, HeaderValue::try_from(key))
            }
        };
        let mut value =
            value.map_err(|_| AdapterError::Key { reason: "holds a character that no header may carry" })?;
        value.set_sensitive(true);
        Ok((name, value))
    }
}

/// Settings of a builder.
pub(crate) struct Setup {
    pub(crate) protocol: &'static Protocol,
    pub(crate) provider: Option<String>,
    pub(crate) base_url: String,
    pub(crate) model: ModelName,
    pub(crate) only_model: bool,
    pub(crate) key: Option<ApiKey>,
    pub(crate) key_name: String,
    pub(crate) settings: Json,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) auth: Auth,
    pub(crate) sees_images: bool,
    pub(crate) limits: ReplyLimits,
    pub(crate) timeouts: ReplyTimeouts,
    pub(crate) clock: Option<Arc<dyn Clock>>,
    pub(crate) prices: PriceTable,
    pub(crate) levels: ThinkingLevels,
    /// Schema of answers, unless an agent's settings override it.
    pub(crate) output_schema: Option<OutputSchema>,
    /// Whether the endpoint understands schemas of answers.
    pub(crate) structured_output: bool,
    /// Whether the endpoint's events are passed on as they are, too.
    pub(crate) provider_events: bool,
}

/// Shows the model alone: headers and settings may hold secrets.
impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup").field("model", &self.model).finish_non_exhaustive()
    }
}

/// OpenRouter, the router that has one word for every model's thinking.
pub(crate) static OPENROUTER: Vendor = Vendor {
    provider: "openrouter",
    base_url: "https://openrouter.ai/api/v1",
    key_name: "OPENROUTER_API_KEY",
};

/// The service of one vendor.
#[derive(Debug)]
pub(crate) struct Vendor {
    /// Value of `provider` in messages.
    pub(crate) provider: &'static str,
    pub(crate) base_url: &'static str,
    /// The environment variable in which people keep its key.
    pub(crate) key_name: &'static str,
}

impl Setup {
    pub(crate) fn hosted(
        protocol: &'static Protocol,
        vendor: &Vendor,
        model: ModelName,
        key: ApiKey,
    ) -> Self {
        let setup = Self::compatible(protocol, vendor.base_url.to_owned(), model);
        Self {
            provider: Some(vendor.provider.to_owned()),
            key: Some(key),
            key_name: vendor.key_name.to_owned(),
            ..setup
        }
    }

    pub(crate) fn compatible(protocol: &'static Protocol, base_url: String, model: ModelName) -> Self {
        Self {
            protocol,
            provider: None,
            base_url,
            model,
            only_model: false,
            key: None,
            key_name: "the API key".to_owned(),
            settings: Json::empty_object(),
            headers: Vec::new(),
            query: Vec::new(),
            auth: protocol.auth.clone(),
            sees_images: true,
            limits: ReplyLimits::default(),
            timeouts: ReplyTimeouts::default(),
            clock: None,
            prices: PriceTable::builtin(),
            levels: ThinkingLevels::reasoning(),
            output_schema: None,
            structured_output: true,
            provider_events: false,
        }
    }

    /// Validates all settings; the error lists all problems.
    pub(crate) fn build(self) -> Result<Service, AdapterError> {
        let format = self.output_schema.as_ref().map(OutputSchema::response_format).transpose();
        match (self.service(), format) {
            (Ok(mut service), Ok(format)) => {
                if let Some(format) = format {
                    service.settings.set_missing(RESPONSE_FORMAT, format);
                }
                Ok(service)
            }
            (Err(problem), Ok(_)) | (Ok(_), Err(problem)) => Err(problem),
            (Err(one), Err(other)) => Err(AdapterError::of(vec![one, other])),
        }
    }

    fn service(self) -> Result<Service, AdapterError> {
        let mut problems = Vec::new();
        let endpoint = Endpoint::parse(&self.base_url, self.protocol.path, &self.query);
        let endpoint = endpoint.map_err(|problem| problems.push(problem)).ok();
        let settings = Settings::parse(&self.settings, self.protocol.reserved);
        let settings = settings.map_err(|problem| problems.push(problem)).ok();
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
        let faults = Faults {
            endpoint: endpoint.shown(),
            protocol: self.protocol,
            key_name: self.key_name,
            key: self.key,
            key_of_request: None,
        };
        Ok(Service {
            client,
            provider: self.provider.unwrap_or_else(|| endpoint.host().to_owned()),
            endpoint,
            auth: self.auth,
            model: self.model,
            only_model: self.only_model,
            settings,
            sees_images: self.sees_images,
            limits: self.limits,
            timeouts: self.timeouts,
            faults,
            clock: self.clock,
            prices: self.prices,
            levels: self.levels,
            structured_output: self.structured_output,
            provider_events: self.provider_events,
        })
    }

    fn all_headers(&self) -> Result<HeaderMap, AdapterError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("harness/", env!("CARGO_PKG_VERSION"))));
        let fixed = self.protocol.headers.iter().copied();
        let own = self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in fixed.chain(own) {
            let fault = || AdapterError::Header { name: name.to_owned() };
            let header = HeaderName::try_from(name).map_err(|_| fault())?;
            headers.insert(header, HeaderValue::try_from(value).map_err(|_| fault())?);
        }
        if let Some(key) = &self.key {
            if key.is_empty() {
                return Err(AdapterError::Key { reason: "is empty" });
            }
            let (name, value) = self.auth.header(key.expose())?;
            headers.insert(name, value);
        }
        Ok(headers)
    }
}

/// The methods that the builders of all protocols have in common; the builder holds a `setup`.
macro_rules! setup_methods {
    (key: $key:literal, key_name: $key_name:literal, settings: $settings:literal) => {
        #[doc = $key]
        pub fn key(mut self, key: impl Into<$crate::ApiKey>) -> Self {
            self.setup.key = Some(key.into());
            self
        }

        /// Name that errors show when the API key is rejected, for example that of an
        #[doc = $key_name]
        pub fn key_name(mut self, name: impl Into<String>) -> Self {
            self.setup.key_name = name.into();
            self
        }

        /// Another base URL (`https://host/api/v1`), or a full endpoint.
        pub fn base_url(mut self, url: impl Into<String>) -> Self {
            self.setup.base_url = url.into();
            self
        }

        /// Always uses this adapter's model, even if an agent names one. Default: false.
        pub fn only_model(mut self) -> Self {
            self.setup.only_model = true;
            self
        }

        #[doc = $settings]
        pub fn settings(mut self, settings: harness_core::Json) -> Self {
            self.setup.settings = settings;
            self
        }

        /// Requests answers as JSON of this schema, unless an agent's settings override it.
        /// Default: free text. An answer that is not JSON is marked invalid.
        pub fn output_schema(mut self, schema: impl Into<$crate::OutputSchema>) -> Self {
            self.setup.output_schema = Some(schema.into());
            self
        }

        /// For endpoints that do not know schemas of answers: asks for an answer that must match an agent's or prompt's
        /// schema as the call of a tool. Default: the endpoint is sent the schema.
        pub fn without_structured_output(mut self) -> Self {
            self.setup.structured_output = false;
            self
        }

        /// Passes on each event of the endpoint as it arrived, beside the deltas made of it
        /// ([`DeltaPart::Provider`](harness_core::port::DeltaPart::Provider)). Default: not passed on.
        pub fn provider_events(mut self) -> Self {
            self.setup.provider_events = true;
            self
        }

        /// A header of each request, in addition to the adapter's own.
        pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
            self.setup.headers.push((name.into(), value.into()));
            self
        }

        /// Adds a query parameter to the URL of each request.
        pub fn query(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
            self.setup.query.push((name.into(), value.into()));
            self
        }

        /// Sends the API key in this header, without a prefix, instead of the header of the protocol.
        pub fn key_header(mut self, name: impl Into<String>) -> Self {
            self.setup.auth = $crate::http::setup::Auth::Header(std::borrow::Cow::Owned(name.into()));
            self
        }

        /// Replaces images by a short note, for models that see none.
        pub fn without_images(mut self) -> Self {
            self.setup.sees_images = false;
            self
        }

        /// Bounds on what a reply may hold.
        pub fn limits(mut self, limits: $crate::http::ReplyLimits) -> Self {
            self.setup.limits = limits;
            self
        }

        /// How long to wait.
        pub fn timeouts(mut self, timeouts: $crate::http::ReplyTimeouts) -> Self {
            self.setup.timeouts = timeouts;
            self
        }

        /// Sets the thinking levels that requests can use. Default:
        /// [`ThinkingLevels::reasoning`]($crate::ThinkingLevels::reasoning).
        pub fn thinking_levels(mut self, levels: $crate::ThinkingLevels) -> Self {
            self.setup.levels = levels;
            self
        }

        /// Prices for answers that come without a cost. Default the ones that ship with this crate.
        pub fn prices(mut self, prices: $crate::PriceTable) -> Self {
            self.setup.prices = prices;
            self
        }

        /// The clock by which a request's deadline is read. Without it the deadline is left to the driver,
        /// which drops the call when it passes.
        pub fn clock(mut self, clock: std::sync::Arc<dyn harness_core::port::Clock>) -> Self {
            self.setup.clock = Some(clock);
            self
        }
    };
}
pub(crate) use setup_methods;
