//! The model port over the Messages API.

use std::fmt;
use std::sync::Arc;

use harness_core::ModelName;
use harness_core::message::AssistantMessage;
use harness_core::port::{Deltas, Model, ModelFault, ModelRequest};
use tokio::time::Instant;

use super::answer::{self, PROTOCOL};
use super::builder::MessagesModelBuilder;
use super::request;
use super::stream::Assembler;
use crate::ApiKey;
use crate::history::{IdRule, Target};
use crate::http::PromptCache;
use crate::http::draft::Asked;
use crate::http::names::ToolNames;
use crate::http::service::{Service, no_json};

/// A model behind Anthropic's Messages API, or an endpoint that speaks it.
///
/// Each step is one streaming request; text, reasoning and calls reach the sink as they arrive. An
/// endpoint that ignores `stream` and sends one JSON document is understood too. Cloning is cheap and
/// shares the connections.
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
/// - *Reasoning* is kept with its signature, withheld reasoning with its payload, and both go back to the
///   same model exactly as they came.
/// - *Instructions*: those of the agent and system messages at the head of the conversation are the
///   request's `system`; a later system message is sent where it stands, as a user's text in `<system>`
///   tags, because the protocol has no other place for it and moving it would spoil the prompt cache.
/// - *`max_tokens`*, which the protocol demands, is 8,192 unless a setting says otherwise; with a thinking
///   budget, that budget more.
/// - *Tools of the provider* run there; what they did is kept in hosted calls and sent back.
/// - *Stop reasons*: `end_turn` and `stop_sequence` are `stop`; `max_tokens` and
///   `model_context_window_exceeded` are `length`; `tool_use`, `pause_turn` and `refusal` are `toolUse`,
///   `paused` and `refusal`; the provider's own word stands in `providerMetadata.nativeFinishReason`.
///   An answer that the limit cut inside a call, or before any text, is marked invalid.
/// - *Cancellation*: when the request's signal fires, or the future is dropped, the connection is closed.
/// - *Failure*: a fault carries the text that had arrived; tool calls of a failed answer are left out.
/// - *Retries*: none; wrap it in [`Retry`](crate::Retry).
/// - *Redirects* are not followed, because the key must not travel to where it was not meant for.
#[derive(Clone)]
pub struct MessagesModel(Arc<Inner>);

struct Inner {
    service: Service,
    cache: PromptCache,
}

impl MessagesModel {
    /// A model of Anthropic, for example `claude-sonnet-4-5`.
    pub fn anthropic(model: impl Into<ModelName>, key: impl Into<ApiKey>) -> MessagesModelBuilder {
        MessagesModelBuilder::anthropic(model.into(), key.into())
    }

    /// A model of any compatible endpoint; `base_url` is what `/messages` is added to
    /// (`http://localhost:8080/v1`), or the full endpoint.
    pub fn compatible(base_url: impl Into<String>, model: impl Into<ModelName>) -> MessagesModelBuilder {
        MessagesModelBuilder::compatible(base_url.into(), model.into())
    }

    pub(super) fn new(service: Service, cache: PromptCache) -> Self {
        Self(Arc::new(Inner { service, cache }))
    }
}

impl fmt::Debug for MessagesModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessagesModel")
            .field("endpoint", &self.0.service.endpoint.shown())
            .field("model", &self.0.service.model)
            .finish_non_exhaustive()
    }
}

impl Model for MessagesModel {
    async fn step(&self, request: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        let Inner { service, cache } = &*self.0;
        let started = Instant::now();
        let names = ToolNames::of(request.prepared.tools.iter().map(|tool| tool.name.as_str()));
        let asked = Asked {
            protocol: PROTOCOL,
            provider: &service.provider,
            model: service.model_for(&request),
            names: &names,
            messages: request.view.len(),
        };
        let target = Target {
            protocol: PROTOCOL,
            provider: asked.provider,
            model: asked.model,
            sees_images: service.sees_images,
            ids: IdRule { longest: 64, any_character: false },
        };
        let settings = service.settings_for(&request)?;
        let expects_json = settings.expects_json();
        let body =
            request::body(&request, target, &names, settings, *cache).map_err(|error| no_json(&error))?;
        let mut assembler = Assembler::new(service.limits.clone());
        let outcome = service.ask(&request, body, &mut assembler, deltas, &names).await;
        let answer = assembler.finish();
        let result = match outcome {
            Ok(()) => answer::judge(&answer, asked, &service.faults_for(&request)),
            Err(fault) => Err(answer::with_partial(fault, &answer, asked)),
        };
        service.finish(result, expects_json, started.elapsed())
    }
}
