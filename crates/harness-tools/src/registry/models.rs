//! The section `models` of a registry file: endpoints, and what is put around them, as data.
//!
//! This crate knows no models; the facade builds them from these entries.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use harness_core::Json;
use harness_core::message::Cost;

use super::bound::Registry;
use super::entry::{Fields, child, unknown_keys};
use super::faults::Faults;
use super::yaml::{Node, Step};

/// Key of the section.
pub(super) const SECTION: &str = "models";

/// Keys of an entry with an endpoint of its own.
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
pub(super) fn read(
    file: &[(String, Node)],
    rooted: &dyn Fn(&str) -> PathBuf,
    faults: &mut Faults<'_>,
) -> BTreeMap<String, ModelEntry> {
    let Some((_, node)) = file.iter().find(|(key, _)| key == SECTION) else { return BTreeMap::new() };
    let path = child(&[], SECTION);
    let Some(entries) = node.as_map() else {
        let hint = "write `NAME: { base_url: URL }` for each model".to_owned();
        faults.value(&path, format!("expected a mapping, found {}", node.kind()), Some(hint));
        return BTreeMap::new();
    };
    let mut models = BTreeMap::new();
    for (name, node) in entries {
        let entry = read_entry(name, node, &child(&path, name), rooted, faults);
        models.extend(entry.map(|entry| (name.clone(), entry)));
    }
    check_cycles(&models, &path, faults);
    models
}

fn read_entry(
    name: &str,
    node: &Node,
    path: &[Step],
    rooted: &dyn Fn(&str) -> PathBuf,
    faults: &mut Faults<'_>,
) -> Option<ModelEntry> {
    if name.trim().is_empty() || name.contains(char::is_whitespace) {
        faults.key(
            path,
            format!("invalid model name `{name}`"),
            Some("use a name without spaces".to_owned()),
        );
    }
    let Some(keys) = node.as_map() else {
        let hint = "write `base_url`, or `model` with a known name, below it".to_owned();
        faults.value(path, format!("expected a mapping, found {}", node.kind()), Some(hint));
        return None;
    };
    let has_endpoint = keys.iter().any(|(key, _)| key == "base_url");
    let known: Vec<&str> = KEYS.into_iter().chain(ENDPOINT_KEYS).collect();
    unknown_keys(keys, &known, path, faults);
    if !has_endpoint {
        for (key, _) in keys.iter().filter(|(key, _)| ENDPOINT_KEYS.contains(&key.as_str())) {
            let hint = Some("add `base_url`, or remove the key".to_owned());
            faults.key(&child(path, key), format!("`{key}` requires `base_url`"), hint);
        }
    }
    let mut fields = Fields::new(keys, path, faults);
    let model = match (has_endpoint, fields.get("model")) {
        (true, None) => name.to_owned(),
        (true, Some(_)) => fields.required("model", "write the name of the model at the endpoint"),
        (false, _) => {
            fields.required("model", "write a known name such as `openai/gpt-5-mini`, or add `base_url`")
        }
    };
    let mut entry = ModelEntry {
        model,
        endpoint: None,
        window: fields.whole("window", 1, MOST),
        fallback: fallback(&mut fields),
        retry: retry(&mut fields),
        rate_limit: rate_limit(&mut fields),
        breaker: section(&mut fields, "breaker", &["faults", "cool_down"], |fields| ModelBreaker {
            faults: count(fields, "faults"),
            cool_down: fields.span("cool_down"),
        }),
        cache: section(&mut fields, "cache", &["answers", "bytes"], |fields| ModelCache {
            answers: count(fields, "answers"),
            bytes: fields.bytes("bytes", 1, MAX_CACHE),
        }),
    };
    entry.endpoint = has_endpoint.then(|| endpoint(&mut fields, rooted));
    Some(entry)
}

fn endpoint(fields: &mut Fields<'_, '_, '_>, rooted: &dyn Fn(&str) -> PathBuf) -> ModelEndpoint {
    let base_url = fields.required("base_url", "write the base URL, such as `https://host/v1`");
    if !base_url.is_empty() && !base_url.starts_with("http://") && !base_url.starts_with("https://") {
        fields.fault("base_url", "not an HTTP URL", "write the base URL, such as `https://host/v1`");
    }
    let protocols = [
        ("chat", ModelProtocol::Chat),
        ("messages", ModelProtocol::Messages),
        ("responses", ModelProtocol::Responses),
    ];
    let protocol = fields.one_of("protocol", &protocols);
    let stream = fields.flag("stream", true);
    if !stream && protocol != ModelProtocol::Chat {
        fields.fault("stream", "only the protocol `chat` has responses without streaming", "remove the key");
    }
    ModelEndpoint {
        base_url,
        protocol,
        headers: fields.pairs("headers"),
        query: fields.pairs("query"),
        auth: auth(fields, rooted),
        settings: settings(fields),
        images: fields.flag("images", true),
        stream,
        price: section(fields, "price", &PRICE_KEYS, price).flatten(),
    }
}

