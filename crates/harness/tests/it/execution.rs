//! A harness as a backend, and a backend as the model of a harness.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use harness::HarnessExecution;
use harness::adapters::execution::{
    BackendModel, ExecutionAdapter, ExecutionCapabilities, ExecutionContinuation, ExecutionCx,
    ExecutionMessage, ExecutionPart, ExecutionRequest, ExecutionResult, ExecutionSink, ExecutionStatus,
};
use harness::core::decide::policy::PolicyDecision;
use harness::core::port::ProposedCall;
use harness::core::{Cancel, Json, Outcome, StopReason};
use harness::prelude::*;
use harness::session::MemorySession;
use harness::system::SystemIds;
use parking_lot::Mutex;

use crate::support::{Script, call};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Order {
    cents: u32,
}

#[derive(Default)]
struct Parts(Mutex<Vec<ExecutionPart>>);

impl ExecutionSink for Parts {
    fn part(&self, part: ExecutionPart) {
        self.0.lock().push(part);
    }
}

fn request(text: &str) -> ExecutionRequest {
    ExecutionRequest::new("assistant", "t1", "Be brief.", ExecutionMessage::new("m1", text))
}

async fn run(backend: &HarnessExecution, request: ExecutionRequest) -> ExecutionResult {
    backend.execute(request, ExecutionCx::new(&(), &Cancel::never())).await
}

/// A backend with a payment tool; `approved` payments need somebody's word.
fn desk(model: Script, paid: &Arc<AtomicU32>, approved: bool) -> HarnessExecution {
    let paid = Arc::clone(paid);
    HarnessExecution::new(move |request| {
        let paid = Arc::clone(&paid);
        let pay = tool_fn("pay", "Pays", move |order: Order, _| {
            paid.fetch_add(order.cents, Ordering::SeqCst);
            async move { Ok::<_, std::io::Error>(format!("paid {}", order.cents)) }
        });
        let builder = Harness::new(model.clone()).instructions(request.instructions.system_prompt.as_str());
        Ok(builder.tool(pay).tool_policy(move |_: &ProposedCall| {
            if approved { PolicyDecision::require_approval("four_eyes") } else { PolicyDecision::allow("ok") }
        }))
    })
}

