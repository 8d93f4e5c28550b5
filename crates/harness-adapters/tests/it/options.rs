//! What a chat model can be asked for beyond a conversation: forms of answers, caches, routes, prices.

use std::sync::Arc;

use harness_adapters::chat::{ChatModel, ChatModelBuilder, PromptCache};
use harness_adapters::{OutputSchema, PriceTable, ThinkingLevels, read_answer};
use harness_core::Json;
use harness_core::message::{
    AssistantMessage, Block, Invalid, Message, ModelOutput, ToolCall, ToolResultMessage, Usage, UserMessage,
};
use harness_core::port::{ModelFaultCode, ModelRequest, PreparedAgent, ThinkingLevel};
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::{KEY, Reply, Server, hello, request, step};

fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

fn answering(text: &str) -> Reply {
    Reply::events().delta(&json!({ "content": text }).to_string()).finish("stop")
}

async fn sent(builder: ChatModelBuilder, request: ModelRequest) -> Value {
    let server = Server::start([answering("{}")]).await;
    step(&builder.base_url(server.url()).build().unwrap(), request).await.unwrap();
    server.seen().remove(0).json()
}

fn openrouter(model: &str) -> ChatModelBuilder {
    ChatModel::openrouter(model, KEY)
}

fn compatible() -> ChatModelBuilder {
    ChatModel::compatible("http://localhost", "local")
}

/// A request of an agent with these settings.
fn with_settings(settings: &str) -> ModelRequest {
    let mut request = hello();
    request.prepared = Arc::new(PreparedAgent::new("main", "", []).with_model(None, Some(json(settings))));
    request
}

const SCHEMA: &str = r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#;

