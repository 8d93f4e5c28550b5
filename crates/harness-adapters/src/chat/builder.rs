//! How a chat model is set up.

use std::sync::Arc;

use harness_core::Json;
use harness_core::port::ThinkingLevel;

use super::model::{ChatForm, ChatModel};
use super::request::RESERVED;
use crate::http::PromptCache;
use crate::http::client::Client;
use crate::http::settings::{Settings, reasoning};
use crate::http::setup::{Auth, OPENROUTER, Protocol, Setup, Thought, setup_methods};
use crate::{AdapterError, ThinkingLevels};

pub(super) static CHAT: Protocol = Protocol {
    endpoint: "an OpenAI-compatible endpoint",
    reply: "chat completion",
    path: "/chat/completions",
    reserved: &RESERVED,
    auth: Auth::Bearer,
    headers: &[],
    think,
};

/// A router is sent `reasoning`, others `reasoning_effort`.
fn think(settings: &mut Settings, thought: &Thought<'_>) {
    settings.take("reasoning_effort");
    let given = settings.take("reasoning");
    let setting = if thought.routed {
        reasoning(given.as_ref(), thought.effort()).map(|reasoning| ("reasoning", reasoning))
    } else {
        thought.effort().map(|effort| ("reasoning_effort", Json::string(effort)))
    };
    if let Some((key, value)) = setting {
        settings.set(key.to_owned(), value);
    }
}

/// Sets up a [`ChatModel`]; made by [`ChatModel::openrouter`] and [`ChatModel::compatible`].
#[must_use]
#[derive(Debug)]
pub struct ChatModelBuilder {
    setup: Setup,
    /// Settings set by builder methods; those of `setup` win.
    defaults: Vec<(&'static str, Json)>,
    cache: Option<PromptCache>,
    streams: bool,
}

impl ChatModelBuilder {
    pub(super) fn new(setup: Setup) -> Self {
        Self { setup, defaults: Vec::new(), cache: None, streams: true }
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

    /// Which part of a request the provider should keep for the next one: the end of the first
    /// instructions, of the conversation, and of the conversation as the request before had it, are marked
    /// (`cache_control`). Default [`PromptCache::FiveMinutes`] for Anthropic's models at OpenRouter, and
    /// [`PromptCache::Off`] for all others, whose providers need no marks. A setting `cache_control` switches
    /// it off.
    pub fn prompt_cache(mut self, cache: PromptCache) -> Self {
        self.cache = Some(cache);
        self
    }

    /// Asks for each answer as one JSON document: for endpoints and gateways that cannot stream, or whose streams
    /// lose something. Text then reaches the sink at once, at the end. Default: streamed.
    pub fn without_streaming(mut self) -> Self {
        self.streams = false;
        self
    }

    /// How hard to think, where the model can; [`ThinkingLevels`] says what it can, and the nearest level
    /// is asked for. OpenRouter is sent `reasoning`, others `reasoning_effort`. A request's own level goes before
    /// it.
    pub fn thinking(mut self, level: ThinkingLevel, levels: &ThinkingLevels) -> Self {
        let routed = self.setup.provider.as_deref() == Some(OPENROUTER.provider);
        self.defaults.extend(levels.setting(level, routed));
        self.setup.levels = levels.clone();
        self
    }

    /// Sets fallback models, in order, that a router calls if the first one fails or is unavailable
    /// (OpenRouter's `models`). The message names the model that answered as its response model.
    pub fn fallback_models<M: Into<String>>(self, models: impl IntoIterator<Item = M>) -> Self {
        let models: Vec<String> = models.into_iter().map(Into::into).collect();
        self.default_setting("models", Json::of(&models))
    }

    /// A router's preferences among the providers of a model (OpenRouter's `provider`): `order`, `only`,
    /// `ignore`, `sort`, `max_price`, `data_collection`, `require_parameters` and so on, an object.
    pub fn routing(self, provider: Json) -> Self {
        self.default_setting("provider", Ok(provider))
    }

    /// Names the conversation to a router, which then stays with the provider that has its prompt in a
    /// cache (OpenRouter's `session_id`, at most 256 characters).
    pub fn session_id(self, id: &str) -> Self {
        self.default_setting("session_id", Ok(Json::string(id)))
    }

    fn default_setting(mut self, key: &'static str, value: Result<Json, serde_json::Error>) -> Self {
        self.defaults.extend(value.ok().map(|value| (key, value)));
        self
    }

    /// Checks everything and makes the model. Nothing is sent yet.
    ///
    /// # Errors
    /// The one problem, or [`AdapterError::Several`] with all of them.
    pub fn build(self) -> Result<ChatModel, AdapterError> {
        let mut service = self.setup.build()?;
        for (key, value) in self.defaults {
            service.settings.set_missing(key, value);
        }
        let form = ChatForm { provider: service.provider.clone(), cache: self.cache, streams: self.streams };
        Ok(ChatModel(Arc::new(Client { service, form })))
    }
}
