//! What each policy makes of a transcript.

use std::sync::Arc;

use harness_core::message::{AssistantMessage, Block, Message, ToolCall, ToolResultMessage};
use harness_core::port::{CompactReason, Compaction};
use harness_core::transcript::Transcript;
use harness_core::{Json, Origin};
use harness_host::testing::ArtifactShelf;
use harness_memory::compact::{
    CompactionPolicy, ContextCompactor, HardStop, Rehydration, Rung, TARGET_MISSED, Target, Trigger,
};

use super::requests::{Numbered, ask, check_told, compact, grow, log, policy, shown};

/// The view of a new compactor with this policy.
async fn view(policy: CompactionPolicy, words: &str) -> String {
    let log = log(words);
    let compaction = compact(&ContextCompactor::new(policy), ask(&log, None)).await;
    shown(&log, compaction.plan.as_ref())
}

/// A message has 4 tokens beside what it says, a call 9 more.
#[tokio::test]
async fn truncation_takes_the_oldest_groups_once_there_is_too_much() {
    let truncate = CompactionPolicy::truncate(100, 60);
    assert_eq!(view(truncate.clone(), "u50 a42").await, "all", "100 tokens are not too many");
    assert_eq!(view(truncate.clone(), "u51 a42").await, "1..");
    assert_eq!(view(truncate.clone(), "u10 read30 a20 u16 a16").await, "4..");
    let mut messages = CompactionPolicy::truncate(0, 0);
    (messages.trigger, messages.target) = (Trigger::Messages(3), Target::Messages(2));
    assert_eq!(view(messages.clone(), "u1 a1 u1").await, "all");
    assert_eq!(view(messages.clone(), "u1 a1 u1 a1").await, "2..");
    messages.keep_first_prompt = true;
    assert_eq!(view(messages, "u1 a1 u1 a1").await, "0..1 3..");
}

#[tokio::test]
async fn the_newest_group_stays_though_it_alone_is_too_much() {
    let log = log("u1 read500");
    let compaction =
        compact(&ContextCompactor::new(CompactionPolicy::truncate(100, 60)), ask(&log, None)).await;
    assert_eq!(shown(&log, compaction.plan.as_ref()), "1..");
    check_told(&compaction, &[("truncate", 1)], &[TARGET_MISSED]);
}

#[tokio::test]
async fn a_sliding_window_keeps_the_newest_groups() {
    assert_eq!(view(CompactionPolicy::sliding_window(2), "u1 read1 a1 read1 u1").await, "4..");
    assert_eq!(view(CompactionPolicy::sliding_window(9), "u1 read1 a1 read1 u1").await, "all");
}

#[tokio::test]
async fn old_calls_go_or_become_one_line() {
    let words = "u1 read50 a1 web50 read50 u1";
    assert_eq!(view(CompactionPolicy::selective(1), words).await, "0..1 3..4 6..");
    assert_eq!(view(CompactionPolicy::selective(0), words).await, "0..1 3..4 8..");
    let collapsed = view(CompactionPolicy::tool_results(1), words).await;
    assert!(collapsed.starts_with("0..1 ([Tool results: read_file: xxx"), "{collapsed}");
    assert!(collapsed.ends_with(") 3.."), "what cannot be had again stays: {collapsed}");
}

#[tokio::test]
async fn a_result_without_a_name_is_that_of_its_call() {
    let mut log = log("u1");
    let call = ToolCall::new("c1", "read_file", Json::empty_object());
    let mut result = ToolResultMessage::new(&call, vec![Block::text("data ".repeat(40))], false);
    result.tool_name = "".into();
    log.push(Arc::new(AssistantMessage::calls([call]).into()));
    log.push(Arc::new(result.into()));
    grow(&mut log, "u1");
    let mut clear = CompactionPolicy::tool_results(0);
    (clear.ladder, clear.clear_from) = (vec![Rung::Clear], 10);
    for (policy, expected) in [
        (CompactionPolicy::tool_results(0), "[Tool results: read_file: data"),
        (clear, "[read_file: success]"),
    ] {
        let compaction = compact(&ContextCompactor::new(policy), ask(&log, None)).await;
        let view = shown(&log, compaction.plan.as_ref());
        assert!(view.contains(expected), "{view}");
    }
}

