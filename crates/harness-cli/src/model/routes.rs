//! From the name of a model to its endpoint.

use std::collections::BTreeMap;
use std::sync::Arc;

use harness::RegistryModels;
use harness::adapters::chat::{ChatModel, ChatModelBuilder};
use harness::adapters::messages::MessagesModel;
use harness::adapters::responses::ResponsesModel;
use harness::adapters::{ApiKey, Retry, RetryPolicy};
use harness::core::ModelName;
use harness::core::message::AssistantMessage;
use harness::core::port::{
    Clock, Deltas, DynModel, Model, ModelFault, ModelFaultCode, ModelRequest, PreparedAgent,
};
use harness::tools::{ModelKey, Registry};

use super::choose::Quotas;
use super::demo::Demo;
use super::keys::{Key, Keys, read_private};
use super::providers::{ENDPOINT, OPENROUTER, Protocol, Provider, split};
use crate::env;
use crate::error::CliError;
use crate::secrets;

/// The model that agents without one are answered by; a graph names a model for each of its agents, so
/// that nothing asks for it unless `--model` is given.
const UNNAMED: &str = "default";

/// Route to a model.
#[derive(Debug)]
pub(super) enum Route {
    /// The common endpoint, with the unchanged model name.
    Common,
    /// The provider's endpoint, with the provider's model name.
    Own { provider: &'static Provider, address: String, key: Option<Key>, model: String },
}

/// Finds routes.
pub(super) struct Routes<'a> {
    base_url: Option<&'a str>,
    keys: &'a Keys,
    models: RegistryModels,
    clock: Arc<dyn Clock>,
}

impl<'a> Routes<'a> {
    /// Routes with this endpoint and these API keys. An endpoint overrides the models of `registry`.
    pub(super) fn new(
        base_url: Option<&'a str>,
        keys: &'a Keys,
        registry: Option<&Registry>,
        clock: &Arc<dyn Clock>,
    ) -> Self {
        let declared = registry.filter(|_| base_url.is_none()).map(Registry::models).cloned();
        let models = RegistryModels::new(declared.unwrap_or_default(), Arc::clone(clock));
        Self { base_url, keys, models, clock: Arc::clone(clock) }
    }

    /// Shares the quotas of rate limits with other processes.
    pub(super) fn share(mut self, quotas: Option<Quotas>) -> Self {
        if let Some(quotas) = quotas {
            self.models = self.models.share_quotas(move |name| quotas(name));
        }
        self
    }

    /// The smallest context window of these models, as far as the registry file declares it.
    pub(super) fn window<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Option<u64> {
        names.into_iter().filter_map(|name| self.models.entry(name)?.window).min()
    }

