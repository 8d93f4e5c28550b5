//! The section `models` of a registry file: endpoints, and what is put around them, as data.
//!
//! This crate knows no models; the facade builds them from these entries.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use harness_core::Json;
use harness_core::limits::Payer;
use harness_core::message::Cost;

use harness_diagnostics::document::Kind;
use harness_diagnostics::{Fields, suggest};

use super::bound::Registry;
use super::budgets::per;
use super::entry::MAX_TIMEOUT;

/// Key of the section.
pub(super) const SECTION: &str = "models";

/// Keys of an entry with an endpoint.
const ENDPOINT_KEYS: [&str; 8] =
    ["protocol", "headers", "query", "auth", "settings", "images", "stream", "price"];

/// Keys of every entry.
const KEYS: [&str; 8] =
    ["base_url", "model", "window", "fallback", "retry", "rate_limit", "breaker", "cache"];

/// Largest count in an entry.
const MOST: u64 = 1_000_000_000;

/// Largest cache: 1 GiB.
const MAX_CACHE: u64 = 1 << 30;

/// One model of a registry file.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ModelEntry {
    /// Name of the model at its endpoint. Without an endpoint, a name that the program knows by
    /// itself, such as `openai/gpt-5-mini`.
    pub model: String,
    /// Endpoint; `None` uses the program's own for the name.
    pub endpoint: Option<ModelEndpoint>,
    /// Context window in tokens. `None`: unknown.
    pub window: Option<u64>,
    /// Models that are called if this one fails.
    pub fallback: Option<ModelFallback>,
    /// Retries. `None` uses the defaults of the program.
    pub retry: Option<ModelRetry>,
    /// Rate limit. `None`: unlimited.
    pub rate_limit: Option<ModelRate>,
    /// Circuit breaker. `None`: always closed.
    pub breaker: Option<ModelBreaker>,
    /// Response cache. `None`: every request is sent.
    pub cache: Option<ModelCache>,
}

/// Endpoint of a model. `Debug` omits the values of headers and query parameters.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct ModelEndpoint {
    /// Base URL, or the full URL.
    pub base_url: String,
    /// Protocol. Default: chat completions.
    pub protocol: ModelProtocol,
    /// Headers of each request.
    pub headers: Vec<(String, String)>,
    /// Query parameters of each request.
    pub query: Vec<(String, String)>,
    /// Credentials. `None` sends none.
    pub auth: Option<ModelAuth>,
    /// Settings in the body of each request, an object; those of an agent override them.
    pub settings: Option<Json>,
    /// Whether the model accepts images. Default: true.
    pub images: bool,
    /// Whether responses are streamed. Default: true.
    pub stream: bool,
    /// Prices. `None` uses the built-in list.
    pub price: Option<ModelPrice>,
}

/// Protocol of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelProtocol {
    /// Chat completions, `chat` in the file.
    #[default]
    Chat,
    /// Anthropic's Messages API, `messages` in the file.
    Messages,
    /// OpenAI's Responses API, `responses` in the file.
    Responses,
}

/// Credentials of an endpoint: where the API key is, never the key itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelAuth {
    /// Source of the API key.
    pub key: ModelKey,
    /// Header that carries the API key without a prefix. `None` uses that of the protocol, a bearer
    /// token for chat completions.
    pub header: Option<String>,
}

/// Source of an API key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelKey {
    /// Environment variable of this name.
    Env(String),
    /// File that contains only the API key.
    File(PathBuf),
}

/// Prices in US dollars for a million tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelPrice {
    /// Input tokens.
    pub input: Cost,
    /// Output tokens.
    pub output: Cost,
    /// Input tokens read from a cache. `None`: as `input`.
    pub cache_read: Option<Cost>,
    /// Input tokens written to a cache for minutes. `None`: as `input`.
    pub cache_write: Option<Cost>,
    /// Input tokens written to a cache for an hour. `None`: as `cache_write`.
    pub cache_write_1h: Option<Cost>,
}

