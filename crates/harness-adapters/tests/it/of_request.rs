//! What a request brings along itself: its key, and how hard to think.

use std::fmt::Write as _;
use std::sync::Arc;

use harness_adapters::chat::ChatModel;
use harness_adapters::messages::MessagesModel;
use harness_adapters::responses::ResponsesModel;
use harness_adapters::{CachePolicy, Fallback, ResponseCache, Retry, RetryPolicy, ThinkingLevels};
use harness_core::Json;
use harness_core::port::{
    DynModel, Model as _, ModelFaultCode, ModelRequest, PreparedAgent, Secret, ThinkingLevel,
};
use harness_record::traffic::{Recorder, Replay};
use serde_json::Value;

use crate::faults_leak::{heard, listen, telltales};
use crate::support::{KEY, PROTOCOLS, Pieces, Reply, Server, hello, step};

/// The key of a request; no test may find it anywhere but in the header.
const OWN: &str = "sk-own-of-this-request";

fn with_key(key: &str) -> ModelRequest {
    let mut request = hello();
    request.key = Some(Secret::new(key));
    request
}

/// The header in which each protocol has its key.
fn key_of(seen: &crate::support::Seen) -> String {
    let header = seen.header("authorization").or(seen.header("x-api-key"));
    header.unwrap_or_default().trim_start_matches("Bearer ").to_owned()
}

#[tokio::test]
async fn the_key_of_a_request_goes_before_that_of_the_adapter() {
    for protocol in PROTOCOLS {
        let answer = || Reply::events().send((protocol.answer)().bytes());
        let server = Server::start([answer(), answer(), answer()]).await;
        let model = (protocol.model)(&server.url());
        for request in [with_key(OWN), with_key(" \n"), hello()] {
            step(&model, request).await.unwrap();
        }
        let keys: Vec<_> = server.seen().iter().map(key_of).collect();
        assert_eq!(keys, [OWN, KEY, KEY], "{}", protocol.name);
    }
}

#[tokio::test]
async fn a_key_that_no_header_may_carry_is_a_fault_that_does_not_show_it() {
    for protocol in PROTOCOLS {
        let server = Server::start([]).await;
        let model = (protocol.model)(&server.url());
        let fault = step(&model, with_key("sk-own\nof-this")).await.unwrap_err();
        assert_eq!(fault.code, ModelFaultCode::AuthFailed);
        assert!(!fault.message.contains("sk-own"), "{}", fault.message);
        assert_eq!(server.seen().len(), 0);
    }
}

#[tokio::test]
async fn the_key_of_a_request_that_an_endpoint_repeats_is_written_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    for protocol in PROTOCOLS {
        for (at, reply) in telltales(protocol, OWN).into_iter().enumerate() {
            let context = format!("{}, reply {at}", protocol.name);
            let server = Server::start([reply]).await;
            let pieces = Pieces::default();
            listen();
            let mut policy = RetryPolicy::default();
            policy.attempts = 1;
            let cached = ResponseCache::new((protocol.model)(&server.url()), CachePolicy::default());
            let model = Recorder::create(Retry::new(cached, policy), &path).unwrap();
            let request = with_key(OWN);
            let shown = format!("{request:?}");
            let fault = model.step(request, &pieces).await.expect_err(&context);
            let log = heard();
            let recording = std::fs::read_to_string(&path).unwrap();
            let written = format!("{fault} {fault:?} {pieces:?} {model:?} {recording} {log} {shown}");
            assert!(!written.contains(OWN), "{context}: the key is in {written}");
            assert!(server.seen().iter().all(|seen| !seen.body.contains(OWN)), "{context}: the body has it");
        }
    }
}

