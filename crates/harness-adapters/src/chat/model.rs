//! The model port over chat completions.

use std::sync::Arc;

use harness_core::ModelName;

use super::builder::{CHAT, ChatModelBuilder};
use super::reply::ChatReply;
use super::request;
use crate::ApiKey;
use crate::history::IdRule;
use crate::http::PromptCache;
use crate::http::client::{Client, Form, Outgoing, http_model};
use crate::http::setup::{OPENROUTER, Setup};

/// A model of OpenRouter or of any other endpoint with chat completions.
///
/// Each step is one streaming request; text, reasoning and calls reach the sink as they arrive. A reply
/// that is one JSON document is accepted too; for endpoints that reject `stream`, use
/// [`without_streaming`](ChatModelBuilder::without_streaming). Cloning is cheap and shares the connections.
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
/// [`http`](crate::http#failure-and-cancellation) describes cancellation, failures, retries and redirects.
#[derive(Clone, Debug)]
pub struct ChatModel(pub(super) Arc<Client<ChatForm>>);

impl ChatModel {
    /// A model of OpenRouter, for example `anthropic/claude-sonnet-4.5`.
    pub fn openrouter(model: impl Into<ModelName>, key: impl Into<ApiKey>) -> ChatModelBuilder {
        ChatModelBuilder::new(Setup::hosted(&CHAT, &OPENROUTER, model.into(), key.into()))
    }

    /// A model of any compatible endpoint; `base_url` is what the vendor calls the base URL
    /// (`http://localhost:11434/v1`), or the full endpoint.
    pub fn compatible(base_url: impl Into<String>, model: impl Into<ModelName>) -> ChatModelBuilder {
        ChatModelBuilder::new(Setup::compatible(&CHAT, base_url.into(), model.into()))
    }
}

http_model!(ChatModel);

/// Chat completions.
pub(super) struct ChatForm {
    pub(super) provider: String,
    /// Configured cache; `None` selects a default by model.
    pub(super) cache: Option<PromptCache>,
    pub(super) streams: bool,
}

impl Form for ChatForm {
    const PROTOCOL: &'static str = "openai-completions";
    const IDS: IdRule = IdRule { longest: 64, any_character: true };
    type Reply = ChatReply;

    fn body(&self, outgoing: &Outgoing<'_>) -> Result<String, serde_json::Error> {
        // Unneeded marks cost a little, so only providers that do not cache without them get some.
        let needs_marks = self.provider == OPENROUTER.provider && outgoing.model.starts_with("anthropic/");
        let default = if needs_marks { PromptCache::FiveMinutes } else { PromptCache::Off };
        request::body(outgoing, self.cache.unwrap_or(default), self.streams)
    }
}