#[tokio::test]
async fn a_policy_of_every_request_changes_nothing_twice() {
    let mut log = log("u1 read50 a1 read50 u1");
    let compactor = ContextCompactor::new(CompactionPolicy::selective(1));
    let first = compact(&compactor, ask(&log, None)).await;
    assert_eq!(compact(&compactor, ask(&log, first.plan.clone())).await, Compaction::unchanged());
    grow(&mut log, "read50");
    let next = compact(&compactor, ask(&log, first.plan)).await;
    assert_eq!(shown(&log, next.plan.as_ref()), "0..1 3..4 6..");
}

#[tokio::test]
async fn a_request_for_a_shorter_view_goes_to_the_target_of_the_policy() {
    for (policy, expected) in
        [(CompactionPolicy::truncate(1_000, 60), "1.."), (CompactionPolicy::sliding_window(2), "1..")]
    {
        let log = log("u30 a30 a20");
        let asked = ask(&log, None).because(CompactReason::Requested { instructions: None });
        let compaction = compact(&ContextCompactor::new(policy), asked).await;
        assert_eq!(shown(&log, compaction.plan.as_ref()), expected);
    }
}

/// Two policies one after another: calls collapse from one size on, and groups only go above a greater one.
#[tokio::test]
async fn fault_40_context_window_keeps_history_until_four_fifths() {
    async fn windowed(words: &str) -> String {
        let mut collapse = CompactionPolicy::tool_results(1);
        (collapse.window, collapse.trigger) = (1_000, Trigger::Share(500));
        let log = log(words);
        let first = compact(&ContextCompactor::new(collapse), ask(&log, None)).await;
        let truncate = ContextCompactor::new(CompactionPolicy::truncate(800, 500));
        let second = compact(&truncate, ask(&log, first.plan.clone())).await;
        shown(&log, second.plan.or(first.plan).as_ref())
    }
    assert_eq!(windowed("u300 a100").await, "all");
    assert_eq!(windowed("u300 a300 u180").await, "all");
    let collapsed = windowed("u10 read300 read300 u100").await;
    assert!(collapsed.starts_with("0..1 ([Tool results") && collapsed.ends_with(") 3.."), "{collapsed}");
    assert_eq!(windowed("u300 a300 u300 a100").await, "2..");
}

#[tokio::test]
async fn a_compaction_makes_so_many_changes_and_the_next_goes_on() {
    let log = log("u10 read190 read190 read190 read190 a10");
    let mut bounded = policy(&[Rung::Clear]);
    (bounded.target, bounded.max_changes) = (Target::Tokens(100), Some(1));
    let compactor = ContextCompactor::new(bounded.clone());
    let first = compact(&compactor, ask(&log, None)).await;
    check_told(&first, &[("clear", 1)], &[TARGET_MISSED]);
    bounded.hard_stop = HardStop::Share(800);
    let urgent = compact(&ContextCompactor::new(bounded), ask(&log, None)).await;
    check_told(&urgent, &[("clear", 3)], &[TARGET_MISSED]);
}

#[tokio::test]
async fn nothing_is_taken_away_in_a_turn_in_which_stored_contents_are_shown() {
    let store = Arc::new(ArtifactShelf::default());
    let mut meta = harness_host::ArtifactMeta::default();
    "text/plain".clone_into(&mut meta.media_type);
    let name = harness_host::ArtifactStore::put(&*store, b"stored", meta).await.unwrap();
    let compactor = ContextCompactor::new(policy(&[Rung::Clear, Rung::Summarize]))
        .with_summarizer(Numbered::default())
        .with_artifacts(store)
        .with_rehydration(Rehydration::default());
    let in_turn = |log: &Transcript, turn: &str| {
        let mut ask = ask(log, None);
        let mut origin = Origin::default();
        origin.turn = Some(turn.into());
        ask.cx.origin = Arc::new(origin);
        ask
    };
    let mut log = log(&"a10 ".repeat(12));
    log.push(Arc::new(Message::user(format!("What does {name} say?"))));
    assert!(compact(&compactor, in_turn(&log, "one")).await.plan.is_some(), "it is shown");
    grow(&mut log, "a600");
    grow(&mut log, "a100");
    check_told(&compact(&compactor, in_turn(&log, "one")).await, &[], &[]);
    check_told(&compact(&compactor, in_turn(&log, "two")).await, &[("summarize", 13)], &[]);
}
