//! The model port over the Responses API.

use std::fmt;
use std::sync::Arc;

use harness_core::ModelName;
use harness_core::message::AssistantMessage;
use harness_core::port::{Deltas, Model, ModelFault, ModelRequest};
use tokio::time::Instant;

use super::answer::{self, PROTOCOL};
use super::builder::ResponsesModelBuilder;
use super::request;
use super::stream::Assembler;
use crate::ApiKey;
use crate::history::{IdRule, Target};
use crate::http::draft::Asked;
use crate::http::names::ToolNames;
use crate::http::service::{Service, no_json};

/// A model behind the Responses API of OpenAI or OpenRouter, or an endpoint that speaks it.
///
/// Each step is one streaming request; text, reasoning and calls reach the sink as they arrive. An
/// endpoint that ignores `stream` and sends one JSON document is understood too. Cloning is cheap and
/// shares the connections.
///
/// ```
/// use harness_adapters::ApiKey;
/// use harness_adapters::responses::ResponsesModel;
/// use harness_core::Json;
///
/// let model = ResponsesModel::openai("gpt-5-mini", ApiKey::new("sk-0123"))
///     .settings(Json::parse(r#"{"reasoning":{"effort":"low","summary":"auto"}}"#)?)
///     .build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// - *Nothing is stored by the provider*: every request holds the whole conversation, `store` is false, and
///   reasoning comes encrypted (`include: ["reasoning.encrypted_content"]`). Settings may say otherwise.
/// - *Reasoning* items go back to the same model exactly as they came and in their place.
/// - *Tools of the provider* run there; what they did is kept in hosted calls and sent back.
/// - *Stop reasons*: a response that is `completed` ends with `stop` or `toolUse`; `incomplete` with `length`
///   or `contentFilter`; a refusal is a refusal; `failed` is a fault. An answer that the limit cut inside a
///   call, or before any text, is marked invalid.
/// - *Cancellation*: when the request's signal fires, or the future is dropped, the connection is closed.
/// - *Failure*: a fault carries the text that had arrived; tool calls of a failed answer are left out.
/// - *Retries*: none; wrap it in [`Retry`](crate::Retry).
/// - *Redirects* are not followed, because the key must not travel to where it was not meant for.
#[derive(Clone)]
pub struct ResponsesModel(Arc<Service>);

impl ResponsesModel {
    /// A model of OpenAI, for example `gpt-5-mini`.
    pub fn openai(model: impl Into<ModelName>, key: impl Into<ApiKey>) -> ResponsesModelBuilder {
        ResponsesModelBuilder::openai(model.into(), key.into())
    }

    /// A model of OpenRouter, for example `openai/gpt-5-mini`.
    pub fn openrouter(model: impl Into<ModelName>, key: impl Into<ApiKey>) -> ResponsesModelBuilder {
        ResponsesModelBuilder::openrouter(model.into(), key.into())
    }

    /// A model of any compatible endpoint; `base_url` is what `/responses` is added to
    /// (`http://localhost:8080/v1`), or the full endpoint.
    pub fn compatible(base_url: impl Into<String>, model: impl Into<ModelName>) -> ResponsesModelBuilder {
        ResponsesModelBuilder::compatible(base_url.into(), model.into())
    }

    pub(super) fn new(service: Service) -> Self {
        Self(Arc::new(service))
    }
}

impl fmt::Debug for ResponsesModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponsesModel")
            .field("endpoint", &self.0.endpoint.shown())
            .field("model", &self.0.model)
            .finish_non_exhaustive()
    }
}

impl Model for ResponsesModel {
    async fn step(&self, request: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        let service = &*self.0;
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
            ids: IdRule { longest: 64, any_character: true },
        };
        let settings = service.settings_for(&request)?;
        let expects_json = settings.expects_json();
        let body = request::body(&request, target, &names, settings);
        let body = body.map_err(|error| no_json(&error))?;
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
