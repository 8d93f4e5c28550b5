//! Models built from the section `models` of a registry file.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

#[cfg(feature = "http")]
use harness_adapters::chat::ChatModel;
#[cfg(feature = "http")]
use harness_adapters::messages::MessagesModel;
#[cfg(feature = "http")]
use harness_adapters::responses::ResponsesModel;
use harness_adapters::{
    AdapterError, ApiKey, Breaker, BreakerPolicy, CachePolicy, DynQuotaPool, Fallback, FallbackPolicy,
    PriceTable, RateLimit, RateQuota, ResponseCache, Retry, RetryPolicy, TokenPrices,
};
use harness_core::limits::Payer;
use harness_core::port::{Clock, DynModel};
#[cfg(feature = "http")]
use harness_tools::ModelProtocol;
use harness_tools::{
    ModelCache, ModelEndpoint, ModelEntry, ModelFallback, ModelKey, ModelPrice, ModelRate, ModelRetry,
};

/// Builds the models that a registry file declares, with their wrappers.
///
/// The caller supplies what a file must not have: the API keys, and the models of names that the
/// file does not declare.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use harness::RegistryModels;
/// use harness::adapters::{AdapterError, ApiKey};
/// use harness::prelude::*;
/// use harness::system::SystemClock;
/// use harness::tools::{ModelKey, Registry};
///
/// # fn read_key(_: &ModelKey) -> ApiKey { ApiKey::new("sk-0123") }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let registry = Registry::load("registry.yaml")?;
/// let models = RegistryModels::new(registry.models().clone(), Arc::new(SystemClock::new()));
/// let key = |key: &ModelKey| Ok::<_, AdapterError>(read_key(key));
/// let others = |name: &str| Err(AdapterError::UnknownModel { name: name.to_owned() });
/// let harness = Harness::new(models.build("house", &key, &others)?).build()?;
/// # let _ = harness;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RegistryModels {
    entries: BTreeMap<String, ModelEntry>,
    clock: Arc<dyn Clock>,
    quotas: Option<QuotaOf>,
}

/// The quota of a declared model that several processes share.
type QuotaOf = Arc<dyn Fn(&str) -> Arc<dyn DynQuotaPool> + Send + Sync>;

impl fmt::Debug for RegistryModels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegistryModels").field("names", &self.entries.keys()).finish_non_exhaustive()
    }
}

/// Reads an API key.
type ReadKey<'a, E> = &'a dyn Fn(&ModelKey) -> Result<ApiKey, E>;

/// Builds the model of a name that is not declared, without retries.
type BuildOther<'a, E> = &'a dyn Fn(&str) -> Result<Arc<dyn DynModel>, E>;

impl RegistryModels {
    /// Models of these entries; `clock` is the time by which retries and rate limits meet deadlines.
    pub fn new(entries: BTreeMap<String, ModelEntry>, clock: Arc<dyn Clock>) -> Self {
        Self { entries, clock, quotas: None }
    }

    /// Shares the quotas of `rate_limit` with other processes, each under the name of its model. Default: each process has
    /// the whole quota.
    #[must_use]
    pub fn share_quotas(
        mut self,
        quota_of: impl Fn(&str) -> Arc<dyn DynQuotaPool> + Send + Sync + 'static,
    ) -> Self {
        self.quotas = Some(Arc::new(quota_of));
        self
    }

    /// The entry of a declared model.
    pub fn entry(&self, name: &str) -> Option<&ModelEntry> {
        self.entries.get(name)
    }

    /// Builds the model `name`. Its wrappers, from the outside in: cache, fallback, circuit breaker,
    /// retry, rate limit. A model of `others` has default retries and nothing else.
    ///
    /// # Errors
    /// An invalid endpoint, or an error of `key` or `others`.
    pub fn build<E: From<AdapterError>>(
        &self,
        name: &str,
        key: ReadKey<'_, E>,
        others: BuildOther<'_, E>,
    ) -> Result<Arc<dyn DynModel>, E> {
        let Some(entry) = self.entries.get(name) else {
            return Ok(self.retried(others(name)?, &ModelRetry::default()));
        };
        let mut model = match &entry.endpoint {
            Some(at) => {
                let key = at.auth.as_ref().map(|auth| key(&auth.key)).transpose()?;
                endpoint(&entry.model, at, key)?
            }
            None => others(&entry.model)?,
        };
        if let Some(limit) = &entry.rate_limit {
            model = self.limited(name, model, limit);
        }
        model = self.retried(model, entry.retry.as_ref().unwrap_or(&ModelRetry::default()));
        if let Some(breaker) = &entry.breaker {
            let mut policy = BreakerPolicy::default();
            policy.faults = breaker.faults.unwrap_or(policy.faults);
            policy.cool_down = breaker.cool_down.unwrap_or(policy.cool_down);
            model = Arc::new(Breaker::new(model, policy));
        }
        if let Some(fallback) = &entry.fallback {
            let chain = Fallback::new(name, model).policy(fallback_policy(fallback));
            let add = |chain: Fallback, other: &String| {
                Ok::<_, E>(chain.or(other.as_str(), self.build(other, key, others)?))
            };
            model = Arc::new(fallback.models.iter().try_fold(chain, add)?);
        }
        Ok(match &entry.cache {
            Some(cache) => Arc::new(ResponseCache::new(model, cache_policy(cache))),
            None => model,
        })
    }