    /// The route to the model of that name.
    ///
    /// An explicit endpoint serves every model. Otherwise the name selects a local provider, a provider with an API
    /// key, or else OpenRouter. Responses API models have no such fallback.
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
            // No other provider has the model under that name.
            Some((provider, rest)) if provider.protocol == Protocol::Responses => {
                let key = self.keys.of(provider).ok_or_else(|| no_key(name, &[provider.key_name]))?;
                let address = provider.address().unwrap_or_default();
                Ok(Route::Own { provider, address, key: Some(key), model: rest.to_owned() })
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

    fn common(&self, name: &str, names: &[&str]) -> Result<Route, CliError> {
        match self.keys.of(&OPENROUTER) {
            Some(_) => Ok(Route::Common),
            None => Err(no_key(name, names)),
        }
    }

    /// Reason why the model of a name cannot be called on this machine, as far as it shows without a call.
    pub(super) fn problem(&self, name: &str) -> Option<CliError> {
        let Some(entry) = self.models.entry(name) else {
            return if Demo::named(name).is_some() { None } else { self.route(name).err() };
        };
        match (&entry.endpoint, entry.key()) {
            (Some(_), Some(key)) => declared_key(name, key).err(),
            (Some(_), None) => None,
            (None, _) => self.route(&entry.model).err(),
        }
    }

    /// Builds the model that answers all agents, with its wrappers.
    pub(super) fn only(&self, name: &str) -> Result<Arc<dyn DynModel>, CliError> {
        if let (None, Some(demo)) = (self.models.entry(name), Demo::named(name)) {
            return Ok(Arc::new(demo));
        }
        self.models.build(name, &|key| declared_key(name, key), &|name| self.plain(name))
    }

    /// Builds the models of these names.
    pub(super) fn all(&self, names: &[String]) -> Result<Arc<dyn DynModel>, CliError> {
        let mut own = BTreeMap::new();
        for name in names {
            let declared = self.models.entry(name).is_some() || Demo::named(name).is_some();
            if declared || matches!(self.route(name)?, Route::Own { .. }) {
                own.insert(ModelName::from(name.as_str()), self.only(name)?);
            }
        }
        let common: Arc<dyn DynModel> = match self.common_builder(UNNAMED) {
            Some(builder) => {
                let retry = Retry::new(builder.build()?, RetryPolicy::default());
                Arc::new(retry.clock(Arc::clone(&self.clock)))
            }
            None => Arc::new(Nobody),
        };
        Ok(if own.is_empty() { common } else { Arc::new(ByName { own, common }) })
    }

    /// Builds the model of a name that the registry file does not declare, without wrappers.
    fn plain(&self, name: &str) -> Result<Arc<dyn DynModel>, CliError> {
        if let Some(demo) = Demo::named(name) {
            return Ok(Arc::new(demo));
        }
        match self.route(name)? {
            Route::Common => {
                let builder =
                    self.common_builder(name).ok_or_else(|| no_key(name, &[OPENROUTER.key_name]))?;
                Ok(Arc::new(builder.only_model().build()?))
            }
            Route::Own { provider, address, key, model } => built(provider, address, key, model),
        }
    }

    /// Builder for the common endpoint; `None` without an explicit endpoint and without an API key for OpenRouter.
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

fn no_key(model: &str, names: &[&str]) -> CliError {
    CliError::NoKey { model: model.to_owned(), names: names.iter().map(ToString::to_string).collect() }
}

/// Model name suffixes that select among OpenRouter's providers, and are unknown elsewhere.
const VARIANTS: [&str; 8] = ["beta", "exacto", "extended", "floor", "free", "nitro", "online", "thinking"];

fn only_at_openrouter(model: &str) -> bool {
    model.rsplit_once(':').is_some_and(|(_, variant)| VARIANTS.contains(&variant))
}

/// Builds the model of a provider.
fn built(
    provider: &Provider,
    address: String,
    key: Option<Key>,
    model: String,
) -> Result<Arc<dyn DynModel>, CliError> {
    Ok(match (provider.protocol, key) {
        (Protocol::OpenRouter, Some(Key { key, .. })) => {
            Arc::new(ChatModel::openrouter(model, key).base_url(address).only_model().build()?)
        }
        (Protocol::Messages, Some(Key { key, .. })) => {
            Arc::new(MessagesModel::anthropic(model, key).base_url(address).only_model().build()?)
        }
        (Protocol::Responses, Some(Key { key, .. })) => {
            Arc::new(ResponsesModel::openai(model, key).base_url(address).only_model().build()?)
        }
        (_, key) => {
            let builder = ChatModel::compatible(address, model).key_name(provider.key_name).only_model();
            Arc::new(match key {
                Some(Key { key, .. }) => builder.key(key).build()?,
                None => builder.build()?,
            })
        }
    })
}

/// Each agent's model where its name says.
struct ByName {
    own: BTreeMap<ModelName, Arc<dyn DynModel>>,
    common: Arc<dyn DynModel>,
}

impl Model for ByName {
    async fn step(&self, request: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        self.of(&request.prepared).step_boxed(request, deltas).await
    }

    fn has_structured_output(&self, agent: &PreparedAgent) -> bool {
        self.of(agent).has_structured_output_dyn(agent)
    }
}

impl ByName {
    fn of(&self, agent: &PreparedAgent) -> Arc<dyn DynModel> {
        let own = agent.model.as_ref().and_then(|name| self.own.get(name));
        Arc::clone(own.unwrap_or(&self.common))
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

/// Reads the API key of a declared model.
fn declared_key(model: &str, key: &ModelKey) -> Result<ApiKey, CliError> {
    match key {
        ModelKey::Env(name) => {
            let key = env::text(name).ok_or_else(|| no_key(model, &[name]))?;
            secrets::learn(key.trim());
            Ok(ApiKey::new(key))
        }
        ModelKey::File(path) => {
            let text = read_private(path);
            let text = text.map_err(|fault| CliError::KeyFile { path: path.clone(), fault })?;
            secrets::learn(text.trim());
            Ok(ApiKey::new(text))
        }
        unknown => Err(CliError::NoKey { model: model.to_owned(), names: vec![format!("{unknown:?}")] }),
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
