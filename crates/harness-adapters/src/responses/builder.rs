//! How a model of the Responses API is set up.

use std::sync::Arc;

use super::model::{ResponsesForm, ResponsesModel};
use super::request::RESERVED;
use crate::AdapterError;
use crate::http::client::Client;
use crate::http::settings::{Settings, reasoning};
use crate::http::setup::{Auth, Protocol, Setup, Thought, Vendor, setup_methods};

pub(super) static RESPONSES: Protocol = Protocol {
    endpoint: "an endpoint of the Responses API",
    reply: "answer of the Responses API",
    path: "/responses",
    reserved: &RESERVED,
    auth: Auth::Bearer,
    headers: &[],
    think,
};

fn think(settings: &mut Settings, thought: &Thought<'_>) {
    settings.take("reasoning_effort");
    let given = settings.take("reasoning");
    if let Some(reasoning) = reasoning(given.as_ref(), thought.effort()) {
        settings.set("reasoning".to_owned(), reasoning);
    }
}

pub(super) static OPENAI: Vendor =
    Vendor { provider: "openai", base_url: "https://api.openai.com/v1", key_name: "OPENAI_API_KEY" };

/// Sets up a [`ResponsesModel`]; made by [`ResponsesModel::openai`], [`ResponsesModel::openrouter`] and
/// [`ResponsesModel::compatible`].
#[must_use]
#[derive(Debug)]
pub struct ResponsesModelBuilder {
    setup: Setup,
}

impl ResponsesModelBuilder {
    pub(super) fn new(setup: Setup) -> Self {
        Self { setup }
    }

    setup_methods! {
        key: "The key, sent as a bearer token. Default none.",
        key_name: "environment variable. Default `OPENAI_API_KEY` for OpenAI, `OPENROUTER_API_KEY` for\n\
            OpenRouter, else `the API key`.",
        settings: "Settings that become part of each request's body (`max_output_tokens`, `temperature`,\n\
            `reasoning`, `tool_choice`, …), an object. An agent's own settings win key by key.\n\n\
            The words of chat completions are understood too, so that one agent runs on either protocol:\n\
            `max_tokens`, `max_completion_tokens`, `response_format`, `reasoning_effort`, `verbosity`, and a\n\
            `tool_choice` of that form."
    }

    /// Checks everything and makes the model. Nothing is sent yet.
    ///
    /// # Errors
    /// The one problem, or [`AdapterError::Several`] with all of them.
    pub fn build(self) -> Result<ResponsesModel, AdapterError> {
        Ok(ResponsesModel(Arc::new(Client { service: self.setup.build()?, form: ResponsesForm })))
    }
}
