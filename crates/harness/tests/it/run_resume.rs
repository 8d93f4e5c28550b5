//! Runs that another harness, as another process would, takes up.

use harness::BoundGraph;
use harness::core::outcome::StopMode;
use harness::core::port::Session as _;
use harness::core::{RunId, StopReason};
use harness::descriptor::load_text;
use harness::prelude::*;
use harness::runtime::RuntimeError;
use harness::session::MemorySession;
use harness::session::checkpoint::MemoryCheckpoints;

use crate::support::{Script, call};

/// A harness of the next process: work items, two turns at most unless `turns` says otherwise.
fn next(model: &Script, session: &MemorySession, saved: &MemoryCheckpoints, turns: u32) -> Harness {
    Harness::new(model.clone())
        .work_items()
        .stop_mode(StopMode::StrictAutomation)
        .session(session.clone())
        .checkpoints(saved.clone())
        .spec(|spec| spec.limits.turns = turns)
        .build()
        .unwrap()
}

fn script() -> Script {
    let done = r#"{"item_id":"00000001","status":"done"}"#;
    Script::new([
        call("c1", "work_item_add", r#"{"title":"The report","role":"deliverable"}"#),
        AssistantMessage::text("I have a plan."),
        call(
            "c2",
            "work_item_set_artifact",
            r#"{"item_id":"00000001","artifact":"All is well.","role":"deliverable"}"#,
        ),
        AssistantMessage::text("It is written."),
        call("c3", "work_item_update", done),
        call("c4", "work_complete", r#"{"summary":"The report is written."}"#),
    ])
}

#[tokio::test]
async fn a_run_that_had_run_out_of_turns_goes_on_with_more_and_keeps_its_items() {
    let (model, session, saved) = (script(), MemorySession::new(), MemoryCheckpoints::new());
    let report = next(&model, &session, &saved, 2).prompt("Write the report").await.unwrap();
    assert_eq!((report.reason(), report.end.turns), (StopReason::MaxTurnsReached, 2));

    let harness = next(&model, &session, &saved, 9);
    let run = harness.thread().unfinished_run().await.unwrap().expect("a run");
    let report = harness.resume(ResumeFrom::Checkpoint(run.clone())).await.unwrap();
    assert_eq!((report.reason(), report.end.turns), (StopReason::AnswerFinalized, 3));
    let deliverables: Vec<_> = report.deliverables().iter().map(|made| made.content.as_str()).collect();
    assert_eq!(deliverables, ["All is well."]);
    assert_eq!(report.end.usage.model_calls, 6, "the whole run's");

    assert_eq!(harness.thread().unfinished_run().await.unwrap(), None, "it is completed");
    let again = harness.resume(ResumeFrom::Checkpoint(run)).await.unwrap_err();
    assert_eq!(again.kind(), "runtime.no_checkpoint");
}

#[tokio::test]
async fn law_4_what_came_after_the_checkpoint_is_not_stored_twice() {
    let (model, session, saved) = (script(), MemorySession::new(), MemoryCheckpoints::new());
    let stopped = Harness::new(model.clone())
        .work_items()
        .stop_mode(StopMode::StrictAutomation)
        .session(session.clone())
        .checkpoints(saved.clone())
        .spec(|spec| spec.limits.amount.iterations = 3)
        .build()
        .unwrap();
    let report = stopped.prompt("Write the report").await.unwrap();
    assert_eq!((report.reason(), report.end.turns), (StopReason::MaxIterationsReached, 2));

    let harness = next(&model, &session, &saved, 9);
    let run = harness.thread().unfinished_run().await.unwrap().expect("a run");
    let report = harness.resume(ResumeFrom::Checkpoint(run)).await.unwrap();
    let stored = session.load().await.unwrap().messages;
    assert_eq!(stored.len(), report.transcript.len());
    assert!(stored.iter().zip(report.transcript.iter()).all(|(stored, message)| stored == message));
}

#[tokio::test]
async fn what_does_not_belong_here_is_refused_and_the_conversation_goes_on_all_the_same() {
    let (model, session, saved) = (script(), MemorySession::named("here"), MemoryCheckpoints::new());
    next(&model, &session, &saved, 1).prompt("Write the report").await.unwrap();

    let elsewhere = next(&model, &MemorySession::named("there"), &saved, 9);
    let run = next(&model, &session, &saved, 9).thread().unfinished_run().await.unwrap().expect("a run");
    let refused = elsewhere.resume(ResumeFrom::Checkpoint(run)).await.unwrap_err();
    assert_eq!(refused.kind(), "run_resume.elsewhere", "{refused}");
    let refused = elsewhere.resume(ResumeFrom::Checkpoint(RunId::from("nobody"))).await.unwrap_err();
    assert_eq!(refused.kind(), "runtime.no_checkpoint");

    let harness = next(&model, &session, &saved, 1);
    let before = harness.resume(ResumeFrom::Transcript).await.unwrap().transcript.len();
    assert!(before > 4, "the transcript is all there");
}

#[tokio::test]
async fn fault_33_a_conversation_of_another_descriptor_is_continued_only_by_choice() {
    let session = MemorySession::new();
    let harness = |who: &str| {
        let text = format!(
            "runtime: {{ entry_agent: desk }}\nagent_defaults: {{ model: small }}\nagents: {{ desk: {{ instructions: You are {who}. }} }}\n"
        );
        let graph = BoundGraph::bind(&load_text(&text).unwrap(), Vec::<(String, _)>::new()).unwrap();
        Harness::new(Script::new([AssistantMessage::text("Yes.")])).graph(graph).session(session.clone())
    };
    harness("a desk").build().unwrap().prompt("hello").await.unwrap();
    let other = harness("a robber").build().unwrap();
    let refused = other.prompt("the keys?").await.unwrap_err();
    assert!(matches!(&refused, RuntimeError::OtherDescriptor(_)), "{refused}");
    let refused = other.resume(ResumeFrom::Transcript).await.unwrap_err();
    assert!(matches!(&refused, RuntimeError::OtherDescriptor(_)), "{refused}");
    other.prompt(Prompt::from("I mean it").under_any_descriptor()).await.unwrap();
    harness("a new desk").any_descriptor().build().unwrap().prompt("me, too").await.unwrap();
    harness("a desk").build().unwrap().prompt("bye").await.unwrap();
}
