//! From the name of a model to a way to ask it.

use std::collections::BTreeMap;
use std::sync::Arc;

use harness::adapters::ApiKey;
use harness::adapters::chat::{ChatModel, ChatModelBuilder};
use harness::adapters::messages::MessagesModel;
use harness::core::ModelName;
use harness::core::message::AssistantMessage;
use harness::core::port::{Deltas, DynModel, Model, ModelFault, ModelFaultCode, ModelRequest};

use super::demo::Demo;
use super::keys::{Key, Keys};
use super::providers::{ENDPOINT, OPENROUTER, Protocol, Provider, split};
use crate::env;
use crate::error::CliError;

/// The model that agents without one are answered by; a graph names a model for each of its agents, so
/// that nothing asks for it unless `--model` is given.
const UNNAMED: &str = "default";

/// How the model of a name is asked.
#[derive(Debug)]
pub(super) enum Route {
    /// Under its name, as all models without a route of their own are.
    Common,
    /// At a provider, under a name of the provider's own.
    Own { provider: &'static Provider, address: String, key: Option<Key>, model: String },
}

/// Finds routes.
#[derive(Debug)]
pub(super) struct Routes<'a> {
    base_url: Option<&'a str>,
    keys: &'a Keys,
}

impl<'a> Routes<'a> {
    /// Routes with the endpoint and the keys that are at hand.
    pub(super) fn new(base_url: Option<&'a str>, keys: &'a Keys) -> Self {
        Self { base_url, keys }
    }

    /// The route to the model of that name.
    ///
    /// An endpoint that was named is asked for every model. Else the name says who is asked: a provider of
    /// its own when a key for it is there, and OpenRouter for everything else.
    pub(super) fn route(&self, name: &str) -> Result<Route, CliError> {
        let known = split(name);
        if let Some(url) = self.base_url {
            return Ok(match known {
                Some((provider, rest)) if provider.local => {
                    let key = self.keys.of(provider);
                    Route::Own { provider, address: url.to_owned(), key, model: rest.to_owned() }
                }
                Some(_) | None => Route::Common,
            });
        }
        match known {
            Some((provider, rest)) if provider.local => {
                let none = || CliError::NoAddress { model: name.to_owned() };
                let address = provider.address().ok_or_else(none)?;
                Ok(Route::Own { provider, address, key: self.keys.of(provider), model: rest.to_owned() })
            }
            Some((provider, rest)) if provider.protocol == Protocol::OpenRouter => {
                // OpenRouter has models of its own, such as `openrouter/auto`.
                let model = if rest.contains('/') { rest } else { name };
                let key = Some(self.keys.of(provider).ok_or_else(|| no_key(name, &[provider.key_name]))?);
                let address = provider.address().unwrap_or_default();
                Ok(Route::Own { provider, address, key, model: model.to_owned() })
            }
            Some((provider, rest)) => match self.keys.of(provider) {
                Some(key) if !only_at_openrouter(rest) => {
                    let address = provider.address().unwrap_or_default();
                    Ok(Route::Own { provider, address, key: Some(key), model: provider.own_name(rest) })
                }
                Some(_) | None => self.common(name, &[provider.key_name, OPENROUTER.key_name]),
            },
            None => self.common(name, &[OPENROUTER.key_name]),
        }
    }