#[tokio::test]
async fn a_schema_is_sent_in_strict_form_and_an_agent_may_ask_for_another() {
    let with_schema = || openrouter("a/b").output_schema(OutputSchema::new("count", json(SCHEMA)));
    let body = sent(with_schema(), hello()).await;
    assert_snapshot!(body["response_format"], @r#"{"json_schema":{"name":"count","schema":{"additionalProperties":false,"properties":{"n":{"type":"integer"}},"required":["n"],"type":"object"},"strict":true},"type":"json_schema"}"#);
    let agent = r#"{"output_schema":{"name":"free","strict":false,"schema":{"type":"object"}}}"#;
    let body = sent(with_schema(), with_settings(agent)).await;
    assert_snapshot!(body["response_format"], @r#"{"json_schema":{"name":"free","schema":{"type":"object"},"strict":false},"type":"json_schema"}"#);
    let body = sent(with_schema(), with_settings(r#"{"output_schema":null}"#)).await;
    assert_eq!(body["response_format"], Value::Null);
    let body = sent(openrouter("a/b"), with_settings(r#"{"response_format":{"type":"json_object"}}"#)).await;
    assert_snapshot!(body["response_format"], @r#"{"type":"json_object"}"#);
}

#[tokio::test]
async fn a_schema_that_cannot_be_sent_is_found_before_anything_is() {
    let free_keys = r#"{"type":"object","additionalProperties":{"type":"string"}}"#;
    let fault = openrouter("a/b").output_schema(json(free_keys)).build().unwrap_err();
    assert_eq!(fault.kind(), "adapter.output_schema");
    let both = openrouter("a/b").base_url("ftp://x").output_schema(json("7")).build().unwrap_err();
    assert_eq!(both.kind(), "adapter.several");
    let server = Server::start([answering("{}")]).await;
    let model = openrouter("a/b").base_url(server.url()).build().unwrap();
    let fault = step(&model, with_settings(r#"{"output_schema":{}}"#)).await.unwrap_err();
    assert_eq!(fault.code, ModelFaultCode::Configuration);
    assert_eq!(server.seen().len(), 0);
}

#[derive(serde::Deserialize)]
struct Count {
    n: u32,
}

#[tokio::test]
async fn an_answer_that_had_to_be_json_and_is_not_is_invalid() {
    let server = Server::start([answering("Sure: {}"), answering(" {\"n\":7}\n")]).await;
    let model = openrouter("a/b").base_url(server.url()).output_schema(json(SCHEMA)).build().unwrap();
    let message = step(&model, hello()).await.unwrap();
    let ModelOutput::Invalid(Invalid { reason, kind, .. }) = message.output() else {
        panic!("{:?}", message.output())
    };
    assert_eq!(reason, "the answer is not JSON: expected value at line 1 column 1");
    assert_eq!(kind.as_deref(), Some("schema_mismatch"));
    assert_eq!(message.joined_text(), "Sure: {}", "what came stays for the record");

    let message = step(&model, hello()).await.unwrap();
    assert_eq!(read_answer::<Count>(&message).unwrap().n, 7);
}

/// Where the marks of a request are: role and text of each marked part.
async fn marks(builder: ChatModelBuilder, request: ModelRequest) -> String {
    let body = sent(builder, request).await;
    let messages = body["messages"].as_array().unwrap().iter();
    let marked = messages.flat_map(|message| {
        let parts = message["content"].as_array().into_iter().flatten();
        let marked = parts.filter(|part| part.get("cache_control").is_some());
        marked.map(|part| format!("{} {} {}", message["role"], part["text"], part["cache_control"]))
    });
    marked.collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn the_stable_beginning_is_marked_where_a_provider_needs_it() {
    let conversation = || {
        let call = ToolCall::new("c", "find", Json::empty_object());
        let result = ToolResultMessage::new(&call, vec![Block::text("found")], false);
        let look = AssistantMessage::calls([call]);
        request([Message::user("go"), look.into(), result.into()])
    };
    assert_snapshot!(marks(openrouter("anthropic/claude-sonnet-4.5"), conversation()).await, @r#"
    "system" "Be brief." {"type":"ephemeral"}
    "user" "go" {"type":"ephemeral"}
    "tool" "found" {"type":"ephemeral"}
    "#);
    assert_snapshot!(marks(compatible().prompt_cache(PromptCache::OneHour), hello()).await, @r#"
    "system" "Be brief." {"ttl":"1h","type":"ephemeral"}
    "user" "hello" {"ttl":"1h","type":"ephemeral"}
    "#);
    assert_eq!(marks(openrouter("openai/gpt-5"), conversation()).await, "");
    let off = openrouter("anthropic/claude-sonnet-4.5").prompt_cache(PromptCache::Off);
    assert_eq!(marks(off, conversation()).await, "");
    let own = with_settings(r#"{"cache_control":{"type":"ephemeral"}}"#);
    assert_eq!(marks(openrouter("anthropic/claude-sonnet-4.5"), own).await, "");
}

#[tokio::test]
async fn marks_need_a_text_that_holds_something() {
    let mut image = UserMessage::text("what is it?");
    image.content.push(Block::image("AAAA", "image/png"));
    let marked = compatible().prompt_cache(PromptCache::FiveMinutes);
    assert_snapshot!(marks(marked, request([image.into()])).await, @r#"
    "system" "Be brief." {"type":"ephemeral"}
    "user" "what is it?" {"type":"ephemeral"}
    "#);
    let marked = compatible().prompt_cache(PromptCache::FiveMinutes);
    assert_snapshot!(marks(marked, request([Message::user("")])).await, @r#""system" "Be brief." {"type":"ephemeral"}"#);
}

#[tokio::test]
async fn routes_and_thinking_are_settings_that_agents_may_change() {
    let builder = openrouter("a/b")
        .fallback_models(["c/d", "e/f"])
        .routing(json(r#"{"require_parameters":true}"#))
        .session_id("thread-7")
        .thinking(ThinkingLevel::XHigh, &ThinkingLevels::reasoning());
    let body = sent(builder, with_settings(r#"{"session_id":"mine"}"#)).await;
    let told = ["models", "provider", "session_id", "reasoning"].map(|key| format!("{key}: {}", body[key]));
    assert_snapshot!(told.join("\n"), @r#"
    models: ["c/d","e/f"]
    provider: {"require_parameters":true}
    session_id: "mine"
    reasoning: {"effort":"high"}
    "#);
    let builder = compatible().thinking(ThinkingLevel::Low, &ThinkingLevels::reasoning());
    assert_eq!(sent(builder, hello()).await["reasoning_effort"], "low");
}

/// The cost of an answer `by` a model with this usage on the wire.
async fn used(builder: ChatModelBuilder, by: &str, usage: &str) -> String {
    let chunk = format!(
        r#"{{"model":"{by}","choices":[{{"delta":{{"content":"x"}},"finish_reason":"stop"}}],"usage":{usage}}}"#
    );
    let server = Server::start([Reply::events().event(&chunk).event("[DONE]")]).await;
    let message = step(&builder.base_url(server.url()).build().unwrap(), hello()).await.unwrap();
    let usage: &Usage = message.usage.as_deref().unwrap();
    let cost = usage.total_cost().map_or_else(|| "unknown".to_owned(), |cost| format!("{cost}"));
    let source = usage.cost_source().map_or_else(|| "nobody".to_owned(), ToString::to_string);
    format!("{cost} from {source}")
}

#[tokio::test]
async fn a_cost_is_reported_or_counted_or_unknown() {
    let model = || openrouter("openai/gpt-5-mini");
    let counts = r#"{"prompt_tokens":1000000,"completion_tokens":0}"#;
    assert_snapshot!(used(model(), "openai/gpt-5-mini", counts).await, @"0.25 from price list of 2026-03-21");
    assert_snapshot!(used(model(), "anthropic/claude-haiku-4.5", counts).await, @"1 from price list of 2026-03-21");
    assert_snapshot!(used(model(), "some/other", counts).await, @"unknown from nobody");
    assert_snapshot!(used(model().prices(PriceTable::empty()), "openai/gpt-5-mini", counts).await, @"unknown from nobody");
    let free = r#"{"prompt_tokens":1,"completion_tokens":1,"cost":0}"#;
    assert_snapshot!(used(model(), "openai/gpt-5-mini", free).await, @"0 from reported");
    assert_snapshot!(used(model(), "openai/gpt-5-mini", "{}").await, @"unknown from nobody");
}

#[tokio::test]
async fn with_ones_own_key_the_providers_price_is_part_of_the_cost() {
    let model = || openrouter("some/model");
    let own = |details: &str| {
        format!(
            r#"{{"prompt_tokens":1,"completion_tokens":1,"cost":0.01,"is_byok":true,"cost_details":{details}}}"#
        )
    };
    let whole = own(r#"{"upstream_inference_cost":0.2}"#);
    assert_snapshot!(used(model(), "some/model", &whole).await, @"0.21 from reported");
    assert_snapshot!(used(model(), "some/model", &own("{}")).await, @"unknown from nobody");
}

#[tokio::test]
async fn an_answer_without_words_is_never_a_success() {
    for (content, finish, expected) in [
        ("\\n ", "stop", "the answer holds neither text nor tool calls"),
        ("", "stop", "the answer holds neither text nor tool calls"),
        ("", "length", "the token limit cut the answer before its text; raise `max_tokens`"),
    ] {
        let server =
            Server::start([Reply::events().delta(&format!(r#"{{"content":"{content}"}}"#)).finish(finish)])
                .await;
        let message =
            step(&openrouter("a/b").base_url(server.url()).build().unwrap(), hello()).await.unwrap();
        let ModelOutput::Invalid(invalid) = message.output() else { panic!("{:?}", message.output()) };
        assert_eq!((invalid.kind.as_deref(), invalid.reason.as_str()), (Some("empty_response"), expected));
    }
}