/// Fallback chain of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelFallback {
    /// Names of the models, in order: entries of the file, or names that the program knows by itself.
    pub models: Vec<String>,
    /// Time limit of each model. `None`: none.
    pub each: Option<Duration>,
    /// Time limit of all models together. `None` uses the default.
    pub longest: Option<Duration>,
}

/// Retries of a model call after transient errors. `None` uses the default of the field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelRetry {
    /// Attempts in total; 1 disables retries.
    pub attempts: Option<u32>,
    /// Wait before the second attempt.
    pub first_wait: Option<Duration>,
    /// Longest wait between attempts.
    pub longest_wait: Option<Duration>,
}

/// Rate limit of a model. At least one of the first two is set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelRate {
    /// Requests per minute. `None`: unlimited.
    pub requests: Option<u32>,
    /// Tokens per minute. `None`: unlimited.
    pub tokens: Option<u32>,
    /// Largest number of waiting requests. `None` uses the default.
    pub waiting: Option<u32>,
    /// Payer that takes turns. `None`: each user.
    pub turns: Option<Payer>,
}

/// Circuit breaker of a model. `None` uses the default of the field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelBreaker {
    /// Consecutive errors that open the circuit.
    pub faults: Option<u32>,
    /// Time until one request is tried again.
    pub cool_down: Option<Duration>,
}

/// Response cache of a model, in memory. `None` uses the default of the field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelCache {
    /// Largest number of answers.
    pub answers: Option<u32>,
    /// Largest total size, in bytes.
    pub bytes: Option<u64>,
}

impl ModelEntry {
    /// Source of its API key. `None`: it has no endpoint, or no credentials.
    pub fn key(&self) -> Option<&ModelKey> {
        self.endpoint.as_ref()?.auth.as_ref().map(|auth| &auth.key)
    }
}

impl fmt::Debug for ModelEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names =
            |pairs: &[(String, String)]| pairs.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        f.debug_struct("ModelEndpoint")
            .field("protocol", &self.protocol)
            .field("headers", &names(&self.headers))
            .field("query", &names(&self.query))
            .field("auth", &self.auth)
            .finish_non_exhaustive()
    }
}

impl Registry {
    /// The models of the section `models`, by name.
    pub fn models(&self) -> &BTreeMap<String, ModelEntry> {
        &self.models
    }
}

/// Reads the section `models` of a file; `rooted` resolves a relative path.
pub(super) fn read(root: &Fields<'_>, rooted: &dyn Fn(&str) -> PathBuf) -> BTreeMap<String, ModelEntry> {
    let hint = "write `NAME: { base_url: URL }` for each model";
    let Some(section) = root.section(SECTION, hint) else { return BTreeMap::new() };
    let entry = |name: &str| Some((name.to_owned(), read_entry(name, &section, rooted)?));
    let models = section.keys().filter_map(entry).collect();
    check_cycles(&models, &section);
    models
}

fn read_entry(name: &str, section: &Fields<'_>, rooted: &dyn Fn(&str) -> PathBuf) -> Option<ModelEntry> {
    if name.trim().is_empty() || name.contains(char::is_whitespace) {
        section.key_error(name, format!("invalid model name `{name}`"), "use a name without spaces");
    }
    let fields = section.section(name, "write `base_url`, or `model` with a known name, below it")?;
    let known: Vec<&str> = KEYS.into_iter().chain(ENDPOINT_KEYS).collect();
    fields.known(&known);
    let has_endpoint = fields.has("base_url");
    if !has_endpoint {
        for key in fields.keys().filter(|key| ENDPOINT_KEYS.contains(key)) {
            let message = format!("{} requires `base_url`", fields.path_of(key));
            fields.key_error(key, message, "add `base_url`, or remove the key");
        }
    }
    let model = match (has_endpoint, fields.has("model")) {
        (true, false) => name.to_owned(),
        (true, true) => fields.required("model", "write the name of the model at the endpoint"),
        (false, _) => {
            fields.required("model", "write a known name such as `openai/gpt-5-mini`, or add `base_url`")
        }
    };
    Some(ModelEntry {
        model,
        endpoint: has_endpoint.then(|| endpoint(&fields, rooted)),
        window: fields.whole("window", 1, MOST),
        fallback: fallback(&fields),
        retry: retry(&fields),
        rate_limit: rate_limit(&fields),
        breaker: below(&fields, "breaker", &["faults", "cool_down"]).map(|fields| ModelBreaker {
            faults: count(&fields, "faults"),
            cool_down: duration(&fields, "cool_down"),
        }),
        cache: below(&fields, "cache", &["answers", "bytes"]).map(|fields| ModelCache {
            answers: count(&fields, "answers"),
            bytes: fields.size("bytes", 1, MAX_CACHE),
        }),
    })
}

