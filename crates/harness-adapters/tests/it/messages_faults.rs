//! What goes wrong between us and an endpoint of the Messages API.

use std::time::Duration;

use harness_adapters::http::ReplyTimeouts;
use harness_adapters::messages::{MessagesModel, MessagesModelBuilder};
use harness_core::message::FinishReason;
use harness_core::port::{ModelFault, ModelFaultCode as Code};

use crate::support::{KEY, Reply, Server, hello, step};

fn builder(server: &Server) -> MessagesModelBuilder {
    MessagesModel::anthropic("example-model", KEY).base_url(server.url())
}

async fn fault_of(reply: Reply) -> ModelFault {
    let server = Server::start([reply]).await;
    let fault = step(&builder(&server).build().unwrap(), hello()).await.unwrap_err();
    assert!(!format!("{fault:?} {fault}").contains(KEY), "{fault:?}");
    fault
}

/// The fault of an error reply, as `code transient`.
async fn check(status: u16, kind: &str, message: &str, expected: &str) {
    let body = format!(
        r#"{{"type":"error","error":{{"type":"{kind}","message":"{message} {KEY}"}},"request_id":"req_1"}}"#
    );
    let fault = fault_of(Reply::json(status, &body)).await;
    let shown = format!("{}{}", fault.code.as_str(), if fault.transient { " transient" } else { "" });
    assert_eq!(shown, expected, "{status} {kind}: {fault}");
    assert_eq!(fault.http_status, Some(status));
    assert!(fault.message.contains("[key]"), "{fault}");
}

/// The beginning of a stream, up to its first text.
fn begun() -> Reply {
    Reply::events()
        .event(r#"{"type":"message_start","message":{"id":"msg_1","model":"served","usage":{"input_tokens":9}}}"#)
        .event(r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#)
        .event(r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Half"}}"#)
}

#[tokio::test]
async fn every_status_has_its_code() {
    check(400, "invalid_request_error", "max_tokens: required", "invalid_request").await;
    check(400, "invalid_request_error", "prompt is too long: 9 > 8", "context_length_exceeded").await;
    check(400, "invalid_request_error", "Your credit balance is too low: buy credits", "credits_exhausted")
        .await;
    check(401, "authentication_error", "invalid x-api-key", "auth_failed").await;
    check(402, "billing_error", "no money", "credits_exhausted").await;
    check(403, "permission_error", "not yours", "auth_failed").await;
    check(404, "not_found_error", "model: nope", "model_not_found").await;
    check(413, "request_too_large", "too large", "context_length_exceeded").await;
    check(429, "rate_limit_error", "slow down", "rate_limited transient").await;
    check(500, "api_error", "oops", "provider transient").await;
    check(504, "timeout_error", "too slow", "timeout transient").await;
    check(529, "overloaded_error", "Overloaded", "provider transient").await;
}

#[tokio::test]
async fn a_wait_is_passed_on() {
    let body = r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}"#;
    let fault = fault_of(Reply::full(429, "retry-after: 3\r\n", body)).await;
    assert_eq!(fault.retry_after.map(|wait| wait.0), Some(3_000));
}

#[tokio::test]
async fn what_is_no_such_endpoint_is_named() {
    for reply in
        [Reply::full(404, "", "nothing here"), Reply::full(200, "content-type: text/html\r\n", "<html>")]
    {
        let fault = fault_of(reply).await;
        assert!(
            fault.message.ends_with("check that the base URL is that of an Anthropic-compatible endpoint")
        );
    }
}

#[tokio::test]
async fn an_overload_in_the_middle_keeps_the_text() {
    let reply = begun()
        .event(r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#)
        .hold();
    let fault = fault_of(reply).await;
    assert_eq!((fault.code, fault.transient), (Code::Provider, true));
    let partial = fault.partial.unwrap();
    assert_eq!(partial.joined_text(), "Half");
    assert_eq!(partial.usage.unwrap().input, Some(9));
}

#[tokio::test]
async fn a_broken_stream_is_no_answer() {
    let fault = fault_of(begun()).await;
    assert_eq!((fault.code, fault.transient), (Code::Network, true));
    assert_eq!(fault.partial.unwrap().joined_text(), "Half");
}

#[tokio::test]
async fn an_answer_that_was_told_whole_survives_the_connection() {
    let length = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\n\r\n";
    let reply = Reply::default()
        .send(length)
        .event(r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Whole"}}"#)
        .event(r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}"#);
    let server = Server::start([reply]).await;
    let message = step(&builder(&server).build().unwrap(), hello()).await.unwrap();
    assert_eq!((message.joined_text().as_str(), message.stop_reason), ("Whole", FinishReason::Stop));
}

#[tokio::test]
async fn the_end_of_the_message_is_not_waited_out() {
    let reply = begun()
        .event(r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":2}}"#)
        .event(r#"{"type":"message_stop"}"#)
        .hold();
    let server = Server::start([reply]).await;
    let message = step(&builder(&server).build().unwrap(), hello()).await.unwrap();
    assert_eq!(message.stop_reason, FinishReason::Length);
    server.hung_up().await;
}

#[tokio::test]
async fn silence_is_a_timeout() {
    let mut timeouts = ReplyTimeouts::default();
    timeouts.idle = Duration::from_millis(30);
    let server = Server::start([Reply::hang(), begun().hold()]).await;
    let model = builder(&server).timeouts(timeouts).build().unwrap();
    for partial in [None, Some("Half")] {
        let fault = step(&model, hello()).await.unwrap_err();
        assert_eq!((fault.code, fault.transient), (Code::Timeout, true), "{fault}");
        assert_eq!(fault.partial.map(|partial| partial.joined_text()).as_deref(), partial);
    }
}

#[tokio::test]
async fn nothing_shows_the_key() {
    let server = Server::start([Reply::close()]).await;
    let setup = builder(&server);
    assert!(!format!("{setup:?}").contains(KEY));
    let model = setup.build().unwrap();
    assert!(!format!("{model:?}").contains(KEY));
    for key in ["", "line\nbreak"] {
        let fault = MessagesModel::anthropic("m", key).build().unwrap_err();
        assert_eq!(fault.kind(), "adapter.key");
    }
}