    fn common(&self, name: &str, names: &[&'static str]) -> Result<Route, CliError> {
        match self.keys.of(&OPENROUTER) {
            Some(_) => Ok(Route::Common),
            None => Err(no_key(name, names)),
        }
    }

    /// The one model: all agents are answered by it.
    pub(super) fn only(&self, name: &str) -> Result<Arc<dyn DynModel>, CliError> {
        match self.route(name)? {
            Route::Common => {
                let builder =
                    self.common_builder(name).ok_or_else(|| no_key(name, &[OPENROUTER.key_name]))?;
                Ok(Arc::new(builder.only_model().build()?))
            }
            route @ Route::Own { .. } => built(route).map(|model| model.unwrap_or_else(|| Arc::new(Nobody))),
        }
    }

    /// The models of these names, each asked where its name says.
    pub(super) fn all(&self, names: &[String]) -> Result<Arc<dyn DynModel>, CliError> {
        let mut own = BTreeMap::new();
        for name in names {
            if let Some(demo) = Demo::named(name) {
                own.insert(ModelName::from(name.as_str()), Arc::new(demo) as Arc<dyn DynModel>);
            } else if let Some(model) = built(self.route(name)?)? {
                own.insert(ModelName::from(name.as_str()), model);
            }
        }
        let common: Arc<dyn DynModel> = match self.common_builder(UNNAMED) {
            Some(builder) => Arc::new(builder.build()?),
            None => Arc::new(Nobody),
        };
        Ok(if own.is_empty() { common } else { Arc::new(ByName { own, common }) })
    }

    /// What asks models under their names.
    fn common_builder(&self, name: &str) -> Option<ChatModelBuilder> {
        if let Some(url) = self.base_url {
            let builder = ChatModel::compatible(url, name).key_name(env::ENDPOINT_KEY);
            return Some(match self.keys.of(&ENDPOINT) {
                Some(Key { key, .. }) => builder.key(key),
                None => builder,
            });
        }
        self.keys.of(&OPENROUTER).map(|Key { key, .. }| openrouter(name, key))
    }
}

fn openrouter(model: &str, key: ApiKey) -> ChatModelBuilder {
    let builder = ChatModel::openrouter(model, key);
    match OPENROUTER.address() {
        Some(address) => builder.base_url(address),
        None => builder,
    }
}

fn no_key(model: &str, names: &[&'static str]) -> CliError {
    CliError::NoKey { model: model.to_owned(), names: names.to_vec() }
}

/// What is added to a name to choose among the providers of OpenRouter; nobody else knows it.
const VARIANTS: [&str; 8] = ["beta", "exacto", "extended", "floor", "free", "nitro", "online", "thinking"];

fn only_at_openrouter(model: &str) -> bool {
    model.rsplit_once(':').is_some_and(|(_, variant)| VARIANTS.contains(&variant))
}

/// What asks at a route of its own.
fn built(route: Route) -> Result<Option<Arc<dyn DynModel>>, CliError> {
    let Route::Own { provider, address, key, model } = route else { return Ok(None) };
    Ok(Some(match (provider.protocol, key) {
        (Protocol::OpenRouter, Some(Key { key, .. })) => {
            Arc::new(ChatModel::openrouter(model, key).base_url(address).only_model().build()?)
        }
        (Protocol::Messages, Some(Key { key, .. })) => {
            Arc::new(MessagesModel::anthropic(model, key).base_url(address).only_model().build()?)
        }
        (_, key) => {
            let builder = ChatModel::compatible(address, model).key_name(provider.key_name).only_model();
            Arc::new(match key {
                Some(Key { key, .. }) => builder.key(key).build()?,
                None => builder.build()?,
            })
        }
    }))
}

/// Each agent's model where its name says.
struct ByName {
    own: BTreeMap<ModelName, Arc<dyn DynModel>>,
    common: Arc<dyn DynModel>,
}

impl Model for ByName {
    async fn step(&self, request: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        let own = request.prepared.model.as_ref().and_then(|name| self.own.get(name));
        own.unwrap_or(&self.common).step_boxed(request, deltas).await
    }
}

/// Answers for models that no agent names.
struct Nobody;

impl Model for Nobody {
    async fn step(&self, request: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        let name = request.prepared.model.as_ref().map_or(UNNAMED, ModelName::as_str);
        let text = format!("no API key or endpoint for model `{name}`");
        Err(ModelFault::new(ModelFaultCode::Configuration, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_are_known_at_openrouter_only() {
        assert!(only_at_openrouter("gpt-5:online"));
        assert!(!only_at_openrouter("gpt-5"));
        assert!(!only_at_openrouter("ft:gpt-4o:mine::1"));
    }
}