fn endpoint(fields: &Fields<'_>, rooted: &dyn Fn(&str) -> PathBuf) -> ModelEndpoint {
    const FORM: &str = "write the base URL, such as `https://host/v1`";
    let base_url = fields.required("base_url", FORM);
    if !base_url.is_empty() && !base_url.starts_with("http://") && !base_url.starts_with("https://") {
        fields.error("base_url", "not an HTTP URL", FORM);
    }
    let protocols = [
        ("chat", ModelProtocol::Chat),
        ("messages", ModelProtocol::Messages),
        ("responses", ModelProtocol::Responses),
    ];
    let protocol = fields.one_of("protocol", &protocols).unwrap_or_default();
    let stream = fields.flag("stream").unwrap_or(true);
    if !stream && protocol != ModelProtocol::Chat {
        fields.error("stream", "only the protocol `chat` has responses without streaming", "remove the key");
    }
    ModelEndpoint {
        base_url,
        protocol,
        headers: fields.pairs("headers"),
        query: fields.pairs("query"),
        auth: auth(fields, rooted),
        settings: settings(fields),
        images: fields.flag("images").unwrap_or(true),
        stream,
        price: below(fields, "price", &PRICE_KEYS).and_then(|fields| price(&fields)),
    }
}

/// The mapping under a key, whose keys are known; `None` without it.
fn below<'a>(fields: &Fields<'a>, key: &str, known: &[&str]) -> Option<Fields<'a>> {
    let section = fields.section(key, &format!("write {} below it", suggest::list(known, "or")))?;
    section.known(known);
    Some(section)
}

fn count(fields: &Fields<'_>, key: &str) -> Option<u32> {
    fields.whole(key, 1, MOST).and_then(|count| u32::try_from(count).ok())
}

fn duration(fields: &Fields<'_>, key: &str) -> Option<Duration> {
    fields.duration(key, MAX_TIMEOUT)
}

/// Whether the value of a key is this word.
fn is_word(fields: &Fields<'_>, key: &str, word: &str) -> bool {
    fields.node(key).is_some_and(|node| fields.document().string(node) == Some(word))
}

fn auth(fields: &Fields<'_>, rooted: &dyn Fn(&str) -> PathBuf) -> Option<ModelAuth> {
    const FORM: &str = "write `env: VARIABLE` or `file: PATH`, or `auth: none`";
    if is_word(fields, "auth", "none") {
        return None;
    }
    let fields = below(fields, "auth", &["env", "file", "header"])?;
    let header = fields.text("header");
    match (fields.text("env"), fields.text("file")) {
        (Some(name), None) => Some(ModelAuth { key: ModelKey::Env(name), header }),
        (None, Some(file)) => Some(ModelAuth { key: ModelKey::File(rooted(&file)), header }),
        (None, None) => {
            fields.missing("env", FORM);
            None
        }
        (Some(_), Some(_)) => {
            fields.error("file", "`env` and `file` exclude each other", "remove one of them");
            None
        }
    }
}