/// Reads a mapping below a key; `None` without it.
fn section<T>(
    fields: &mut Fields<'_, '_, '_>,
    key: &str,
    known: &[&str],
    read: impl FnOnce(&mut Fields<'_, '_, '_>) -> T,
) -> Option<T> {
    let node = fields.get(key)?;
    let path = child(fields.path(), key);
    let Some(entries) = node.as_map() else {
        let hint = format!("write {} below it", crate::near::list(known, "or"));
        fields.fault(key, format!("expected a mapping, found {}", node.kind()), hint);
        return None;
    };
    unknown_keys(entries, known, &path, fields.faults());
    Some(read(&mut Fields::new(entries, &path, fields.faults())))
}

fn count(fields: &mut Fields<'_, '_, '_>, key: &str) -> Option<u32> {
    fields.whole(key, 1, MOST).and_then(|count| u32::try_from(count).ok())
}

fn auth(fields: &mut Fields<'_, '_, '_>, rooted: &dyn Fn(&str) -> PathBuf) -> Option<ModelAuth> {
    const FORM: &str = "write `env: VARIABLE` or `file: PATH`, or `auth: none`";
    if fields.get("auth")?.as_text() == Some("none") {
        return None;
    }
    section(fields, "auth", &["env", "file", "header"], |fields| {
        let header = fields.text("header");
        match (fields.text("env"), fields.text("file")) {
            (Some(name), None) => Some(ModelAuth { key: ModelKey::Env(name), header }),
            (None, Some(file)) => Some(ModelAuth { key: ModelKey::File(rooted(&file)), header }),
            (None, None) => {
                fields.missing("env", FORM);
                None
            }
            (Some(_), Some(_)) => {
                fields.fault("file", "`env` and `file` exclude each other", "remove one of them");
                None
            }
        }
    })
    .flatten()
}

fn settings(fields: &mut Fields<'_, '_, '_>) -> Option<Json> {
    let node = fields.get("settings")?;
    let settings = node.as_map().and_then(|_| node.to_json());
    if settings.is_none() {
        fields.fault("settings", "expected a mapping of JSON values", "write `NAME: VALUE` for each setting");
    }
    settings
}

const PRICE_KEYS: [&str; 5] = ["input", "output", "cache_read", "cache_write", "cache_write_1h"];

fn price(fields: &mut Fields<'_, '_, '_>) -> Option<ModelPrice> {
    const FORM: &str = "write US dollars for a million tokens, such as `0.25`";
    let mut cost = |key: &str| {
        let node = fields.get(key)?;
        let cost = if let Node::Number(written, _) = node { written.parse().ok() } else { None };
        if cost.is_none() {
            fields.fault(key, format!("expected a price, found {}", node.kind()), FORM);
        }
        cost
    };
    let [input, output, cache_read, cache_write, cache_write_1h] = PRICE_KEYS.map(&mut cost);
    for key in ["input", "output"].into_iter().filter(|key| fields.get(key).is_none()).collect::<Vec<_>>() {
        fields.missing(key, FORM);
    }
    Some(ModelPrice { input: input?, output: output?, cache_read, cache_write, cache_write_1h })
}

fn fallback(fields: &mut Fields<'_, '_, '_>) -> Option<ModelFallback> {
    const FORM: &str = "write the names of the other models: `[NAME, NAME]`";
    let fallback = if fields.get("fallback")?.as_list().is_some() {
        ModelFallback { models: fields.texts("fallback"), each: None, longest: None }
    } else {
        section(fields, "fallback", &["models", "each", "longest"], |fields| ModelFallback {
            models: fields.texts("models"),
            each: fields.span("each"),
            longest: fields.span("longest"),
        })?
    };
    if fallback.models.is_empty() {
        fields.fault("fallback", "no models to fall back to", FORM);
    }
    Some(fallback)
}

/// `off`, or a mapping.
fn retry(fields: &mut Fields<'_, '_, '_>) -> Option<ModelRetry> {
    if fields.get("retry")?.as_text() == Some("off") {
        return Some(ModelRetry { attempts: Some(1), ..ModelRetry::default() });
    }
    section(fields, "retry", &["attempts", "first_wait", "longest_wait"], |fields| ModelRetry {
        attempts: count(fields, "attempts"),
        first_wait: fields.span("first_wait"),
        longest_wait: fields.span("longest_wait"),
    })
}

fn rate_limit(fields: &mut Fields<'_, '_, '_>) -> Option<ModelRate> {
    let limit = section(fields, "rate_limit", &["requests", "tokens", "waiting"], |fields| ModelRate {
        requests: count(fields, "requests"),
        tokens: count(fields, "tokens"),
        waiting: count(fields, "waiting"),
    })?;
    if limit.requests.is_none() && limit.tokens.is_none() {
        fields.fault("rate_limit", "no limit is set", "write `requests` or `tokens` per minute");
    }
    Some(limit)
}

/// Reports models that fall back to themselves.
fn check_cycles(models: &BTreeMap<String, ModelEntry>, path: &[Step], faults: &mut Faults<'_>) {
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
                    let hint = Some("remove one of the names".to_owned());
                    faults.value(&child(&child(path, name), "fallback"), problem, hint);
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