    fn limited(&self, name: &str, model: Arc<dyn DynModel>, limit: &ModelRate) -> Arc<dyn DynModel> {
        let mut quota = RateQuota::default();
        (quota.requests, quota.tokens) = (limit.requests, limit.tokens);
        quota.waiting = limit.waiting.map_or(quota.waiting, size);
        let limited = match &self.quotas {
            Some(quota_of) => RateLimit::shared(model, quota, quota_of(name)),
            None => RateLimit::new(model, quota),
        };
        let limited = limited.turns(limit.turns.clone().unwrap_or(Payer::User));
        Arc::new(limited.clock(Arc::clone(&self.clock)))
    }

    fn retried(&self, model: Arc<dyn DynModel>, retry: &ModelRetry) -> Arc<dyn DynModel> {
        let mut policy = RetryPolicy::default();
        policy.attempts = retry.attempts.unwrap_or(policy.attempts);
        policy.first_wait = retry.first_wait.unwrap_or(policy.first_wait);
        policy.longest_wait = retry.longest_wait.unwrap_or(policy.longest_wait);
        Arc::new(Retry::new(model, policy).clock(Arc::clone(&self.clock)))
    }
}

fn fallback_policy(fallback: &ModelFallback) -> FallbackPolicy {
    let mut policy = FallbackPolicy::default();
    policy.each = fallback.each;
    policy.longest = fallback.longest.unwrap_or(policy.longest);
    policy
}

fn cache_policy(cache: &ModelCache) -> CachePolicy {
    let mut policy = CachePolicy::default();
    policy.answers = cache.answers.map_or(policy.answers, size);
    policy.bytes = cache.bytes.map_or(policy.bytes, size);
    policy
}

fn size(count: impl TryInto<usize>) -> usize {
    count.try_into().unwrap_or(usize::MAX)
}

/// Applies an endpoint to the builder of its protocol.
#[cfg(feature = "http")]
macro_rules! built {
    ($builder:expr, $at:expr, $key:expr) => {{
        let mut builder = $builder.only_model();
        for (name, value) in &$at.headers {
            builder = builder.header(name, value);
        }
        for (name, value) in &$at.query {
            builder = builder.query(name, value);
        }
        if let Some(auth) = &$at.auth {
            if let ModelKey::Env(name) = &auth.key {
                builder = builder.key_name(name);
            }
            if let Some(header) = &auth.header {
                builder = builder.key_header(header);
            }
        }
        if let Some(key) = $key {
            builder = builder.key(key);
        }
        if let Some(settings) = &$at.settings {
            builder = builder.settings(settings.clone());
        }
        if let Some(price) = &$at.price {
            builder = builder.prices(prices(price));
        }
        if !$at.images {
            builder = builder.without_images();
        }
        builder
    }};
}

/// Builds the model of an endpoint.
fn endpoint(model: &str, at: &ModelEndpoint, key: Option<ApiKey>) -> Result<Arc<dyn DynModel>, AdapterError> {
    let url = at.base_url.as_str();
    match at.protocol {
        #[cfg(feature = "http")]
        ModelProtocol::Chat => {
            let builder = built!(ChatModel::compatible(url, model), at, key);
            let builder = if at.stream { builder } else { builder.without_streaming() };
            Ok(Arc::new(builder.build()?))
        }
        #[cfg(feature = "http")]
        ModelProtocol::Messages => {
            Ok(Arc::new(built!(MessagesModel::compatible(url, model), at, key).build()?))
        }
        #[cfg(feature = "http")]
        ModelProtocol::Responses => {
            Ok(Arc::new(built!(ResponsesModel::compatible(url, model), at, key).build()?))
        }
        _ => {
            let _ = (url, key);
            Err(AdapterError::UnknownModel { name: model.to_owned() })
        }
    }
}

#[cfg_attr(not(feature = "http"), expect(dead_code, reason = "no protocol is built in"))]
fn prices(price: &ModelPrice) -> PriceTable {
    let mut prices = TokenPrices::new(price.input, price.output);
    prices.cache_read = price.cache_read.unwrap_or(price.input);
    prices.cache_write = price.cache_write.unwrap_or(price.input);
    prices.cache_write_1h = price.cache_write_1h.unwrap_or(prices.cache_write);
    PriceTable::flat(prices, "the registry file")
}
