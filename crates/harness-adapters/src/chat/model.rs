//! The model port over HTTP.

use std::fmt;
use std::sync::Arc;

use harness_core::ModelName;
use harness_core::message::AssistantMessage;
use harness_core::port::{Deltas, Model, ModelFault, ModelRequest};
use tokio::time::Instant;

use super::answer::{self, Asked};
use super::builder::{self, ChatModelBuilder};
use super::completion::{Completion, InvalidKind, Verdict};
use super::request;
use super::stream::Assembler;
use crate::ApiKey;
use crate::history::{IdRule, Target};
use crate::http::PromptCache;
use crate::http::fault::Faults;
use crate::http::names::ToolNames;
use crate::http::service::{Service, no_json};

/// A model behind OpenRouter or any other OpenAI-compatible chat-completions endpoint.
///
/// Each step is one streaming request; text, reasoning and calls reach the sink as they arrive. An
/// endpoint that ignores `stream` and sends one JSON document is understood too; one that refuses it is asked
/// [without streaming](ChatModelBuilder::without_streaming). Cloning is cheap and shares the connections.
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
/// - *Cancellation*: when the request's signal fires, or the future is dropped, the connection is
///   closed, which ends generation and billing on providers that support it.
/// - *Failure*: a fault carries the text that had arrived; tool calls of a failed answer are left out.
/// - *Retries*: none; wrap it in [`Retry`](crate::Retry).
/// - *Redirects* are not followed, because the key must not travel to where it was not meant for.
/// - *Proxies* come from the usual environment variables; a loopback address is always direct.
#[derive(Clone)]
pub struct ChatModel(Arc<Inner>);

struct Inner {
    service: Service,
    /// Configured cache; `None` selects a default by model.
    cache: Option<PromptCache>,
    streams: bool,
}

impl ChatModel {
    /// A model of OpenRouter, for example `anthropic/claude-sonnet-4.5`.
    pub fn openrouter(model: impl Into<ModelName>, key: impl Into<ApiKey>) -> ChatModelBuilder {
        ChatModelBuilder::openrouter(model.into(), key.into())
    }

    /// A model of any compatible endpoint; `base_url` is what the vendor calls the base URL
    /// (`http://localhost:11434/v1`), or the full endpoint.
    pub fn compatible(base_url: impl Into<String>, model: impl Into<ModelName>) -> ChatModelBuilder {
        ChatModelBuilder::compatible(base_url.into(), model.into())
    }

    pub(crate) fn new(service: Service, cache: Option<PromptCache>, streams: bool) -> Self {
        Self(Arc::new(Inner { service, cache, streams }))
    }
}

impl fmt::Debug for ChatModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let service = &self.0.service;
        f.debug_struct("ChatModel")
            .field("endpoint", &service.endpoint.shown())
            .field("model", &service.model)
            .finish_non_exhaustive()
    }
}

impl Model for ChatModel {
    async fn step(&self, request: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        let service = &self.0.service;
        let started = Instant::now();
        let names = ToolNames::of(request.prepared.tools.iter().map(|tool| tool.name.as_str()));
        let asked = Asked {
            provider: &service.provider,
            model: service.model_for(&request),
            names: &names,
            messages: request.view.len(),
        };
        let target = Target {
            protocol: answer::PROTOCOL,
            provider: asked.provider,
            model: asked.model,
            sees_images: service.sees_images,
            ids: IdRule { longest: 64, any_character: true },
        };
        let settings = service.settings_for(&request)?;
        let cache = self.0.cache.unwrap_or_else(|| builder::default_cache(&service.provider, asked.model));
        let body = request::body(&request, target, &names, &settings, cache, self.0.streams);
        let body = body.map_err(|error| no_json(&error))?;
        let mut assembler = Assembler::new(service.limits.clone());
        let outcome = service.ask(&request, body, &mut assembler, deltas, &names).await;
        let answer = assembler.finish();
        let result = match outcome {
            Ok(()) => judge(&answer, asked, &service.faults_for(&request)),
            Err(fault) => Err(with_partial(fault, &answer, asked)),
        };
        service.finish(result, settings.expects_json(), started.elapsed())
    }
}

/// Interprets a complete reply.
fn judge(answer: &Completion, asked: Asked<'_>, faults: &Faults) -> Result<AssistantMessage, ModelFault> {
    let verdict = answer.verdict();
    let document = || faults.document(answer.document.as_deref()?);
    if let (None, Some(event)) = (&answer.error, &answer.malformed_event) {
        return Err(with_partial(faults.undecoded(event, answer.malformed_events), answer, asked));
    }
    let fault = match verdict {
        Verdict::Invalid(InvalidKind::Transient | InvalidKind::ProviderError) => match &answer.error {
            Some(error) => faults.reported(error),
            None if answer.finish_reason.is_some() => faults.unexplained(),
            None => faults.cut(),
        },
        Verdict::FinalAnswer { .. } | Verdict::ToolRequest | Verdict::Invalid(_) => {
            return Ok(answer::message(answer, verdict, asked, document()));
        }
    };
    Err(with_partial(fault.with_reply(document()), answer, asked))
}

fn with_partial(fault: ModelFault, answer: &Completion, asked: Asked<'_>) -> ModelFault {
    match answer::partial(answer, asked) {
        Some(partial) => fault.with_partial(partial),
        None => fault,
    }
}
