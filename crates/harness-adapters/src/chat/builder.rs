//! How a chat model is set up.

use std::fmt;

use harness_core::ModelName;

use super::model::ChatModel;
use super::request::RESERVED;
use crate::http::setup::{Protocol, Setup, Vendor, setup_methods};
use crate::{AdapterError, ApiKey};

pub(super) static CHAT: Protocol = Protocol {
    endpoint: "an OpenAI-compatible endpoint",
    reply: "chat completion",
    path: "/chat/completions",
    reserved: &RESERVED,
    key: ("authorization", "Bearer "),
    headers: &[],
};

pub(super) static OPENROUTER: Vendor = Vendor {
    provider: "openrouter",
    base_url: "https://openrouter.ai/api/v1",
    key_name: "OPENROUTER_API_KEY",
};

/// Sets up a [`ChatModel`]; made by [`ChatModel::openrouter`] and [`ChatModel::compatible`].
#[must_use]
pub struct ChatModelBuilder {
    setup: Setup,
}

impl ChatModelBuilder {
    pub(crate) fn openrouter(model: ModelName, key: ApiKey) -> Self {
        Self { setup: Setup::hosted(&CHAT, &OPENROUTER, model, key) }
    }

    pub(crate) fn compatible(base_url: String, model: ModelName) -> Self {
        Self { setup: Setup::compatible(&CHAT, base_url, model) }
    }

    setup_methods! {
        key: "The key, sent as a bearer token. Default none.",
        key_name: "environment variable. Default `OPENROUTER_API_KEY` for OpenRouter, else `the API key`.",
        settings: "Settings that become part of each request's body (`temperature`, `max_tokens`, `reasoning`,\n\
            `provider`, …), an object. An agent's own settings win key by key."
    }

    /// Names your application to OpenRouter, which lists it under its URL and title.
    pub fn attribution(self, url: impl Into<String>, title: impl Into<String>) -> Self {
        self.header("http-referer", url).header("x-title", title)
    }

    /// Checks everything and makes the model. Nothing is sent yet.
    ///
    /// # Errors
    /// The one problem, or [`AdapterError::Several`] with all of them.
    pub fn build(self) -> Result<ChatModel, AdapterError> {
        self.setup.build().map(ChatModel::new)
    }
}

impl fmt::Debug for ChatModelBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatModelBuilder").field("model", &self.setup.model).finish_non_exhaustive()
    }
}
