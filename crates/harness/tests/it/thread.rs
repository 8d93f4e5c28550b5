//! What a harness remembers from one prompt to the next.

use futures_util::FutureExt as _;
use harness::core::event::Seen;
use harness::core::{Millis, StopReason};
use harness::prelude::*;
use harness::session::MemorySession;

use crate::support::{Script, call};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct City {
    city: String,
}

#[tokio::test]
async fn prompts_share_one_transcript() {
    let model = Script::new([AssistantMessage::text("hello Ada"), AssistantMessage::text("Ada, you said")]);
    let harness = Harness::new(model.clone()).instructions("Be brief.").build().unwrap();
    let first = harness.prompt("I am Ada").await.unwrap();
    let second = harness.prompt("Who am I?").await.unwrap();
    assert_eq!((first.answer(), second.answer()), ("hello Ada", "Ada, you said"));
    assert_eq!((first.transcript.len(), second.transcript.len()), (2, 4));
    assert_eq!(
        model.seen(),
        [
            "main: Be brief. | user I am Ada",
            "main: Be brief. | user I am Ada | assistant hello Ada | user Who am I?",
        ]
    );
}

/// Has a tool that never ends.
fn stuck<const N: usize>(answers: [AssistantMessage; N]) -> harness::Builder {
    let wait = tool_fn("wait", "Never ends", |asked: City, _| async move {
        std::future::pending::<()>().await;
        Ok::<_, std::io::Error>(asked.city)
    });
    Harness::new(Script::new(answers)).tool(wait).grace(Millis(1))
}

/// Lets the run get as far as it can.
async fn settled() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[track_caller]
fn check_results(report: &Report) {
    let results = report.transcript.iter().filter_map(|message| message.as_tool_result());
    let results: Vec<(&str, bool)> =
        results.map(|result| (result.tool_call_id.as_str(), result.is_error)).collect();
    assert_eq!(results, [("c1", true)], "the open call is answered once, and not repeated");
}

/// Asks for the tool that never ends, then for nothing more.
fn asking() -> harness::Builder {
    stuck([call("c1", "wait", r#"{"city":"Oslo"}"#), AssistantMessage::text("going on")])
}

#[track_caller]
fn check_goes_on(harness: &Harness) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut dropped = harness.prompt("go");
        assert!((&mut dropped).now_or_never().is_none(), "it waits for the tool");
        settled().await;
        drop(dropped);
        let report = harness.prompt("and now?").await.unwrap();
        assert_eq!(report.answer(), "going on");
        check_results(&report);
    });
}

#[test]
fn a_crash_leaves_a_session_that_goes_on() {
    let session = MemorySession::new();
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime().block_on(async {
        let harness =
            stuck([call("c1", "wait", r#"{"city":"Oslo"}"#)]).session(session.clone()).build().unwrap();
        let mut prompt = harness.prompt("go");
        assert!((&mut prompt).now_or_never().is_none(), "it waits for the tool");
        settled().await;
    });
    let harness = stuck([AssistantMessage::text("going on")]).session(session).build().unwrap();
    let report = runtime().block_on(async { harness.prompt("and now?").await.unwrap() });
    assert_eq!(report.answer(), "going on");
    check_results(&report);
}

#[test]
fn a_dropped_prompt_leaves_a_thread_that_goes_on() {
    check_goes_on(&asking().build().unwrap());
}

#[test]
fn a_dropped_prompt_leaves_a_session_that_goes_on() {
    check_goes_on(&asking().session(MemorySession::new()).build().unwrap());
}

#[tokio::test]
async fn a_cancelled_prompt_is_data() {
    let harness = asking().build().unwrap();
    let cancel = Cancel::new();
    cancel.cancel();
    let report = harness.prompt(Prompt::from("go").cancel_with(cancel)).await.unwrap();
    assert_eq!(report.reason(), StopReason::Cancelled);
}

#[tokio::test]
async fn subscribers_see_the_run_and_end_with_the_harness() {
    let mut builder = Harness::new(Script::new([AssistantMessage::text("hi")]));
    let mut seen = builder.subscribe(100);
    let harness = builder.build().unwrap();
    harness.prompt("hello").await.unwrap();
    drop(harness);
    let mut names = Vec::new();
    while let Some(seen) = seen.next().await {
        if let Seen::Event(event) = seen {
            names.push(event.kind.name());
        }
    }
    assert_eq!((names.first(), names.last()), (Some(&"run_started"), Some(&"run_finished")));
}
