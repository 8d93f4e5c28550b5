//! Execution adapters over OpenRouter, the quick answer and the tiered runner.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use harness_adapters::ApiKey;
use harness_adapters::execution::{
    OpenRouterExecutionAdapter, OpenRouterSingleShotAdapter, RouterFault, Routing, Said, SingleShot,
    SingleShotFault, SingleShotRequest, Tier, TierRouter, TieredFault, TieredOutcome, TieredRunner,
};
use harness_core::cancel::Cancel;
use harness_core::port::execution::{ExecutionBlock, ExecutionContext, ExecutionMessage};
use harness_core::port::{
    ExecutionAdapter, ExecutionCx, ExecutionPart, ExecutionRequest, ExecutionResult, ExecutionSink,
};
use harness_core::{Json, Time};

use crate::support::{KEY, Reply, Server, Stopped};

#[derive(Default)]
struct Parts(Mutex<Vec<ExecutionPart>>);

impl ExecutionSink for Parts {
    fn part(&self, part: ExecutionPart) {
        self.0.lock().unwrap().push(part);
    }
}

fn adapter(server: &Server) -> OpenRouterExecutionAdapter {
    OpenRouterExecutionAdapter::builder(Some(ApiKey::new(KEY)), Arc::new(Stopped(Time(0))))
        .base_url(server.url())
        .timeout(Duration::from_secs(20))
        .build()
        .unwrap()
}

