//! The section `models` of registry files.

use std::path::Path;
use std::time::Duration;

use harness_core::limits::Payer;
use harness_core::message::Cost;
use harness_tools::{ModelEntry, ModelKey, ModelProtocol, Registry};

use crate::support::environment;

#[track_caller]
fn entry(text: &str, name: &str) -> ModelEntry {
    let text = format!("version: 1\nmodels:\n{text}");
    let registry = Registry::parse(&text, Path::new("dir/tools.yaml"), &environment());
    registry.unwrap().models()[name].clone()
}

/// The faults of the section, each with its place.
#[track_caller]
fn faults(text: &str) -> String {
    let text = format!("version: 1\nmodels:\n{text}");
    Registry::parse(&text, Path::new("tools.yaml"), &environment()).unwrap_err().to_string()
}

const FULL: &str = r#"
  house:
    base_url: https://host/v1
    model: gpt-5-mini
    protocol: chat
    headers: { x-team: SECRET-1 }
    query: { api-version: SECRET-2 }
    auth: { env: HOUSE_KEY, header: api-key }
    settings: { temperature: 0.10 }
    images: false
    stream: false
    window: 64000
    price: { input: 0.25, output: 2, cache_read: 0.025, cache_write: 1, cache_write_1h: 1.5 }
    fallback: { models: [other, openai/gpt-5], each: 20s, longest: 1m }
    retry: { attempts: 5, first_wait: 1s, longest_wait: 30s }
    rate_limit: { requests: 60, tokens: 100000, waiting: 8, turns: metadata.tenant }
    breaker: { faults: 3, cool_down: 10s }
    cache: { answers: 10, bytes: 1MiB }
  other: { base_url: "http://127.0.0.1:8080", auth: { file: keys/other } }
  fast: { model: openai/gpt-5-nano, retry: off }
"#;