fn settings(fields: &Fields<'_>) -> Option<Json> {
    const FORM: &str = "write `NAME: VALUE` for each setting";
    fields.section("settings", FORM)?;
    let settings = fields.document().json(fields.node("settings")?);
    if settings.is_none() {
        fields.expected("settings", "a mapping of JSON values", FORM);
    }
    settings
}

const PRICE_KEYS: [&str; 5] = ["input", "output", "cache_read", "cache_write", "cache_write_1h"];

fn price(fields: &Fields<'_>) -> Option<ModelPrice> {
    const FORM: &str = "write US dollars for a million tokens, such as `0.25`";
    let [input, output, cache_read, cache_write, cache_write_1h] =
        PRICE_KEYS.map(|key| cost(fields, key, "a price", FORM));
    for key in ["input", "output"].into_iter().filter(|key| !fields.has(key)) {
        fields.missing(key, FORM);
    }
    Some(ModelPrice { input: input?, output: output?, cache_read, cache_write, cache_write_1h })
}

/// The amount of money under a key.
pub(super) fn cost(fields: &Fields<'_>, key: &str, what: &str, form: &str) -> Option<Cost> {
    let (document, node) = (fields.document(), fields.node(key)?);
    let is_number = matches!(document.kind(node), Kind::Number(_));
    let cost = document.written(node).parse().ok().filter(|_| is_number);
    if cost.is_none() {
        fields.expected(key, what, form);
    }
    cost
}

fn fallback(fields: &Fields<'_>) -> Option<ModelFallback> {
    const FORM: &str = "write the names of the other models: `[NAME, NAME]`";
    let is_list = fields.document().list(fields.node("fallback")?).is_some();
    let fallback = if is_list {
        ModelFallback { models: fields.texts("fallback"), each: None, longest: None }
    } else {
        let fields = below(fields, "fallback", &["models", "each", "longest"])?;
        ModelFallback {
            models: fields.texts("models"),
            each: duration(&fields, "each"),
            longest: duration(&fields, "longest"),
        }
    };
    if fallback.models.is_empty() {
        fields.error("fallback", "no models to fall back to", FORM);
    }
    Some(fallback)
}

/// `off`, or a mapping.
fn retry(fields: &Fields<'_>) -> Option<ModelRetry> {
    if is_word(fields, "retry", "off") {
        return Some(ModelRetry { attempts: Some(1), ..ModelRetry::default() });
    }
    below(fields, "retry", &["attempts", "first_wait", "longest_wait"]).map(|fields| ModelRetry {
        attempts: count(&fields, "attempts"),
        first_wait: duration(&fields, "first_wait"),
        longest_wait: duration(&fields, "longest_wait"),
    })
}

fn rate_limit(fields: &Fields<'_>) -> Option<ModelRate> {
    let limits = below(fields, "rate_limit", &["requests", "tokens", "waiting", "turns"])?;
    let limit = ModelRate {
        requests: count(&limits, "requests"),
        tokens: count(&limits, "tokens"),
        waiting: count(&limits, "waiting"),
        turns: per(&limits, "turns"),
    };
    if limit.requests.is_none() && limit.tokens.is_none() {
        fields.error("rate_limit", "no limit is set", "write `requests` or `tokens` per minute");
    }
    Some(limit)
}

/// Reports models that fall back to themselves.
fn check_cycles(models: &BTreeMap<String, ModelEntry>, section: &Fields<'_>) {
    for name in models.keys() {
        let mut seen = BTreeSet::new();
        let mut open = vec![name];
        while let Some(next) = open.pop() {
            let chain = models.get(next).and_then(|entry| entry.fallback.as_ref());
            for link in chain.into_iter().flat_map(|chain| &chain.models) {
                if link == name {
                    let problem = if next == name {
                        format!("`{name}` falls back to itself")
                    } else {
                        format!("`{name}` falls back to itself through `{next}`")
                    };
                    if let Some(entry) = section.section(name, "") {
                        entry.error("fallback", problem, "remove one of the names");
                    }
                    open.clear();
                    break;
                }
                if seen.insert(link) {
                    open.push(link);
                }
            }
        }
    }
}
