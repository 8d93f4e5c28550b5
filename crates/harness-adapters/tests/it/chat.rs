//! Answers over real HTTP.

use harness_adapters::chat::ChatModel;
use harness_core::Json;
use harness_core::message::{AssistantMessage, Block, Cost, FinishReason, Message, ModelOutput};
use harness_core::port::{DeltaPart, Model as _};
use harness_core::tool::ToolDef;

use crate::support::{KEY, Pieces, Reply, Server, hello, model, request_with, step, until_text};

#[tokio::test]
async fn text_streams_as_it_arrives_and_ends_as_one_message() {
    let reply = Reply::events()
        .send(": OPENROUTER PROCESSING\n\n")
        .delta(r#"{"role":"assistant","content":"Hel"}"#)
        .wait()
        .delta(r#"{"content":"lo"}"#)
        .finish("stop");
    let server = Server::start([reply]).await;
    let (model, pieces) = (model(&server), Pieces::default());
    let mut answer = Box::pin(model.step(hello(), &pieces));
    until_text(&mut answer, &pieces).await;
    assert_eq!(pieces.text(), "Hel");
    server.go_on();
    let message = answer.await.unwrap();
    assert_eq!(pieces.text(), "Hello");
    assert_eq!(message.joined_text(), "Hello");
    assert_eq!(message.output(), ModelOutput::FinalAnswer);
    assert_eq!(message.stop_reason, FinishReason::Stop);
    assert_eq!(message.provider.as_deref(), Some("openrouter"));
    assert_eq!(message.model.as_ref().unwrap().as_str(), "example/model");
    assert_eq!(message.response_model.as_deref(), Some("example/served"));
    assert_eq!(message.response_id.as_deref(), Some("gen-1"));
}

#[tokio::test]
async fn usage_and_cost_are_reported_exactly() {
    let server = Server::start([Reply::events().delta(r#"{"content":"x"}"#).finish("stop")]).await;
    let usage = step(&model(&server), hello()).await.unwrap().usage.unwrap();
    assert_eq!((usage.input, usage.output, usage.cache_read), (Some(4), Some(5), Some(8)));
    assert_eq!((usage.reasoning, usage.total_tokens), (Some(2), Some(17)));
    assert_eq!(usage.total_cost(), Some(Cost(310_000)));
    assert!(usage.latency_ms.is_some());
}

#[tokio::test]
async fn parallel_calls_arrive_with_exact_arguments_and_their_own_names() {
    let reply = Reply::events()
        .delta(r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"orders_find","arguments":""}}]}"#)
        .delta(r#"{"tool_calls":[{"index":1,"id":"b","function":{"name":"add","arguments":"{\"n\":"}}]}"#)
        .delta(r#"{"tool_calls":[{"index":0,"function":{"arguments":"{ \"id\": 9007199254740993 }"}}]}"#)
        .delta(r#"{"tool_calls":[{"index":1,"function":{"arguments":"1.10}"}}]}"#)
        .finish("tool_calls");
    let server = Server::start([reply]).await;
    let schema = Json::parse(r#"{"type":"object","properties":{"id":{"type":"integer"}}}"#).unwrap();
    let tools = [ToolDef::new("orders.find", "Finds.").with_schema(schema), ToolDef::new("add", "Adds.")];
    let pieces = Pieces::default();
    let request = request_with([Message::user("go")], tools);
    let message = model(&server).step(request, &pieces).await.unwrap();
    assert_eq!(message.output(), ModelOutput::ToolRequest);
    let calls: Vec<(&str, &str, &str, Option<&str>)> = message
        .tool_calls()
        .map(|call| {
            (call.id.as_str(), call.name.as_str(), call.arguments.text(), call.raw_arguments.as_deref())
        })
        .collect();
    assert_eq!(
        calls,
        [
            ("a", "orders.find", r#"{"id":9007199254740993}"#, Some(r#"{ "id": 9007199254740993 }"#)),
            ("b", "add", r#"{"n":1.10}"#, None),
        ]
    );
    assert_eq!(
        pieces.all(),
        [
            DeltaPart::CallStarted { index: 0, id: Some("a".into()), name: "orders.find".into() },
            DeltaPart::CallStarted { index: 1, id: Some("b".into()), name: "add".into() },
            DeltaPart::CallArguments { index: 1, text: r#"{"n":"#.into() },
            DeltaPart::CallArguments { index: 0, text: r#"{ "id": 9007199254740993 }"#.into() },
            DeltaPart::CallArguments { index: 1, text: "1.10}".into() },
        ]
    );
    let sent = server.seen()[0].json();
    assert_eq!(sent["tools"][0]["function"]["name"], "orders_find");
    assert_eq!(sent["tools"][0]["function"]["parameters"]["properties"]["id"]["type"], "integer");
    assert_eq!(sent["tool_choice"], "auto");
}

#[tokio::test]
async fn reasoning_comes_back_as_a_block_and_its_items_unchanged() {
    let reply = Reply::events()
        .delta(
            r#"{"reasoning":"Hm.","reasoning_details":[{"type":"reasoning.text","text":"Hm.","index":0,"w":1.10}]}"#,
        )
        .delta(r#"{"content":"Yes"}"#)
        .finish("stop");
    let server = Server::start([reply]).await;
    let pieces = Pieces::default();
    let message = model(&server).step(hello(), &pieces).await.unwrap();
    assert_eq!(pieces.all()[0], DeltaPart::Thinking("Hm.".into()));
    let text = serde_json::to_string(&message.content).unwrap();
    assert_eq!(
        text,
        r#"[{"type":"thinking","thinking":"Hm.","field":"reasoning"},{"type":"text","text":"Yes"}]"#
    );
    assert_eq!(
        message.provider_metadata.as_ref().unwrap().text(),
        r#"{"reasoning_details":[{"type":"reasoning.text","text":"Hm.","index":0,"w":1.10}]}"#
    );
}

#[tokio::test]
async fn an_endpoint_that_does_not_stream_is_understood() {
    let body =
        r#"{"id":"r","model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"content":"Hi"}}]}"#;
    let server = Server::start([Reply::json(200, body)]).await;
    let pieces = Pieces::default();
    let message = model(&server).step(hello(), &pieces).await.unwrap();
    assert_eq!((message.joined_text().as_str(), pieces.text().as_str()), ("Hi", "Hi"));
}

#[tokio::test]
async fn a_stream_under_another_content_type_is_understood() {
    let body = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let server = Server::start([Reply::full(200, "content-type: text/plain\r\n", body)]).await;
    assert_eq!(step(&model(&server), hello()).await.unwrap().joined_text(), "Hi");
}

#[track_caller]
fn check_invalid(message: &AssistantMessage, kind: &str, reason: &str) {
    let ModelOutput::Invalid(invalid) = message.output() else { panic!("not invalid: {message:?}") };
    assert_eq!((invalid.kind.as_deref(), invalid.reason.as_str()), (Some(kind), reason));
    assert_eq!(message.tool_calls().count(), 0, "a call that cannot run is not kept as a call");
}

#[tokio::test]
async fn what_the_model_got_wrong_is_an_invalid_output_and_no_fault() {
    let bad_arguments = r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"add","arguments":"[1"}}]}"#;
    let nameless = r#"{"tool_calls":[{"index":0,"id":"a","function":{"arguments":"{}"}}]}"#;
    let server = Server::start([
        Reply::events().delta(bad_arguments).finish("tool_calls"),
        Reply::events().delta(nameless).finish("tool_calls"),
        Reply::events().delta(r#"{"content":""}"#).finish("stop"),
    ])
    .await;
    let model = model(&server);
    let message = step(&model, hello()).await.unwrap();
    check_invalid(&message, "schema_mismatch", "the arguments of the call of `add` are not a JSON object");
    let message = step(&model, hello()).await.unwrap();
    check_invalid(&message, "schema_mismatch", "a tool call came without the name of a tool");
    let message = step(&model, hello()).await.unwrap();
    check_invalid(&message, "empty_response", "the answer holds neither text nor tool calls");
    assert_eq!(message.usage.unwrap().output, Some(5), "the usage of a bad answer counts");
}

#[tokio::test]
async fn an_answer_of_no_use_keeps_its_document_without_the_key_and_its_finish_reason() {
    let document =
        format!(r#"{{"id":"gen-1","hint":"{KEY}","choices":[{{"message":{{}},"finish_reason":"stop"}}]}}"#);
    let long = format!(r#"{{"choices":[{{"message":{{}}}}],"more":"{}"}}"#, "x".repeat(64 << 10));
    let server = Server::start([Reply::json(200, &document), Reply::json(200, &long)]).await;
    let model = model(&server);
    let message = step(&model, hello()).await.unwrap();
    let ModelOutput::Invalid(invalid) = message.output() else { panic!("not invalid: {message:?}") };
    assert_eq!(
        invalid.raw.unwrap().text(),
        r#"{"id":"gen-1","hint":"[key]","choices":[{"message":{},"finish_reason":"stop"}]}"#
    );
    assert_eq!(message.provider_metadata.as_ref().unwrap().text(), r#"{"finishReason":"stop"}"#);
    let message = step(&model, hello()).await.unwrap();
    let ModelOutput::Invalid(invalid) = message.output() else { panic!("not invalid: {message:?}") };
    assert_eq!((invalid.raw, &message.provider_metadata), (None, &None));
}

#[tokio::test]
async fn a_finish_reason_that_says_something_else_is_kept() {
    let call = r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"add"}}]}"#;
    let server = Server::start([
        Reply::events().delta(call).finish("stop"),
        Reply::events().delta(call).finish("tool_calls"),
    ])
    .await;
    let model = model(&server);
    for expected in [true, false] {
        let message = step(&model, hello()).await.unwrap();
        let metadata = message.provider_metadata.as_ref().map_or("", Json::text);
        assert_eq!(metadata.contains(r#""finishReason":"stop""#), expected, "{metadata}");
    }
}

#[tokio::test]
async fn a_refusal_is_a_refusal() {
    let server = Server::start([
        Reply::events().delta(r#"{"refusal":"I cannot."}"#).finish("stop"),
        Reply::events().delta(r#"{"content":"Well"}"#).finish("content_filter"),
    ])
    .await;
    let model = model(&server);
    let message = step(&model, hello()).await.unwrap();
    assert_eq!(message.output(), ModelOutput::Refusal { reason: "I cannot." });
    let message = step(&model, hello()).await.unwrap();
    assert_eq!(message.output(), ModelOutput::Refusal { reason: "" });
    assert_eq!(message.joined_text(), "Well");
}

#[tokio::test]
async fn a_truncated_answer_says_so() {
    let server = Server::start([Reply::events().delta(r#"{"content":"cut"}"#).finish("length")]).await;
    assert_eq!(step(&model(&server), hello()).await.unwrap().stop_reason, FinishReason::Length);
}

#[tokio::test]
async fn a_call_without_an_id_gets_one_that_is_unique_in_the_request() {
    let delta =
        r#"{"tool_calls":[{"index":0,"function":{"name":"now"}},{"index":1,"function":{"name":"now"}}]}"#;
    let server = Server::start([Reply::events().delta(delta).finish("tool_calls")]).await;
    let message = step(&model(&server), hello()).await.unwrap();
    let ids: Vec<&str> = message.tool_calls().map(|call| call.id.as_str()).collect();
    assert_eq!(ids, ["gen-1_1_0", "gen-1_1_1"]);
}

#[tokio::test]
async fn a_model_without_a_key_sends_none() {
    let server = Server::start([Reply::events().delta(r#"{"content":"x"}"#).finish("stop")]).await;
    let model = ChatModel::compatible(server.url(), "local").build().unwrap();
    step(&model, hello()).await.unwrap();
    assert_eq!(server.seen()[0].header("authorization"), None);
}

#[tokio::test]
async fn reasoning_has_one_field_and_is_no_part_of_the_text() {
    let both = r#"{"content":"<thinking>a</thinking>b","reasoning":"one","reasoning_content":"two"}"#;
    let server = Server::start([Reply::events().delta(both).finish("stop")]).await;
    let message = step(&model(&server), hello()).await.unwrap();
    assert_eq!(message.joined_text(), "<thinking>a</thinking>b");
    let thoughts = message.content.iter().filter_map(|block| {
        if let Block::Thinking(thinking) = block { Some(thinking.thinking.as_str()) } else { None }
    });
    let thoughts: Vec<_> = thoughts.collect();
    assert_eq!(thoughts, ["one"]);
}

#[tokio::test]
async fn the_key_travels_in_one_header_and_nowhere_else() {
    let server = Server::start([Reply::events().delta(r#"{"content":"x"}"#).finish("stop")]).await;
    let builder = ChatModel::openrouter("example/model", KEY)
        .base_url(server.url())
        .attribution("https://a.example", "A");
    assert!(!format!("{builder:?}").contains(KEY));
    let model = builder.build().unwrap();
    assert!(!format!("{model:?}").contains(KEY));
    let message = step(&model, hello()).await.unwrap();
    assert!(!serde_json::to_string(&message).unwrap().contains(KEY));
    let seen = &server.seen()[0];
    assert_eq!(seen.target, "POST /api/v1/chat/completions");
    assert_eq!(seen.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(seen.header("x-title"), Some("A"));
    let others = seen.headers.iter().filter(|(name, _)| name != "authorization");
    assert!(!others.map(|(_, value)| value).any(|value| value.contains(KEY)) && !seen.body.contains(KEY));
}
