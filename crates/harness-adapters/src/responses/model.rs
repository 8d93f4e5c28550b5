//! The model port over the Responses API.

use std::sync::Arc;

use harness_core::ModelName;

use super::builder::{OPENAI, RESPONSES, ResponsesModelBuilder};
use super::reply::ResponsesReply;
use super::request;
use crate::ApiKey;
use crate::history::IdRule;
use crate::http::client::{Client, Form, Outgoing, http_model};
use crate::http::setup::{OPENROUTER, Setup};

/// A model of the Responses API of OpenAI or OpenRouter, or of a compatible endpoint.
///
/// Each step is one streaming request; text, reasoning and calls reach the sink as they arrive. A reply
/// that is one JSON document is accepted too. Cloning is cheap and shares the connections.
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
/// - *The provider stores nothing*: every request has the whole conversation, `store` is false, and
///   reasoning is encrypted (`include: ["reasoning.encrypted_content"]`), unless settings change that.
/// - *Reasoning* items are returned to the same model unchanged and in place.
/// - *Tools of the provider* run there; their calls and results are kept in hosted calls and sent back.
/// - *Stop reasons*: a response that is `completed` ends with `stop` or `toolUse`; `incomplete` with `length`
///   or `contentFilter`; a refusal with `refusal`; `failed` is an error. An answer that the limit cut
///   inside a call, or before any text, is marked invalid.
///
/// [`http`](crate::http#failure-and-cancellation) describes cancellation, failures, retries and redirects.
#[derive(Clone, Debug)]
pub struct ResponsesModel(pub(super) Arc<Client<ResponsesForm>>);

impl ResponsesModel {
    /// A model of OpenAI, for example `gpt-5-mini`.
    pub fn openai(model: impl Into<ModelName>, key: impl Into<ApiKey>) -> ResponsesModelBuilder {
        ResponsesModelBuilder::new(Setup::hosted(&RESPONSES, &OPENAI, model.into(), key.into()))
    }

    /// A model of OpenRouter, for example `openai/gpt-5-mini`.
    pub fn openrouter(model: impl Into<ModelName>, key: impl Into<ApiKey>) -> ResponsesModelBuilder {
        ResponsesModelBuilder::new(Setup::hosted(&RESPONSES, &OPENROUTER, model.into(), key.into()))
    }

    /// A model of any compatible endpoint; `base_url` is what `/responses` is added to
    /// (`http://localhost:8080/v1`), or the full endpoint.
    pub fn compatible(base_url: impl Into<String>, model: impl Into<ModelName>) -> ResponsesModelBuilder {
        ResponsesModelBuilder::new(Setup::compatible(&RESPONSES, base_url.into(), model.into()))
    }
}

http_model!(ResponsesModel);

/// The Responses API.
pub(super) struct ResponsesForm;

impl Form for ResponsesForm {
    const PROTOCOL: &'static str = "openai-responses";
    const IDS: IdRule = IdRule { longest: 64, any_character: true };
    type Reply = ResponsesReply;

    fn body(&self, outgoing: &Outgoing<'_>) -> Result<String, serde_json::Error> {
        request::body(outgoing)
    }
}
