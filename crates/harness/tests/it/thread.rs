//! What a harness remembers from one prompt to the next.

use std::future::IntoFuture as _;

use futures_util::FutureExt as _;
use harness::core::StopReason;
use harness::core::event::Seen;
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

/// Asks for a tool that never ends, then for nothing more.
fn stuck() -> harness::Builder {
    let wait = tool_fn("wait", "Never ends", |asked: City, _| async move {
        std::future::pending::<()>().await;
        Ok::<_, std::io::Error>(asked.city)
    });
    let model = Script::new([call("c1", "wait", r#"{"city":"Oslo"}"#), AssistantMessage::text("going on")]);
    Harness::new(model).tool(wait)
}

#[track_caller]
fn check_goes_on(harness: &Harness) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        assert!(harness.prompt("go").into_future().now_or_never().is_none(), "it waits for the tool");
        let report = harness.prompt("and now?").await.unwrap();
        assert_eq!(report.answer(), "going on");
        let results = report.transcript.iter().filter_map(|message| message.as_tool_result());
        let results: Vec<(&str, bool)> =
            results.map(|result| (result.tool_call_id.as_str(), result.is_error)).collect();
        assert_eq!(results, [("c1", true)], "the open call is answered once, and not repeated");
    });
}

#[test]
fn a_dropped_prompt_leaves_a_thread_that_goes_on() {
    check_goes_on(&stuck().build().unwrap());
}

#[test]
fn a_dropped_prompt_leaves_a_session_that_goes_on() {
    check_goes_on(&stuck().session(MemorySession::new()).build().unwrap());
}

#[tokio::test]
async fn a_cancelled_prompt_is_data() {
    let harness = stuck().build().unwrap();
    let cancel = Cancel::new();
    cancel.cancel();
    let report = harness.prompt("go").cancel_with(cancel).await.unwrap();
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
