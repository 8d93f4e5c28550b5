//! Retries: how often, after which waits, and when not.

use std::sync::Arc;
use std::time::Duration;

use harness_adapters::{Retry, RetryPolicy};
use harness_core::message::AssistantMessage;
use harness_core::port::{DeltaPart, DynModel, Model as _, ModelFault, ModelFaultCode as Code, ModelRequest};
use harness_core::{Millis, Time};
use tokio::time::Instant;

use crate::support::{Pieces, Reply, Scripted, Server, Step, Stopped, hello, model};

fn policy(change: impl FnOnce(&mut RetryPolicy)) -> RetryPolicy {
    let mut policy = RetryPolicy::default();
    policy.jitter = false;
    change(&mut policy);
    policy
}

fn busy() -> ModelFault {
    ModelFault::new(Code::Provider, "busy").transient()
}

/// Runs a script and compares the result, the time waited and the steps that were not taken.
async fn check(
    steps: Vec<Step>,
    policy: RetryPolicy,
    expected: Result<&str, &str>,
    waited: u64,
    left: usize,
) {
    check_request(steps, policy, hello(), None, expected, waited, left).await;
}

async fn check_request(
    steps: Vec<Step>,
    policy: RetryPolicy,
    request: ModelRequest,
    clock: Option<Time>,
    expected: Result<&str, &str>,
    waited: u64,
    left: usize,
) {
    let script = Scripted::new(steps);
    let mut retry = Retry::new(&script, policy);
    if let Some(now) = clock {
        retry = retry.clock(Arc::new(Stopped(now)));
    }
    let start = Instant::now();
    let result = retry.step(request, &Pieces::default()).await;
    let result = result.map(|message| message.joined_text()).map_err(|fault| fault.message);
    assert_eq!(result, expected.map(str::to_owned).map_err(str::to_owned));
    assert_eq!((start.elapsed(), script.left()), (Duration::from_millis(waited), left));
}

#[tokio::test(start_paused = true)]
async fn waits_grow_until_an_attempt_succeeds() {
    let steps = vec![Step::fault(busy()), Step::fault(busy()), Step::text("ok")];
    check(steps, policy(|_| ()), Ok("ok"), 500 + 1_000, 0).await;
}

#[tokio::test(start_paused = true)]
async fn the_last_attempt_ends_it() {
    for (attempts, message, waited) in [(1, "busy", 0), (0, "busy", 0), (2, "busy (after 2 attempts)", 500)] {
        let steps = (0..=attempts.max(1)).map(|_| Step::fault(busy())).collect();
        check(steps, policy(|policy| policy.attempts = attempts), Err(message), waited, 1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn errors_have_the_time_of_the_last_attempt() {
    for (attempts, expected) in [(1, None), (3, Some(Time(7)))] {
        let steps: Vec<_> = (0..attempts).map(|_| Step::fault(busy())).collect();
        let script = Scripted::new(steps);
        let retry = Retry::new(&script, policy(|policy| policy.attempts = attempts));
        let retry = retry.clock(Arc::new(Stopped(Time(7))));
        let fault = retry.step(hello(), &Pieces::default()).await.unwrap_err();
        assert_eq!(fault.retried_at, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn lasting_faults_are_not_repeated() {
    let fault = ModelFault::new(Code::AuthFailed, "no key");
    check(vec![Step::fault(fault), Step::text("ok")], policy(|_| ()), Err("no key"), 0, 1).await;
}

#[tokio::test(start_paused = true)]
async fn the_providers_wait_goes_first() {
    let asked = |wait| Step::fault(ModelFault { retry_after: Some(Millis(wait)), ..busy() });
    check(vec![asked(7_000), Step::text("ok")], policy(|_| ()), Ok("ok"), 7_000, 0).await;
    check(vec![asked(60_000), Step::text("ok")], policy(|_| ()), Ok("ok"), 60_000, 0).await;
    check(vec![asked(60_001), Step::text("ok")], policy(|_| ()), Err("busy"), 0, 1).await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_repeated_once_a_piece_was_passed_on() {
    let half = Step::fault(busy()).after([DeltaPart::Text("Half".to_owned())]);
    check(vec![half, Step::text("ok")], policy(|_| ()), Err("busy"), 0, 1).await;
    let partial = Step::fault(busy().with_partial(AssistantMessage::text("Half")));
    check(vec![partial, Step::text("ok")], policy(|_| ()), Err("busy"), 0, 1).await;
}

#[tokio::test(start_paused = true)]
async fn no_wait_reaches_the_deadline() {
    for (deadline, expected, waited, left) in [(500, Err("busy"), 0, 1), (501, Ok("ok"), 500, 0)] {
        let mut request = hello();
        request.deadline = Some(Time(1_000 + deadline));
        let steps = vec![Step::fault(busy()), Step::text("ok")];
        check_request(steps, policy(|_| ()), request, Some(Time(1_000)), expected, waited, left).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_the_wait() {
    let request = hello();
    let cancel = request.cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(100)).await;
        cancel.cancel();
    });
    let steps = vec![Step::fault(busy()), Step::text("ok")];
    check_request(steps, policy(|_| ()), request, None, Err("busy"), 100, 1).await;
}

#[tokio::test(start_paused = true)]
async fn jitter_at_most_doubles_a_wait() {
    let script = Scripted::new([Step::fault(busy()), Step::text("ok")]);
    let start = Instant::now();
    Retry::new(&script, RetryPolicy::default()).step(hello(), &Pieces::default()).await.unwrap();
    let waited = start.elapsed();
    assert!((500..=1_000).contains(&waited.as_millis()), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn the_requests_behind_an_answer_are_counted() {
    let script = Scripted::new([Step::fault(busy()), Step::text("ok")]);
    let message = Retry::new(&script, policy(|_| ())).step(hello(), &Pieces::default()).await.unwrap();
    assert_eq!(message.usage.unwrap().requests, Some(2));
}

#[tokio::test]
async fn a_rate_limit_over_http_is_waited_out() {
    let limit = Reply::full(429, "retry-after-ms: 1\r\n", r#"{"error":{"message":"slow down"}}"#);
    let server = Server::start([limit, Reply::events().delta(r#"{"content":"ok"}"#).finish("stop")]).await;
    let model = Retry::new(model(&server), policy(|_| ()));
    let message = model.step(hello(), &Pieces::default()).await.unwrap();
    assert_eq!(message.joined_text(), "ok");
    let bodies: Vec<String> = server.seen().into_iter().map(|seen| seen.body).collect();
    assert_eq!(bodies.len(), 2);
    assert_eq!(bodies[0], bodies[1], "both attempts ask the same");
}

#[tokio::test]
async fn wrappers_stack_over_a_model_behind_a_pointer() {
    let server = Server::start([Reply::events().delta(r#"{"content":"ok"}"#).finish("stop")]).await;
    let inner: Arc<dyn DynModel> = Arc::new(model(&server));
    let outer: Arc<dyn DynModel> = Arc::new(Retry::new(inner, policy(|_| ())));
    let message = tokio::spawn(async move { outer.step(hello(), &Pieces::default()).await }).await.unwrap();
    assert_eq!(message.unwrap().joined_text(), "ok");
}
