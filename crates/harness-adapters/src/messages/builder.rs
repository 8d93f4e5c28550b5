//! How a model of the Messages API is set up.

use std::borrow::Cow;
use std::sync::Arc;

use super::model::{MessagesForm, MessagesModel};
use super::request::RESERVED;
use super::settings::think;
use crate::AdapterError;
use crate::http::PromptCache;
use crate::http::client::Client;
use crate::http::setup::{Auth, Protocol, Setup, Vendor, setup_methods};

pub(super) static MESSAGES: Protocol = Protocol {
    endpoint: "an Anthropic-compatible endpoint",
    reply: "answer of the Messages API",
    path: "/messages",
    reserved: &RESERVED,
    auth: Auth::Header(Cow::Borrowed("x-api-key")),
    headers: &[("anthropic-version", "2023-06-01")],
    think,
};

pub(super) static ANTHROPIC: Vendor =
    Vendor { provider: "anthropic", base_url: "https://api.anthropic.com/v1", key_name: "ANTHROPIC_API_KEY" };

/// Tokens of an answer where neither the adapter nor the agent says how many. Models before Claude 3.5
/// allow only half of it and need the setting.
pub(super) const MAX_TOKENS: u64 = 8_192;

/// Sets up a [`MessagesModel`]; made by [`MessagesModel::anthropic`] and [`MessagesModel::compatible`].
#[must_use]
#[derive(Debug)]
pub struct MessagesModelBuilder {
    setup: Setup,
    cache: PromptCache,
}

impl MessagesModelBuilder {
    pub(super) fn new(setup: Setup) -> Self {
        Self { setup, cache: PromptCache::default() }
    }

    setup_methods! {
        key: "The key, sent as `x-api-key`. Default none.",
        key_name: "environment variable. Default `ANTHROPIC_API_KEY` for Anthropic, else `the API key`.",
        settings: "Settings that become part of each request's body (`max_tokens`, `temperature`, `thinking`,\n\
            `tool_choice`, …), an object. An agent's own settings win key by key.\n\n\
            The words of chat completions are understood too, so that one agent runs on either protocol:\n\
            `max_completion_tokens`, `stop`, `user`, `parallel_tool_calls`, `response_format` with a JSON\n\
            schema, `reasoning`, `reasoning_effort`, and a `tool_choice` of that form."
    }

    /// Sets the parts of a request that the provider caches for the next one. Default:
    /// [`PromptCache::FiveMinutes`], which marks the end of the tools, of the instructions, of the
    /// conversation, and of the conversation in the previous request. Settings with a
    /// `cache_control` disable it.
    pub fn prompt_cache(mut self, cache: PromptCache) -> Self {
        self.cache = cache;
        self
    }

    /// Checks everything and makes the model. Nothing is sent yet.
    ///
    /// # Errors
    /// The one problem, or [`AdapterError::Several`] with all of them.
    pub fn build(self) -> Result<MessagesModel, AdapterError> {
        let form = MessagesForm { cache: self.cache };
        Ok(MessagesModel(Arc::new(Client { service: self.setup.build()?, form })))
    }
}