#[tokio::test]
async fn a_harness_answers_a_request_with_its_tools() {
    let script = Script::new([call("c1", "pay", r#"{"cents":5}"#), AssistantMessage::text("done")]);
    let (paid, parts) = (Arc::default(), Parts::default());
    let backend = desk(script.clone(), &paid, false);
    let result = backend.execute(request("pay"), ExecutionCx::new(&parts, &Cancel::never())).await;
    assert_eq!((result.status, result.text()), (ExecutionStatus::Completed, "done"));
    assert_eq!(script.seen()[0], "main: Be brief. | user pay");
    let trace = result.trace.unwrap();
    let kinds: Vec<String> = trace.events.unwrap().iter().map(|event| format!("{:?}", event.kind)).collect();
    assert_eq!(kinds, ["ModelStarted", "ToolRequested", "ToolCompleted", "ModelCompleted"]);
    assert_eq!(trace.summary.tool_call_count, Some(1));
    let told: Vec<String> = parts.0.into_inner().iter().map(|part| format!("{part:?}")).collect();
    assert!(told[0].starts_with("ToolStarted") && told[1].contains("paid 5"), "{told:?}");
    let metadata = result.metadata.unwrap();
    assert!(metadata.text().starts_with(r#"{"stopReason":"answer_finalized","usage":{"#), "{metadata}");
}

#[tokio::test]
async fn a_conversation_goes_on_by_its_continuation() {
    let script = Script::new([AssistantMessage::text("one"), AssistantMessage::text("two")]);
    let backend = desk(script.clone(), &Arc::default(), false);
    let first = run(&backend, request("a")).await;
    let mut next = request("b");
    next.continuation = first.continuation.clone();
    assert_eq!(run(&backend, next).await.text(), "two");
    assert_eq!(script.seen()[1], "main: Be brief. | user a | assistant one | user b");
    let mut unknown = request("c");
    let mut continuation = ExecutionContinuation::default();
    continuation.state = Json::parse(r#"{"conversation":"conversation-9"}"#).ok();
    unknown.continuation = Some(continuation);
    let refused = run(&backend, unknown).await;
    assert_eq!(refused.status, ExecutionStatus::Failed);
    assert!(refused.error.unwrap().message.starts_with("unknown conversation `conversation-9`"));
}

#[tokio::test]
async fn a_held_call_waits_for_the_hosts_word() {
    for (approved, cents) in [(true, 5), (false, 0)] {
        let script = Script::new([call("c1", "pay", r#"{"cents":5}"#), AssistantMessage::text("done")]);
        let paid = Arc::default();
        let backend = desk(script, &paid, true);
        let parked = run(&backend, request("pay")).await;
        assert_eq!(parked.status, ExecutionStatus::AwaitingApproval);
        assert!(parked.approval_request.unwrap().metadata.is_some());
        let mut continuation = parked.continuation.unwrap();
        assert_eq!(continuation.kind.as_deref(), Some("approval"));
        continuation.metadata = Json::parse(&format!(r#"{{"approved":{approved}}}"#)).ok();
        let mut decided = request("");
        decided.continuation = Some(continuation);
        let done = run(&backend, decided).await;
        assert_eq!((done.text(), paid.load(Ordering::SeqCst)), ("done", cents), "{done:?}");
    }
}

#[tokio::test]
async fn what_it_cannot_do_is_told_before_anything_runs() {
    let backend = desk(Script::new([]), &Arc::default(), false);
    let mut asked = request("a");
    let attachment = harness::adapters::execution::ExecutionAttachment::new("1", "image/png");
    asked.message.attachments = Some(vec![attachment]);
    assert_eq!(run(&backend, asked).await.status, ExecutionStatus::Unsupported);
}

#[tokio::test]
async fn a_cancelled_request_is_told_as_such() {
    let backend = desk(Script::new([]), &Arc::default(), false);
    let cancel = Cancel::new();
    cancel.cancel();
    let result = backend.execute(request("a"), ExecutionCx::new(&(), &cancel)).await;
    assert_eq!(result.error.unwrap().message, "cancelled: The run was cancelled.");
}

/// A backend that gives its results in order and keeps what it was asked.
#[derive(Clone)]
struct Far {
    results: Arc<Mutex<Vec<ExecutionResult>>>,
    asked: Arc<Mutex<Vec<ExecutionRequest>>>,
}

impl Far {
    fn new<const N: usize>(results: [&str; N]) -> Self {
        let mut results: Vec<_> =
            results.iter().map(|result| Json::parse(result).unwrap().to().unwrap()).collect();
        results.reverse();
        Self { results: Arc::new(Mutex::new(results)), asked: Arc::default() }
    }

    fn harness(&self) -> Harness {
        let model = BackendModel::new(self.clone(), Arc::new(SystemIds::new()));
        Harness::new(model).instructions("Be kind.").session(MemorySession::new()).build().unwrap()
    }
}

impl ExecutionAdapter for Far {
    fn backend_id(&self) -> &'static str {
        "far"
    }

    fn capabilities(&self) -> ExecutionCapabilities {
        ExecutionCapabilities::none()
    }

    async fn execute(&self, request: ExecutionRequest, _: ExecutionCx<'_>) -> ExecutionResult {
        self.asked.lock().push(request);
        self.results.lock().pop().unwrap()
    }
}

#[tokio::test]
async fn a_backend_ends_a_run_as_it_ended() {
    for (status, more, outcome, reason) in [
        ("completed", r#""output":{"text":"hi"}"#, Outcome::Completed, StopReason::AnswerFinalized),
        (
            "needs_clarification",
            r#""output":{"text":"which?"}"#,
            Outcome::NeedsClarification,
            StopReason::ClarificationRequired,
        ),
        (
            "awaiting_approval",
            r#""approvalRequest":{"reason":"rm"}"#,
            Outcome::AwaitingApproval,
            StopReason::ApprovalRequired,
        ),
        ("deferred", r#""output":{"text":"half"}"#, Outcome::Deferred, StopReason::BackendDeferred),
        (
            "failed",
            r#""error":{"code":"timeout","message":"slow","retryable":true}"#,
            Outcome::Failed,
            StopReason::RuntimeError,
        ),
        (
            "unsupported",
            r#""error":{"code":"unsupported_capability","message":"no"}"#,
            Outcome::Failed,
            StopReason::RuntimeError,
        ),
    ] {
        let far = Far::new([&format!(r#"{{"backendId":"far","status":"{status}",{more}}}"#)]);
        let report = far.harness().prompt("go").await.unwrap();
        assert_eq!((report.outcome(), report.reason()), (outcome, reason), "{status}");
    }
}

#[tokio::test]
async fn a_session_with_a_backend_goes_on_where_it_was() {
    let far = Far::new([
        r#"{"backendId":"far","status":"deferred","output":{"text":"half"},"continuation":{"kind":"session","state":{"id":"s1"}}}"#,
        r#"{"backendId":"far","status":"completed","output":{"text":"whole"}}"#,
    ]);
    let harness = far.harness();
    assert_eq!(harness.prompt("go").await.unwrap().reason(), StopReason::BackendDeferred);
    let report = harness.resume(ResumeFrom::Transcript).await.unwrap();
    assert_eq!((report.answer(), report.reason()), ("whole", StopReason::AnswerFinalized));
    let asked = far.asked.lock();
    assert_eq!(asked[1].message.text, "Continue.");
    assert_eq!(asked[1].continuation.as_ref().unwrap().state.as_ref().unwrap().text(), r#"{"id":"s1"}"#);
    assert_eq!(asked[1].instructions.system_prompt, "Be kind.");
}