#[test]
fn models_carry_every_key() {
    let house = entry(FULL, "house");
    let endpoint = house.endpoint.as_ref().unwrap();
    assert_eq!((house.model.as_str(), house.window), ("gpt-5-mini", Some(64_000)));
    assert_eq!(endpoint.base_url, "https://host/v1");
    assert_eq!(endpoint.protocol, ModelProtocol::Chat);
    assert_eq!(endpoint.headers, [("x-team".to_owned(), "SECRET-1".to_owned())]);
    assert_eq!(endpoint.query, [("api-version".to_owned(), "SECRET-2".to_owned())]);
    assert_eq!(endpoint.settings.as_ref().unwrap().text(), r#"{"temperature":0.10}"#);
    assert_eq!((endpoint.images, endpoint.stream), (false, false));
    let auth = endpoint.auth.as_ref().unwrap();
    assert_eq!(
        (&auth.key, auth.header.as_deref()),
        (&ModelKey::Env("HOUSE_KEY".to_owned()), Some("api-key"))
    );
    let price = endpoint.price.as_ref().unwrap();
    assert_eq!((price.input, price.output), (Cost(250_000_000), Cost(2_000_000_000)));
    assert_eq!(price.cache_write_1h, Some(Cost(1_500_000_000)));
    let fallback = house.fallback.as_ref().unwrap();
    assert_eq!(fallback.models, ["other", "openai/gpt-5"]);
    assert_eq!(fallback.each, Some(Duration::from_secs(20)));
    let retry = house.retry.as_ref().unwrap();
    assert_eq!((retry.attempts, retry.longest_wait), (Some(5), Some(Duration::from_secs(30))));
    let limit = house.rate_limit.as_ref().unwrap();
    assert_eq!((limit.requests, limit.tokens, limit.waiting), (Some(60), Some(100_000), Some(8)));
    assert_eq!(limit.turns, Some(Payer::Metadata("tenant".into())));
    let breaker = house.breaker.as_ref().unwrap();
    assert_eq!((breaker.faults, breaker.cool_down), (Some(3), Some(Duration::from_secs(10))));
    let cache = house.cache.as_ref().unwrap();
    assert_eq!((cache.answers, cache.bytes), (Some(10), Some(1 << 20)));
}

#[test]
fn defaults_of_an_endpoint_are_chat_streamed_and_without_credentials() {
    let model = entry("  m: { base_url: http://h }", "m");
    let endpoint = model.endpoint.as_ref().unwrap();
    assert_eq!((model.model.as_str(), endpoint.protocol), ("m", ModelProtocol::Chat));
    assert_eq!((endpoint.images, endpoint.stream, &endpoint.auth), (true, true, &None));
    assert_eq!(entry("  m: { base_url: http://h, auth: none }", "m").key(), None);
}

#[test]
fn key_files_are_relative_to_the_registry_file_and_protected() {
    let text = format!("version: 1\nmodels:{FULL}");
    let registry = Registry::parse(&text, Path::new("/dir/tools.yaml"), &environment()).unwrap();
    assert_eq!(registry.models()["other"].key(), Some(&ModelKey::File("/dir/keys/other".into())));
}

#[test]
fn models_without_an_endpoint_name_a_known_model() {
    let fast = entry(FULL, "fast");
    assert_eq!((fast.model.as_str(), fast.endpoint.is_none()), ("openai/gpt-5-nano", true));
    assert_eq!(fast.retry.unwrap().attempts, Some(1));
}

#[test]
fn debug_output_omits_header_and_query_values() {
    let shown = format!("{:?}", entry(FULL, "house"));
    assert!(shown.contains("x-team") && shown.contains("HOUSE_KEY"), "{shown}");
    assert!(!shown.contains("SECRET"), "{shown}");
}

#[test]
fn faults_have_line_column_and_hint() {
    insta::assert_snapshot!(faults("  a: { base_ur: https://h }\n  b: 1\n"), @"
    tools.yaml:3:3: missing `model` in models.a; write a known name such as `openai/gpt-5-mini`, or add `base_url`
    tools.yaml:3:8: unknown key `base_ur` in models.a; did you mean `base_url`?
    tools.yaml:4:6: models.b must be a mapping, not a number; write `base_url`, or `model` with a known name, below it
    ");
    let text = "  a:\n    base_url: h\n    protocol: chatt\n    auth: { env: A, file: b }\n    price: { input: x }\n";
    insta::assert_snapshot!(faults(text), @"
    tools.yaml:4:15: models.a.base_url: not an HTTP URL; write the base URL, such as `https://host/v1`
    tools.yaml:5:15: models.a.protocol must be `chat`, `messages` or `responses`, not `chatt`; did you mean `chat`?
    tools.yaml:6:27: models.a.auth.file: `env` and `file` exclude each other; remove one of them
    tools.yaml:7:5: missing `output` in models.a.price; write US dollars for a million tokens, such as `0.25`
    tools.yaml:7:21: models.a.price.input must be a price, not `x`; write US dollars for a million tokens, such as `0.25`
    ");
    let text =
        "  a:\n    model: openai/x\n    query: { a: b }\n    rate_limit: { waiting: 2 }\n    window: 0\n";
    insta::assert_snapshot!(faults(text), @"
    tools.yaml:5:5: models.a.query requires `base_url`; add `base_url`, or remove the key
    tools.yaml:6:17: models.a.rate_limit: no limit is set; write `requests` or `tokens` per minute
    tools.yaml:7:13: models.a.window must be a whole number from 1 to 1000000000, not `0`
    ");
    let text = "  a b: { base_url: http://h, fallback: [], retry: on, protocol: messages, stream: false }\n";
    insta::assert_snapshot!(faults(text), @r#"
    tools.yaml:3:3: invalid model name `a b`; use a name without spaces
    tools.yaml:3:40: models.a b.fallback: no models to fall back to; write the names of the other models: `[NAME, NAME]`
    tools.yaml:3:51: models.a b.retry must be a mapping, not a string; write `attempts`, `first_wait` or `longest_wait` below it
    tools.yaml:3:83: models.a b.stream: only the protocol `chat` has responses without streaming; remove the key
    "#);
}

#[test]
fn fallback_chains_cannot_lead_back() {
    let text =
        "  a: { base_url: http://h, fallback: [b, x/y] }\n  b: { base_url: http://h, fallback: [a] }\n";
    insta::assert_snapshot!(faults(text), @"
    tools.yaml:3:38: models.a.fallback: `a` falls back to itself through `b`; remove one of the names
    tools.yaml:4:38: models.b.fallback: `b` falls back to itself through `a`; remove one of the names
    ");
    let own = faults("  a: { base_url: http://h, fallback: [a] }\n");
    insta::assert_snapshot!(own, @"tools.yaml:3:38: models.a.fallback: `a` falls back to itself; remove one of the names");
}
