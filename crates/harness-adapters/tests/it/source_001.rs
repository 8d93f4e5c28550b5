//! Source 001's model adapter beyond the vectors: secrets, cancellation, waits, real transcripts.

use std::sync::Arc;
use std::time::Duration;

use harness_adapters::AdapterError;
use harness_adapters::chat::source_001::{OpenRouterModel, OpenRouterModelBuilder};
use harness_core::message::{
    ApprovalRequest, AssistantMessage, Block, Invalid, Message, ModelOutput, ToolCall, ToolResultMessage,
};
use harness_core::port::{DeltaPart, ModelFaultCode, ModelRequest};
use harness_core::{Cancel, Json, Time};

use crate::support::{KEY, Pieces, Reply, Server, Stopped, hello, request, step};

fn builder(server: &Server) -> OpenRouterModelBuilder {
    OpenRouterModel::builder().key(KEY).base_url(server.url()).retry_delay(Duration::ZERO)
}

fn invalid(message: &AssistantMessage) -> Invalid {
    let output = message.output();
    if let ModelOutput::Invalid(invalid) = output { invalid } else { panic!("{output:?} is not invalid") }
}

const ANSWER: &str = r#"{"id":"r","choices":[{"message":{"content":"fine"},"finish_reason":"stop"}]}"#;

#[tokio::test]
async fn the_key_is_taken_out_of_what_comes_back() {
    let body = format!(r#"{{"error":{{"message":"bad key {KEY}","code":401}}}}"#);
    let server = Server::start([Reply::json(401, &body)]).await;
    let message = step(&builder(&server).build().unwrap(), hello()).await.unwrap();
    assert_eq!(invalid(&message).reason, "bad key [key]");
    assert!(!serde_json::to_string(&message).unwrap().contains(KEY));
}

#[tokio::test]
async fn without_a_key_nothing_is_sent() {
    let server = Server::start([Reply::json(200, ANSWER)]).await;
    let model = OpenRouterModel::builder().key(" ").base_url(server.url()).build().unwrap();
    let message = step(&model, hello()).await.unwrap();
    let invalid = invalid(&message);
    assert_eq!(
        (invalid.kind.as_deref(), invalid.code.as_deref()),
        (Some("provider_error"), Some("auth_failed"))
    );
    assert_eq!(server.seen().len(), 0);
}

#[tokio::test]
async fn a_second_attempt_that_works_leaves_no_trace_of_the_first() {
    let server = Server::start([Reply::json(503, "{}"), Reply::json(200, ANSWER)]).await;
    let pieces = Pieces::default();
    let model = builder(&server).clock(Arc::new(Stopped(Time(0)))).build().unwrap();
    let message = harness_core::port::Model::step(&model, hello(), &pieces).await.unwrap();
    assert_eq!(message.joined_text(), "fine");
    assert_eq!(message.output(), ModelOutput::FinalAnswer);
    assert_eq!(pieces.all(), [DeltaPart::Text("fine".to_owned())]);
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn the_time_of_a_retry_is_told_when_there_is_a_clock() {
    let server = Server::start([Reply::json(503, "{}")]).await;
    let with_clock = builder(&server).clock(Arc::new(Stopped(Time(0)))).build().unwrap();
    let message = step(&with_clock, hello()).await.unwrap();
    assert_eq!(invalid(&message).retried_at.as_deref(), Some("1970-01-01T00:00:00.000Z"));
    let message = step(&builder(&server).build().unwrap(), hello()).await.unwrap();
    assert_eq!(invalid(&message).retried_at, None);
}

#[tokio::test]
async fn cancelling_ends_the_request_and_is_the_only_fault() {
    let server = Server::start([Reply::hang()]).await;
    let model = builder(&server).build().unwrap();
    let cancel = Cancel::new();
    let mut request = hello();
    request.cancel = cancel.clone();
    let (outcome, ()) = tokio::join!(step(&model, request), async {
        while server.seen().is_empty() {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    });
    assert_eq!(outcome.unwrap_err().code, ModelFaultCode::Cancelled);
    server.hung_up().await;
}

#[tokio::test]
async fn a_reply_beyond_the_bound_is_a_failure_that_may_pass() {
    let server = Server::start([Reply::json(200, ANSWER)]).await;
    let mut limits = harness_adapters::chat::ReplyLimits::default();
    limits.body = 10;
    let message = step(&builder(&server).limits(limits).build().unwrap(), hello()).await.unwrap();
    let invalid = invalid(&message);
    assert_eq!(invalid.reason, "the reply is larger than the bound of 10 bytes");
    assert_eq!(invalid.kind.as_deref(), Some("transient"));
}

/// The messages that are sent, without the system prompt.
async fn sent(request: ModelRequest) -> String {
    let server = Server::start([Reply::json(200, ANSWER)]).await;
    step(&builder(&server).build().unwrap(), request).await.unwrap();
    let body = server.seen().remove(0).json();
    assert_eq!(body.get("stream"), None, "the source does not stream");
    let messages: Vec<String> =
        body["messages"].as_array().unwrap().iter().map(ToString::to_string).collect();
    messages[1..].join("\n")
}

#[tokio::test]
async fn a_transcript_of_the_product_keeps_its_order_and_arguments() {
    let call = ToolCall::new("c", "find", Json::parse(r#"{"n":1.10}"#).unwrap());
    let result = ToolResultMessage::new(&call, vec![Block::text("found")], false);
    let asks = AssistantMessage::calls([call]);
    let failed = AssistantMessage::invalid(&Invalid::new("nothing usable"));
    let approval = AssistantMessage::approval_request(&ApprovalRequest::new("a", "write", "Write a file"));
    let log: [Message; 5] = [Message::user("go"), asks.into(), result.into(), failed.into(), approval.into()];
    insta::assert_snapshot!(sent(request(log)).await, @r#"
    {"content":"go","role":"user"}
    {"content":null,"role":"assistant","tool_calls":[{"function":{"arguments":"{\"n\":1.10}","name":"find"},"id":"c","type":"function"}]}
    {"content":"found","role":"tool","tool_call_id":"c"}
    {"content":"","role":"assistant"}
    {"content":"Approval requested: Write a file","role":"assistant"}
    "#);
}

#[test]
fn a_temperature_that_is_no_number_is_refused() {
    let fault = OpenRouterModel::builder().temperature(f64::NAN).build().unwrap_err();
    assert!(matches!(fault, AdapterError::Settings { .. }), "{fault}");
}
