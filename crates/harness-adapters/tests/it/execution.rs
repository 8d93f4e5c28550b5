//! A model as an execution adapter.

use std::sync::Arc;

use harness_adapters::execution::{
    ExecutionAdapter, ExecutionCx, ExecutionMessage, ExecutionPart, ExecutionRequest, ExecutionResult,
    ExecutionSink, ExecutionTool, ModelBackend,
};
use harness_core::Cancel;
use harness_core::message::{AssistantMessage, Block, ToolCall};
use harness_core::{Json, Time};
use parking_lot::Mutex;

use crate::support::{KEY, Reply, Scripted, Server, Step, Stopped, model};

#[derive(Default)]
struct Parts(Mutex<Vec<ExecutionPart>>);

impl ExecutionSink for Parts {
    fn part(&self, part: ExecutionPart) {
        self.0.lock().push(part);
    }
}

fn backend(server: &Server) -> ModelBackend {
    ModelBackend::new("hosted", model(server), Arc::new(Stopped(Time(0))))
}

fn bodies(server: &Server) -> Vec<String> {
    server.seen().into_iter().map(|seen| seen.body).collect()
}

fn request(text: &str) -> ExecutionRequest {
    ExecutionRequest::new("assistant", "turn-1", "Be brief.", ExecutionMessage::new("m", text))
}

async fn run(adapter: &impl ExecutionAdapter) -> ExecutionResult {
    adapter.execute(request("hi"), ExecutionCx::new(&(), &Cancel::never())).await
}

/// Status, error code, whether it is retryable, and the error's metadata.
#[track_caller]
fn check_failed(result: &ExecutionResult, code: &str, retryable: Option<bool>, data: &str) {
    let error = result.error.as_ref().expect("a failure");
    assert_eq!(result.status.as_str(), "failed");
    assert_eq!((error.code.as_str(), error.retryable), (code, retryable), "{error:?}");
    assert_eq!(error.metadata.as_ref().map_or("-", Json::text), data);
    assert!(!error.message.is_empty());
    assert!(!Json::of(result).unwrap().text().contains(KEY));
}

async fn failed(reply: Reply, code: &str, retryable: Option<bool>, data: &str) -> ExecutionResult {
    let server = Server::start([reply]).await;
    let result = run(&backend(&server)).await;
    check_failed(&result, code, retryable, data);
    result
}

#[tokio::test]
async fn an_answer_says_what_it_used_and_that_it_was_cut() {
    let body = r#"{"id":"gen-1","choices":[{"message":{"content":[{"type":"text","text":" two "}]},"finish_reason":"length"}],"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4,"cost":0}}"#;
    let server = Server::start([Reply::json(200, body)]).await;
    let parts = Parts::default();
    let result = backend(&server).execute(request("hi"), ExecutionCx::new(&parts, &Cancel::never())).await;
    assert_eq!(result.text(), "two");
    let metadata = result.metadata.unwrap();
    let known = r#"{"responseId":"gen-1","truncated":true,"usage":{"input":3,"output":1,"#;
    assert!(metadata.text().starts_with(known), "{metadata}");
    let parts = parts.0.into_inner();
    assert!(matches!(&parts[..], [ExecutionPart::Text(text), ExecutionPart::Usage(_)] if text == " two "));
}

