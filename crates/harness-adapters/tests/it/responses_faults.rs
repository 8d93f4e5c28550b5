//! What goes wrong between us and an endpoint of the Responses API.

use harness_adapters::responses::{ResponsesModel, ResponsesModelBuilder};
use harness_core::message::FinishReason;
use harness_core::port::{ModelFault, ModelFaultCode as Code};

use crate::support::{KEY, Reply, Server, hello, step};

fn builder(server: &Server) -> ResponsesModelBuilder {
    ResponsesModel::openai("example-model", KEY).base_url(server.url())
}

async fn fault_of(reply: Reply) -> ModelFault {
    let server = Server::start([reply]).await;
    let fault = step(&builder(&server).build().unwrap(), hello()).await.unwrap_err();
    assert!(!format!("{fault:?} {fault}").contains(KEY), "{fault:?}");
    fault
}

/// The fault of an error reply, as `code transient`.
async fn check(status: u16, error: &str, expected: &str) {
    let fault = fault_of(Reply::json(status, &format!(r#"{{"error":{error}}}"#))).await;
    let shown = format!("{}{}", fault.code.as_str(), if fault.transient { " transient" } else { "" });
    assert_eq!(shown, expected, "{status} {error}: {fault}");
    assert_eq!(fault.http_status, Some(status));
}

/// The beginning of a stream, up to its first text.
fn begun() -> Reply {
    Reply::events()
        .event(r#"{"type":"response.created","response":{"id":"resp_1","model":"served"}}"#)
        .event(r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"msg_1"}}"#)
        .event(r#"{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"Half"}"#)
}

#[tokio::test]
async fn every_status_has_its_code() {
    let said =
        |code: &str| format!(r#"{{"message":"Oops {KEY}","type":"invalid_request_error","code":{code}}}"#);
    check(400, &said("null"), "invalid_request").await;
    check(400, &said(r#""context_length_exceeded""#), "context_length_exceeded").await;
    check(401, &said(r#""invalid_api_key""#), "auth_failed").await;
    check(403, &said("null"), "auth_failed").await;
    check(404, &said(r#""model_not_found""#), "model_not_found").await;
    check(429, &said(r#""rate_limit_exceeded""#), "rate_limited transient").await;
    check(429, &said(r#""insufficient_quota""#), "credits_exhausted").await;
    check(500, &said(r#""server_error""#), "provider transient").await;
    check(503, &said("null"), "provider transient").await;
}

#[tokio::test]
async fn an_error_in_the_middle_keeps_the_text() {
    let reply = begun().event(r#"{"type":"error","code":"server_error","message":"Oops"}"#).hold();
    let fault = fault_of(reply).await;
    assert_eq!((fault.code, fault.transient), (Code::Provider, true));
    assert_eq!(fault.partial.unwrap().joined_text(), "Half");
}

#[tokio::test]
async fn a_broken_stream_is_no_answer() {
    let fault = fault_of(begun().event("[DONE]")).await;
    assert_eq!((fault.code, fault.transient), (Code::Network, true));
    assert_eq!(fault.partial.unwrap().joined_text(), "Half");
}

#[tokio::test]
async fn the_end_of_the_response_is_not_waited_out() {
    let reply = begun()
        .event(r#"{"type":"response.incomplete","response":{"incomplete_details":{"reason":"max_output_tokens"}}}"#)
        .hold();
    let server = Server::start([reply]).await;
    let message = step(&builder(&server).build().unwrap(), hello()).await.unwrap();
    assert_eq!((message.joined_text().as_str(), message.stop_reason), ("Half", FinishReason::Length));
    server.hung_up().await;
}

#[tokio::test]
async fn nothing_shows_the_key() {
    let server = Server::start([Reply::close()]).await;
    let setup = builder(&server);
    assert!(!format!("{setup:?}").contains(KEY));
    assert!(!format!("{:?}", setup.build().unwrap()).contains(KEY));
    for key in ["", "line\nbreak"] {
        assert_eq!(ResponsesModel::openai("m", key).build().unwrap_err().kind(), "adapter.key");
    }
}