fn quick(server: &Server) -> OpenRouterSingleShotAdapter {
    OpenRouterSingleShotAdapter::builder(Some(ApiKey::new(KEY))).base_url(server.url()).build().unwrap()
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

/// Status, error code, whether it is retryable, the message, and the error's metadata.
#[track_caller]
fn check_failed(result: &ExecutionResult, code: &str, retryable: Option<bool>, message: &str, data: &str) {
    let error = result.error.as_ref().expect("a failure");
    assert_eq!(result.status.as_str(), "failed");
    assert_eq!((error.code.as_str(), error.retryable), (code, retryable), "{error:?}");
    assert_eq!(error.message, message);
    assert_eq!(error.metadata.as_ref().map_or("-", Json::text), data);
    assert!(!Json::of(result).unwrap().text().contains(KEY));
}

async fn failed(reply: Reply, code: &str, retryable: Option<bool>, message: &str, data: &str) {
    let server = Server::start([reply]).await;
    check_failed(&run(&adapter(&server)).await, code, retryable, message, data);
}

#[tokio::test]
async fn an_answer_says_what_it_used_and_that_it_was_cut() {
    let body = r#"{"id":"gen-1","choices":[{"message":{"content":[{"type":"text","text":" two "}]},"finish_reason":"length"}],"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}}"#;
    let server = Server::start([Reply::json(200, body)]).await;
    let parts = Parts::default();
    let result = adapter(&server).execute(request("hi"), ExecutionCx::new(&parts, &Cancel::never())).await;
    assert_eq!(result.text(), "two");
    assert_eq!(
        result.metadata.unwrap().text(),
        r#"{"responseId":"gen-1","usage":{"input":3,"output":1,"totalTokens":4},"truncated":true}"#
    );
    let parts = parts.0.into_inner().unwrap();
    assert!(matches!(&parts[..], [ExecutionPart::Usage(_), ExecutionPart::Text(text)] if text == "two"));
}

#[tokio::test]
async fn an_error_within_a_good_status_is_told_as_that_error() {
    let body = r#"{"error":{"code":502,"message":"provider sk-or-v1-do-not-show-me failed"}}"#;
    let told = "provider [key] failed";
    failed(Reply::json(200, body), "backend_execution_error", Some(true), told, r#"{"code":"502"}"#).await;
}

#[tokio::test]
async fn an_answer_that_a_filter_stopped_is_none() {
    let body = r#"{"choices":[{"message":{"content":"half"},"finish_reason":"content_filter"}]}"#;
    let told = "OpenRouter stopped the answer: a content filter intervened.";
    failed(Reply::json(200, body), "invalid_backend_output", Some(false), told, "-").await;
    let body = r#"{"choices":[{"message":{"content":"half"},"finish_reason":"error"}]}"#;
    let told = "OpenRouter ended the answer with an error.";
    failed(Reply::json(200, body), "backend_execution_error", Some(true), told, "-").await;
}

#[tokio::test]
async fn what_may_pass_is_retryable() {
    let busy = Reply::full(429, "retry-after: 7\r\n", r#"{"error":{"message":"slow down","code":429}}"#);
    let data = r#"{"status":429,"code":429,"retryAfterMs":7000}"#;
    failed(busy, "backend_execution_error", Some(true), "slow down", data).await;
    let late = Reply::json(408, "{}");
    let told = "OpenRouter request failed with status 408.";
    failed(late, "backend_execution_error", Some(true), told, r#"{"status":408}"#).await;
    let broke = Reply::json(402, r#"{"error":{"message":"no credits","code":402}}"#);
    let data = r#"{"status":402,"code":402}"#;
    failed(broke, "backend_execution_error", Some(false), "no credits", data).await;
}

#[tokio::test]
async fn an_error_page_keeps_its_status() {
    let told = "OpenRouter request failed with status 404 and a body that is no JSON.";
    let page = Reply::json(404, "<html>");
    failed(page, "backend_execution_error", Some(false), told, r#"{"status":404}"#).await;
}

#[tokio::test]
async fn a_cancelled_request_ends_at_once() {
    let server = Server::start([Reply::hang()]).await;
    let cancel = Cancel::new();
    let adapter = adapter(&server);
    let answer = adapter.execute(request("hi"), ExecutionCx::new(&(), &cancel));
    let (result, ()) = tokio::join!(answer, async {
        while server.seen().is_empty() {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
        server.hung_up().await;
    });
    check_failed(&result, "other", None, "OpenRouter request was cancelled.", "-");
}

#[tokio::test]
async fn without_a_key_nothing_is_sent() {
    let server = Server::start([]).await;
    let clock = Arc::new(Stopped(Time(0)));
    let adapter = OpenRouterExecutionAdapter::builder(Some(ApiKey::new(" ")), clock).base_url(server.url());
    let result = run(&adapter.build().unwrap()).await;
    check_failed(&result, "backend_execution_error", None, "OpenRouter API key is not configured.", "-");
    assert_eq!(result.trace, None);
}

#[tokio::test]
async fn a_quick_answer_has_its_history_and_is_not_trimmed() {
    let body = r#"{"choices":[{"message":{"content":" yes\n"}}]}"#;
    let server = Server::start([Reply::json(200, body)]).await;
    let mut request = SingleShotRequest::new("S", "now?");
    request.developer_prompt = Some("D".to_owned());
    request.history = vec![Said { role: "assistant".to_owned(), content: "hello".to_owned() }];
    let adapter = OpenRouterSingleShotAdapter::builder(Some(ApiKey::new(KEY))).base_url(server.url());
    let adapter = adapter.temperature(0.5).model("m").build().unwrap();
    let answer = adapter.generate(request, &Cancel::never()).await.unwrap();
    assert_eq!((answer.text.as_str(), answer.truncated), (" yes\n", false));
    assert_eq!(
        bodies(&server),
        [concat!(
            r#"{"model":"m","messages":[{"role":"system","content":"S"},{"role":"system","content":"D"},"#,
            r#"{"role":"assistant","content":"hello"},{"role":"user","content":"now?"}],"temperature":0.5}"#
        )]
    );
}

async fn quick_fault(reply: Reply, kind: &str, said: &str) {
    let server = Server::start([reply]).await;
    let asked = quick(&server).generate(SingleShotRequest::new("S", "q"), &Cancel::never()).await;
    let fault = asked.unwrap_err();
    assert_eq!((fault.kind(), fault.to_string().as_str()), (kind, said));
}

#[tokio::test]
async fn a_quick_answer_fails_with_a_typed_fault() {
    let said = Reply::json(400, r#"{"error":{"message":"bad"}}"#);
    quick_fault(said, "single_shot.http", "OpenRouter answered with HTTP 400: bad").await;
    quick_fault(Reply::json(500, "x"), "single_shot.http", "OpenRouter answered with HTTP 500").await;
    let empty = Reply::json(200, r#"{"choices":[{"message":{"content":""}}]}"#);
    quick_fault(empty, "single_shot.no_text", "the answer of OpenRouter holds no text").await;
    let reported = Reply::json(200, r#"{"error":{"message":"down"}}"#);
    quick_fault(reported, "single_shot.reported", "OpenRouter reported an error: down").await;
    let stopped = r#"{"choices":[{"message":{"content":"x"},"finish_reason":"content_filter"}]}"#;
    let said = "OpenRouter stopped the answer: content_filter";
    quick_fault(Reply::json(200, stopped), "single_shot.stopped", said).await;
}

struct To(&'static str);

impl TierRouter for To {
    async fn route(&self, _: &ExecutionRequest) -> Result<Routing, RouterFault> {
        if self.0 == "broken" {
            return Err("no route".into());
        }
        Ok(Routing::new(Tier::parse(self.0)).because("test"))
    }
}

async fn tiered(
    word: &'static str,
    replies: Vec<Reply>,
) -> (Result<TieredOutcome, TieredFault>, Vec<String>) {
    let server = Server::start(replies).await;
    let runner = TieredRunner::new(To(word), quick(&server), adapter(&server));
    let mut request = request("now?");
    let mut context = ExecutionContext::default();
    for label in ["user", "User", "assistant", "note"] {
        context.blocks.push(ExecutionBlock::new(label, label, format!("{label} said")));
    }
    request.context = Some(context);
    let outcome = runner.run(request, ExecutionCx::new(&(), &Cancel::never())).await;
    (outcome, bodies(&server))
}

#[tokio::test]
async fn a_router_decides_how_a_request_is_answered() {
    let answer = || vec![Reply::json(200, r#"{"choices":[{"message":{"content":"ok"}}]}"#)];
    let (outcome, bodies) = tiered("fast", answer()).await;
    assert!(matches!(outcome, Ok(TieredOutcome::Fast { text, .. }) if text == "ok"));
    assert!(bodies[0].contains(concat!(
        r#"{"role":"user","content":"user said"},{"role":"assistant","content":"assistant said"},"#,
        r#"{"role":"user","content":"now?"}"#
    )));
    let (outcome, bodies) = tiered("harness", answer()).await;
    assert!(matches!(outcome, Ok(TieredOutcome::Harness { result, .. }) if result.text() == "ok"));
    assert!(bodies[0].contains("- [note] note said"));
    for word in ["reject", "later"] {
        let (outcome, bodies) = tiered(word, Vec::new()).await;
        let Ok(TieredOutcome::Rejected { text, routing }) = outcome else { panic!("not rejected") };
        assert_eq!((text.as_str(), bodies.len()), ("I can't help with that request.", 0));
        assert_eq!(routing.reason.as_deref(), Some("test"));
    }
}

#[tokio::test]
async fn faults_of_the_router_and_of_the_quick_answer_are_told() {
    let (outcome, _) = tiered("broken", Vec::new()).await;
    assert_eq!(outcome.unwrap_err().to_string(), "the router failed: no route");
    let (outcome, _) = tiered("fast", vec![Reply::json(401, "{}")]).await;
    assert!(matches!(outcome, Err(TieredFault::Fast(SingleShotFault::Http { status: 401, .. }))));
}
