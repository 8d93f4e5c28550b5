//! Calls that are parked and decided about later.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use harness::core::StopReason;
use harness::core::decide::policy::PolicyDecision;
use harness::core::machine::{CallDecision, Resume};
use harness::core::outcome::Continuation;
use harness::core::port::ProposedCall;
use harness::prelude::*;
use harness::session::MemorySession;

use crate::support::{Script, call};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Order {
    cents: u32,
}

/// A desk whose payments need approval, and that counts them.
fn desk(model: Script, paid: &Arc<AtomicU32>) -> harness::Builder {
    let paid = Arc::clone(paid);
    let pay = tool_fn("pay", "Pays", move |order: Order, _| {
        paid.fetch_add(order.cents, Ordering::SeqCst);
        async move { Ok::<_, std::io::Error>(format!("paid {}", order.cents)) }
    });
    Harness::new(model).tool(pay).tool_policy(|proposal: &ProposedCall| match proposal.call.name.as_str() {
        "pay" => PolicyDecision::require_approval("four_eyes"),
        _ => PolicyDecision::allow("harmless"),
    })
}

fn paying() -> Script {
    Script::new([call("c1", "pay", r#"{"cents":5}"#), AssistantMessage::text("done")])
}

async fn parked(harness: &Harness) -> Continuation {
    let report = harness.prompt("pay").await.unwrap();
    assert_eq!(report.reason(), StopReason::ApprovalRequired);
    *report.end.continuation.clone().unwrap()
}

/// Parks a payment, decides, and compares what was paid and how it ended.
async fn check(decision: CallDecision, session: bool, (cents, result): (u32, &str)) {
    let paid = Arc::default();
    let mut builder = desk(paying(), &paid);
    if session {
        builder = builder.session(MemorySession::new());
    }
    let harness = builder.build().unwrap();
    let continuation = parked(&harness).await;
    let report = harness
        .resume(ResumeFrom::continuation(continuation.clone(), Resume::decided([decision.clone()])))
        .await
        .unwrap();
    assert_eq!((report.answer(), paid.load(Ordering::SeqCst)), ("done", cents));
    let results = report.transcript.iter().filter(|message| message.as_tool_result().is_some());
    assert_eq!(results.map(|message| message.joined_text()).collect::<Vec<_>>(), [result]);
    let again = harness
        .resume(ResumeFrom::continuation(continuation, Resume::decided([decision])))
        .await
        .unwrap_err();
    assert_eq!(again.kind(), "resume.consumed");
    assert_eq!(paid.load(Ordering::SeqCst), cents, "nothing is paid twice");
}

#[tokio::test]
async fn a_decision_is_carried_out_once() {
    for session in [false, true] {
        check(CallDecision::granted("c1"), session, (5, "paid 5")).await;
        check(CallDecision::denied("c1", "too much"), session, (0, "Denied: too much")).await;
    }
}

#[tokio::test]
async fn another_conversation_refuses_the_continuation() {
    let paid = Arc::default();
    let continuation = parked(&desk(paying(), &paid).thread("ada").build().unwrap()).await;
    let other = desk(paying(), &paid).thread("bob").build().unwrap();
    parked(&other).await;
    let resume = Resume::decided([CallDecision::granted("c1")]);
    let error = other.resume(ResumeFrom::continuation(continuation, resume)).await.unwrap_err();
    assert_eq!(error.kind(), "resume.other_thread");
    assert_eq!(paid.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_refused_continuation_leaves_the_conversation_as_it_was() {
    let paid = Arc::default();
    let harness = desk(paying(), &paid).build().unwrap();
    let continuation = parked(&harness).await;
    let wrong = Resume::decided([CallDecision::granted("c2")]);
    let error = harness.resume(ResumeFrom::continuation(continuation.clone(), wrong)).await.unwrap_err();
    assert_eq!(error.to_string(), "call `c2` is not pending; pending calls: `c1`");
    let right = Resume::decided([CallDecision::granted("c1")]);
    assert_eq!(harness.resume(ResumeFrom::continuation(continuation, right)).await.unwrap().answer(), "done");
    assert_eq!(paid.load(Ordering::SeqCst), 5);
}

#[tokio::test]
async fn law_5_a_call_that_ran_beside_a_parked_one_is_not_run_again() {
    let looked = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&looked);
    let look = tool_fn("look", "Looks", move |_: Order, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move { Ok::<_, std::io::Error>("seen".to_owned()) }
    });
    let mut both = call("c1", "pay", r#"{"cents":5}"#);
    both.content.extend(call("c2", "look", r#"{"cents":1}"#).content);
    let paid = Arc::default();
    let harness =
        desk(Script::new([both, AssistantMessage::text("done")]), &paid).tool(look).build().unwrap();
    let continuation = parked(&harness).await;
    assert_eq!(looked.load(Ordering::SeqCst), 1);
    let granted = Resume::decided([CallDecision::granted("c1")]);
    let report = harness.resume(ResumeFrom::continuation(continuation, granted)).await.unwrap();
    let results = report.transcript.iter().filter(|message| message.as_tool_result().is_some());
    assert_eq!(results.map(|message| message.joined_text()).collect::<Vec<_>>(), ["paid 5", "seen"]);
    assert_eq!((looked.load(Ordering::SeqCst), paid.load(Ordering::SeqCst)), (1, 5));
}

#[tokio::test]
async fn what_is_said_instead_of_a_decision_leaves_the_call_unexecuted() {
    let paid = Arc::default();
    let harness = desk(paying(), &paid).build().unwrap();
    let continuation = parked(&harness).await;
    let report = harness.prompt("forget it").await.unwrap();
    assert_eq!((report.answer(), paid.load(Ordering::SeqCst)), ("done", 0));
    let late = harness
        .resume(ResumeFrom::continuation(continuation, Resume::decided([CallDecision::granted("c1")])))
        .await;
    assert_eq!(late.unwrap_err().kind(), "resume.consumed");
}

#[tokio::test]
async fn a_question_is_answered_and_a_limit_is_lifted() {
    let model = Script::new([AssistantMessage::clarification("Which?"), AssistantMessage::text("that one")]);
    let harness = Harness::new(model).build().unwrap();
    let asked = harness.prompt("go").await.unwrap();
    let continuation = *asked.end.continuation.clone().unwrap();
    let wrong =
        harness.resume(ResumeFrom::continuation(continuation.clone(), Resume::deferred())).await.unwrap_err();
    assert_eq!(wrong.kind(), "resume.other_kind");
    let report =
        harness.resume(ResumeFrom::continuation(continuation, Resume::answer("the red one"))).await.unwrap();
    assert_eq!((report.answer(), report.end.resumed), ("that one", true));

    let model = Script::new([call("c1", "pay", r#"{"cents":5}"#), AssistantMessage::text("done")]);
    let limited = Harness::new(model).limits(|limits| limits.iterations = 1);
    let harness = limited.build().unwrap();
    let deferred = harness.prompt("go").await.unwrap();
    assert_eq!(deferred.reason(), StopReason::MaxIterationsReached);
    let continuation = *deferred.end.continuation.clone().unwrap();
    assert_eq!(
        harness.resume(ResumeFrom::continuation(continuation, Resume::deferred())).await.unwrap().answer(),
        "done"
    );
}

#[tokio::test]
async fn a_refused_prompt_is_not_part_of_the_conversation() {
    let model = Script::new([AssistantMessage::text("hi")]);
    let without = check::guardrail("without", Points::PROMPT, |text| {
        text.contains("secret").then(|| "secret".to_owned())
    });
    let harness = Harness::new(model.clone()).check(without).build().unwrap();
    let refused = harness.prompt("the secret word").await.unwrap();
    assert_eq!((refused.reason(), refused.transcript.len()), (StopReason::GuardrailTriggered, 0));
    assert_eq!(harness.prompt("hello").await.unwrap().answer(), "hi");
    assert_eq!(model.seen(), ["main:  | user hello"]);
}

#[tokio::test]
async fn fault_04_a_decision_is_bound_to_the_digest_of_the_parked_call() {
    let paid = Arc::default();
    let harness = desk(paying(), &paid).build().unwrap();
    let continuation = parked(&harness).await;
    let pending = &continuation.pending[0];
    let arguments = pending.arguments.as_ref().map(|arguments| arguments.text().to_owned());
    assert_eq!((pending.tool.as_str(), arguments.as_deref()), ("pay", Some(r#"{"cents":5}"#)));
    assert!(pending.run.is_some() && pending.digest.approval().as_str().starts_with("apr-"), "{pending:?}");
    let digest = pending.digest.clone();
    for decision in [
        CallDecision::granted("c1"),
        CallDecision::denied("c1", "no"),
        CallDecision::edited("c1", harness::core::Json::parse(r#"{"cents":7}"#).unwrap()),
    ] {
        let other = Resume::decided([decision.having_seen("another")]);
        let refused =
            harness.resume(ResumeFrom::continuation(continuation.clone(), other)).await.unwrap_err();
        assert_eq!(refused.kind(), "resume.other_call");
    }
    let seen = Resume::decided([CallDecision::granted("c1").having_seen(digest)]);
    assert_eq!(harness.resume(ResumeFrom::continuation(continuation, seen)).await.unwrap().answer(), "done");
    assert_eq!(paid.load(Ordering::SeqCst), 5);
}

#[tokio::test]
async fn fault_06_a_completed_conversation_has_nothing_to_resume() {
    let session = MemorySession::new();
    let paid = Arc::default();
    let model = Script::new([
        call("c1", "pay", r#"{"cents":5}"#),
        AssistantMessage::text("done"),
        call("c1", "pay", r#"{"cents":5}"#),
    ]);
    let harness = desk(model.clone(), &paid).session(session.clone()).build().unwrap();
    let continuation = parked(&harness).await;
    let granted = Resume::decided([CallDecision::granted("c1")]);
    harness.resume(ResumeFrom::continuation(continuation.clone(), granted.clone())).await.unwrap();
    let asked = model.seen().len();
    let next = desk(model.clone(), &paid).session(session).build().unwrap();
    for harness in [&harness, &next] {
        for prompt in [harness.resume(ResumeFrom::Transcript), harness.prompt(" ")] {
            let refused = prompt.await.unwrap_err();
            assert_eq!(
                (refused.kind(), refused.to_string().as_str()),
                ("runtime.nothing_to_resume", "nothing to resume: the run completed (answer_finalized)")
            );
        }
        let used = harness
            .resume(ResumeFrom::continuation(continuation.clone(), granted.clone()))
            .await
            .unwrap_err();
        assert_eq!(used.kind(), "resume.consumed");
    }
    assert_eq!(
        (model.seen().len(), paid.load(Ordering::SeqCst)),
        (asked, 5),
        "nothing was asked, nothing ran"
    );
}
