//! The model port over the Messages API.

use std::sync::Arc;

use harness_core::ModelName;

use super::builder::{ANTHROPIC, MESSAGES, MessagesModelBuilder};
use super::reply::MessagesReply;
use super::request;
use crate::ApiKey;
use crate::history::IdRule;
use crate::http::PromptCache;
use crate::http::client::{Client, Form, Outgoing, http_model};
use crate::http::setup::Setup;

/// A model of Anthropic's Messages API, or of a compatible endpoint.
///
/// Each step is one streaming request; text, reasoning and calls reach the sink as they arrive. A reply
/// that is one JSON document is accepted too. Cloning is cheap and shares the connections.
///
/// ```
/// use harness_adapters::ApiKey;
/// use harness_adapters::messages::{MessagesModel, PromptCache};
/// use harness_core::Json;
///
/// let model = MessagesModel::anthropic("claude-sonnet-4-5", ApiKey::new("sk-ant-0123"))
///     .settings(Json::parse(r#"{"max_tokens":16000,"thinking":{"type":"enabled","budget_tokens":8000}}"#)?)
///     .prompt_cache(PromptCache::OneHour)
///     .build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// - *Reasoning* is kept with its signature, redacted reasoning with its payload; both are returned to
///   the same model unchanged.
/// - *Instructions* of the agent and system messages at the head of the conversation are the request's
///   `system`. A later system message stays in place, as a user's text in `<system>` tags: the protocol
///   has no other place for it, and moving it would invalidate the prompt cache.
/// - *`max_tokens`*, which the protocol requires, defaults to 8,192 more than the thinking budget.
/// - *Tools of the provider* run there; their calls and results are kept in hosted calls and sent back.
/// - *Paused answers* (`pause_turn`) are continued in the same step, at most eight times.
/// - *Stop reasons*: `end_turn` and `stop_sequence` are `stop`; `max_tokens` and
///   `model_context_window_exceeded` are `length`; `tool_use`, `pause_turn` and `refusal` are `toolUse`,
///   `paused` and `refusal`; `providerMetadata.nativeFinishReason` has the provider's word. An answer
///   that the limit cut inside a call, or before any text, is marked invalid.
///
/// [`http`](crate::http#failure-and-cancellation) describes cancellation, failures, retries and redirects.
#[derive(Clone, Debug)]
pub struct MessagesModel(pub(super) Arc<Client<MessagesForm>>);

impl MessagesModel {
    /// A model of Anthropic, for example `claude-sonnet-4-5`.
    pub fn anthropic(model: impl Into<ModelName>, key: impl Into<ApiKey>) -> MessagesModelBuilder {
        MessagesModelBuilder::new(Setup::hosted(&MESSAGES, &ANTHROPIC, model.into(), key.into()))
    }

    /// A model of any compatible endpoint; `base_url` is what `/messages` is added to
    /// (`http://localhost:8080/v1`), or the full endpoint.
    pub fn compatible(base_url: impl Into<String>, model: impl Into<ModelName>) -> MessagesModelBuilder {
        MessagesModelBuilder::new(Setup::compatible(&MESSAGES, base_url.into(), model.into()))
    }
}

http_model!(MessagesModel);

/// The Messages API.
pub(super) struct MessagesForm {
    pub(super) cache: PromptCache,
}

impl Form for MessagesForm {
    const PROTOCOL: &'static str = "anthropic-messages";
    const IDS: IdRule = IdRule { longest: 64, any_character: false };
    type Reply = MessagesReply;

    fn body(&self, outgoing: &Outgoing<'_>) -> Result<String, serde_json::Error> {
        request::body(outgoing, self.cache)
    }
}