#[tokio::test]
async fn an_answer_without_a_finish_reason_has_stopped() {
    let server = Server::start([Reply::json(200, r#"{"choices":[{"message":{"content":"x"}}]}"#)]).await;
    let events = run(&backend(&server)).await.trace.unwrap().events.unwrap();
    assert_eq!(events[1].data.as_ref().map(Json::text), Some(r#"{"finishReason":"stop"}"#));
}

#[tokio::test]
async fn the_event_of_a_failure_has_its_status_and_its_words() {
    for (reply, start) in [
        (Reply::json(502, "{}"), r#"{"status":502,"error":"127.0.0.1:"#),
        (Reply::json(200, r#"{"choices":["#), r#"{"error":"127.0.0.1:"#),
    ] {
        let server = Server::start([reply]).await;
        let events = run(&backend(&server)).await.trace.unwrap().events.unwrap();
        let data = events[0].data.as_ref().map_or("", Json::text);
        assert!(events.len() == 1 && data.starts_with(start), "{data}");
    }
}

#[tokio::test]
async fn an_error_within_a_good_status_is_told_as_that_error() {
    let body = format!(r#"{{"error":{{"code":502,"message":"provider {KEY} failed"}}}}"#);
    let failure = failed(
        Reply::json(200, &body),
        "backend_execution_error",
        Some(true),
        r#"{"status":502,"code":502}"#,
    )
    .await;
    assert!(failure.error.unwrap().message.contains("provider [key] failed"));
}

#[tokio::test]
async fn an_answer_that_a_filter_stopped_is_none() {
    let body = r#"{"choices":[{"message":{"content":"half"},"finish_reason":"content_filter"}]}"#;
    failed(Reply::json(200, body), "invalid_backend_output", None, "-").await;
    let body = r#"{"choices":[{"message":{"content":"half"},"finish_reason":"error"}]}"#;
    let failure = failed(Reply::json(200, body), "backend_execution_error", Some(true), "-").await;
    assert_eq!(failure.text(), "half", "what there is of an answer stays");
}

#[tokio::test]
async fn what_may_pass_is_retryable() {
    let busy = Reply::full(429, "retry-after: 7\r\n", r#"{"error":{"message":"slow down","code":429}}"#);
    let data = r#"{"status":429,"code":429,"retryAfterMs":7000}"#;
    failed(busy, "backend_execution_error", Some(true), data).await;
    failed(Reply::json(408, "{}"), "timeout", Some(true), r#"{"status":408}"#).await;
    let broke = Reply::json(402, r#"{"error":{"message":"no credits","code":402}}"#);
    failed(broke, "backend_execution_error", Some(false), r#"{"status":402,"code":402}"#).await;
    let page = Reply::json(404, "<html>");
    failed(page, "backend_execution_error", Some(false), r#"{"status":404}"#).await;
}

#[tokio::test]
async fn what_is_no_answer_is_a_failure() {
    let empty = r#"{"choices":[{"message":{"content":" "},"finish_reason":"stop"}]}"#;
    failed(Reply::json(200, empty), "invalid_backend_output", None, &format!(r#"{{"body":{empty}}}"#)).await;
    let calls = AssistantMessage::calls([ToolCall::new("c", "find", Json::empty_object())]);
    let mut declined = AssistantMessage::default();
    declined.content.push(Block::refusal("I cannot."));
    let asks = AssistantMessage::clarification("Which?");
    for (message, told) in [(calls, "tool_request"), (declined, "I cannot."), (asks, "clarification")] {
        let scripted = Scripted::new([Step::answer(message)]);
        let result = run(&ModelBackend::new("b", scripted, Arc::new(Stopped(Time(0))))).await;
        check_failed(&result, "invalid_backend_output", None, "-");
        assert!(result.error.unwrap().message.contains(told));
    }
}

#[tokio::test]
async fn a_cancelled_request_ends_at_once() {
    let server = Server::start([Reply::hang()]).await;
    let cancel = Cancel::new();
    let backend = backend(&server);
    let answer = backend.execute(request("hi"), ExecutionCx::new(&(), &cancel));
    let (result, ()) = tokio::join!(answer, async {
        while server.seen().is_empty() {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
        server.hung_up().await;
    });
    check_failed(&result, "other", Some(false), "-");
}

#[tokio::test]
async fn a_request_that_a_model_alone_cannot_serve_is_not_sent() {
    let server = Server::start([]).await;
    let mut asked = request("hi");
    asked.tools = Some(vec![ExecutionTool::new("find")]);
    let result = backend(&server).execute(asked, ExecutionCx::new(&(), &Cancel::never())).await;
    assert_eq!((result.status.as_str(), bodies(&server).len()), ("unsupported", 0));
}