#[tokio::test]
async fn a_recording_does_not_hold_the_key_and_is_replayed_with_another() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let answer = Reply::events().delta(&format!(r#"{{"content":"Yours is {OWN}."}}"#)).finish("stop");
    let server = Server::start([answer]).await;
    let recorder = Recorder::create(crate::support::model(&server), &path).unwrap();
    step(&recorder, with_key(OWN)).await.unwrap();
    let recording = std::fs::read_to_string(&path).unwrap();
    assert!(!recording.contains(OWN), "{recording}");
    let answer = step(&Replay::open(&path).unwrap(), with_key("another")).await.unwrap();
    assert_eq!(answer.joined_text(), "Yours is [key].");
}

#[tokio::test]
async fn a_key_stays_with_the_model_that_it_was_found_for() {
    let server = Server::start([Reply::json(500, "{}")]).await;
    let other = Server::start([Reply::events().delta(r#"{"content":"ok"}"#).finish("stop")]).await;
    let model =
        Fallback::new("first", crate::support::model(&server)).or("other", crate::support::model(&other));
    step(&model, with_key(OWN)).await.unwrap();
    assert_eq!((key_of(&server.seen()[0]), key_of(&other.seen()[0])), (OWN.to_owned(), KEY.to_owned()));
}

/// What is sent for each level, from the lowest, by a model with these settings: the named fields of the body.
async fn thinking(
    model: impl Fn(&str) -> Arc<dyn DynModel>,
    settings: &str,
    fields: [&str; 3],
    answer: &str,
) -> String {
    let mut lines = String::new();
    for level in [None].into_iter().chain(ThinkingLevel::ALL.map(Some)) {
        let server = Server::start([Reply::events().send(answer)]).await;
        let mut request = hello();
        let settings = Json::parse(settings).unwrap();
        request.prepared = Arc::new(PreparedAgent::new("main", "", []).with_model(None, Some(settings)));
        request.thinking = level;
        step(&model(&server.url()), request).await.unwrap();
        let body = server.seen().remove(0).json();
        let sent = fields.map(|field| (field, &body[field]));
        let sent = sent.into_iter().filter(|(_, value)| !matches!(value, Value::Null));
        let sent: Vec<_> = sent.map(|(field, value)| format!("{field}: {value}")).collect();
        let _ = writeln!(lines, "{}: {}", level.map_or("unset", ThinkingLevel::as_str), sent.join(" "));
    }
    lines
}

/// `protocol`: its place among all of them.
fn answer_of(protocol: usize) -> String {
    (PROTOCOLS[protocol].answer)().bytes()
}

const EFFORT: [&str; 3] = ["reasoning", "reasoning_effort", "thinking"];

#[tokio::test]
async fn a_router_is_told_the_effort() {
    let model = |url: &str| Arc::new(ChatModel::openrouter("a/b", KEY).base_url(url).build().unwrap()) as _;
    let settings = r#"{"reasoning":{"max_tokens":4000,"exclude":true}}"#;
    insta::assert_snapshot!(thinking(model, settings, EFFORT, &answer_of(0)).await, @r#"
    unset: reasoning: {"exclude":true,"max_tokens":4000}
    off: reasoning: {"effort":"none","exclude":true}
    minimal: reasoning: {"effort":"minimal","exclude":true}
    low: reasoning: {"effort":"low","exclude":true}
    medium: reasoning: {"effort":"medium","exclude":true}
    high: reasoning: {"effort":"high","exclude":true}
    xhigh: reasoning: {"effort":"high","exclude":true}
    "#);
}

#[tokio::test]
async fn an_endpoint_is_told_the_effort_and_nothing_for_off() {
    let model = |url: &str| Arc::new(ChatModel::compatible(url, "m").build().unwrap()) as _;
    let settings = r#"{"reasoning_effort":"low"}"#;
    insta::assert_snapshot!(thinking(model, settings, EFFORT, &answer_of(0)).await, @r#"
    unset: reasoning_effort: "low"
    off: 
    minimal: reasoning_effort: "minimal"
    low: reasoning_effort: "low"
    medium: reasoning_effort: "medium"
    high: reasoning_effort: "high"
    xhigh: reasoning_effort: "high"
    "#);
}

#[tokio::test]
async fn a_models_own_words_are_used() {
    let levels =
        ThinkingLevels::reasoning().with(ThinkingLevel::XHigh, "max").with(ThinkingLevel::Off, "none");
    let levels = levels.without(ThinkingLevel::Minimal);
    let model = move |url: &str| {
        let builder = ChatModel::compatible(url, "m").thinking(ThinkingLevel::Medium, &levels);
        Arc::new(builder.build().unwrap()) as _
    };
    insta::assert_snapshot!(thinking(model, "{}", EFFORT, &answer_of(0)).await, @r#"
    unset: reasoning_effort: "medium"
    off: reasoning_effort: "none"
    minimal: reasoning_effort: "low"
    low: reasoning_effort: "low"
    medium: reasoning_effort: "medium"
    high: reasoning_effort: "high"
    xhigh: reasoning_effort: "max"
    "#);
}

#[tokio::test]
async fn the_messages_api_is_given_a_budget() {
    let model = |url: &str| Arc::new(MessagesModel::compatible(url, "m").build().unwrap()) as _;
    let fields = ["thinking", "output_config", "max_tokens"];
    let sent = thinking(model, r#"{"reasoning_effort":"low"}"#, fields, &answer_of(1)).await;
    insta::assert_snapshot!(sent, @r#"
    unset: output_config: {"effort":"low"} max_tokens: 8192
    off: thinking: {"type":"disabled"} max_tokens: 8192
    minimal: thinking: {"budget_tokens":1024,"type":"enabled"} max_tokens: 9216
    low: thinking: {"budget_tokens":2048,"type":"enabled"} max_tokens: 10240
    medium: thinking: {"budget_tokens":8192,"type":"enabled"} max_tokens: 16384
    high: thinking: {"budget_tokens":16384,"type":"enabled"} max_tokens: 24576
    xhigh: thinking: {"budget_tokens":16384,"type":"enabled"} max_tokens: 24576
    "#);
    let sent = thinking(model, r#"{"max_tokens":4000}"#, fields, &answer_of(1)).await;
    insta::assert_snapshot!(sent, @r#"
    unset: max_tokens: 4000
    off: thinking: {"type":"disabled"} max_tokens: 4000
    minimal: thinking: {"budget_tokens":1024,"type":"enabled"} max_tokens: 4000
    low: thinking: {"budget_tokens":2048,"type":"enabled"} max_tokens: 4000
    medium: thinking: {"budget_tokens":2976,"type":"enabled"} max_tokens: 4000
    high: thinking: {"budget_tokens":2976,"type":"enabled"} max_tokens: 4000
    xhigh: thinking: {"budget_tokens":2976,"type":"enabled"} max_tokens: 4000
    "#);
    let own = |url: &str| {
        let levels = ThinkingLevels::reasoning().with(ThinkingLevel::XHigh, "60000");
        Arc::new(MessagesModel::compatible(url, "m").thinking_levels(levels).build().unwrap()) as _
    };
    let sent = thinking(own, r#"{"max_tokens":1500}"#, fields, &answer_of(1)).await;
    assert!(sent.ends_with("xhigh: thinking: {\"type\":\"disabled\"} max_tokens: 1500\n"), "{sent}");
    let sent = thinking(own, "{}", fields, &answer_of(1)).await;
    assert!(sent.contains("xhigh: thinking: {\"budget_tokens\":60000,"), "{sent}");
}

#[tokio::test]
async fn the_responses_api_is_told_the_effort() {
    let model = |url: &str| Arc::new(ResponsesModel::openai("m", KEY).base_url(url).build().unwrap()) as _;
    let settings = r#"{"reasoning":{"effort":"low","summary":"auto"}}"#;
    insta::assert_snapshot!(thinking(model, settings, EFFORT, &answer_of(2)).await, @r#"
    unset: reasoning: {"effort":"low","summary":"auto"}
    off: reasoning: {"summary":"auto"}
    minimal: reasoning: {"effort":"minimal","summary":"auto"}
    low: reasoning: {"effort":"low","summary":"auto"}
    medium: reasoning: {"effort":"medium","summary":"auto"}
    high: reasoning: {"effort":"high","summary":"auto"}
    xhigh: reasoning: {"effort":"high","summary":"auto"}
    "#);
    let routed =
        |url: &str| Arc::new(ResponsesModel::openrouter("a/b", KEY).base_url(url).build().unwrap()) as _;
    let sent = thinking(routed, "{}", EFFORT, &answer_of(2)).await;
    assert!(sent.contains("off: reasoning: {\"effort\":\"none\"}"), "{sent}");
}

#[tokio::test]
async fn a_level_is_part_of_a_recording_only_where_it_was_set() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let mut hard = hello();
    hard.thinking = Some(ThinkingLevel::High);
    for (request, expected) in [(hello(), false), (hard, true)] {
        let server = Server::start([Reply::events().send(answer_of(0))]).await;
        let recorder = Recorder::create(crate::support::model(&server), &path).unwrap();
        step(&recorder, request).await.unwrap();
        let recording = std::fs::read_to_string(&path).unwrap();
        assert_eq!(recording.contains(r#""thinking":"high""#), expected, "{recording}");
    }
    let fault = step(&Replay::open(&path).unwrap(), hello()).await.unwrap_err();
    assert!(fault.message.contains("thinking"), "{}", fault.message);
}
