use std::sync::Arc;

use harness_core::machine::Origin;
use harness_core::message::{AssistantMessage, ToolCall, ToolResultMessage, Usage};
use harness_core::port::ViewCx;
use harness_core::transcript::{Plan, Transcript, View};
use harness_core::{Json, Time};

use super::*;
use crate::compact::group::pin;
use crate::compact::summarize::SummaryFault;

/// Numbers its summaries and notes what each was asked about: new messages, and all.
#[derive(Clone, Default)]
struct Numbered {
    asked: Arc<Mutex<Vec<(usize, usize)>>>,
    failing: bool,
}

impl Summarizer for Numbered {
    async fn summarize(&self, ask: SummaryAsk) -> Result<Summary, SummaryFault> {
        let mut asked = self.asked.lock().unwrap();
        asked.push((ask.messages.len(), ask.covers));
        if self.failing {
            Err(SummaryFault::new("no"))
        } else {
            Ok(Summary::new(format!("S{}", asked.len())))
        }
    }
}

impl Numbered {
    fn compactor(&self) -> SummarizingCompactor {
        SummarizingCompactor::new(self.clone(), 100, SummarizingSettings::new(10, 20))
    }

    fn asked(&self) -> Vec<(usize, usize)> {
        self.asked.lock().unwrap().clone()
    }
}

/// `u40`: a user text of 40 tokens; `a`: an answer; `c`: a call; `r`: its result.
fn message(text: &str) -> Message {
    let (kind, tokens) = text.split_at(1);
    let text = "x".repeat(tokens.parse::<usize>().unwrap() * 4);
    let call = ToolCall::new("c", "x", Json::empty_object());
    match kind {
        "u" => Message::user(text),
        "a" => AssistantMessage::text(text).into(),
        "c" => AssistantMessage::calls([call]).into(),
        _ => ToolResultMessage::new(&call, vec![Block::text(text)], false).into(),
    }
}

fn log(texts: &str) -> Transcript {
    texts.split_whitespace().map(|text| Arc::new(message(text))).collect()
}

fn ask(log: &Transcript, plan: Option<Plan>) -> CompactAsk {
    let cx = ViewCx::new(log.prefix(), Arc::new(Origin::default()), Time(0));
    let view = match &plan {
        Some(plan) => View::planned(log.prefix(), plan.clone()),
        None => View::whole(log.prefix()),
    };
    CompactAsk::new(view, plan, cx)
}

fn shown(log: &Transcript, plan: &Plan) -> String {
    let tell = |item: &Shown| match item.at {
        Some(at) => at.to_string(),
        None => item.message.joined_text().lines().nth(2).unwrap_or_default().to_owned(),
    };
    shown_by(log, Some(plan)).iter().map(tell).collect::<Vec<_>>().join(" ")
}

async fn view(compactor: &SummarizingCompactor, log: &Transcript) -> String {
    let compaction = compactor.compact(ask(log, None)).await.unwrap();
    if let Some(plan) = &compaction.plan {
        assert_eq!(plan.check(log), Ok(()));
    }
    compaction.plan.map_or("all".into(), |plan| shown(log, &plan))
}

#[tokio::test]
async fn one_prompt_with_many_tool_turns_is_cut_at_an_answer() {
    let log = log("u10 c0 r30 c0 r30 c0 r30");
    assert_eq!(view(&Numbered::default().compactor(), &log).await, "S1 5 6");
}

#[tokio::test]
async fn a_shortened_view_stays_shortened_though_its_request_was_small() {
    let (numbered, mut log) = (Numbered::default(), log("u50 a50 u20"));
    let compactor = numbered.compactor();
    assert_eq!(view(&compactor, &log).await, "S1");
    let answer = AssistantMessage::text("ok").with_usage(Usage::tokens(30, 1));
    log.push(Arc::new(answer.into()));
    log.push(Arc::new(message("u1")));
    assert_eq!(view(&compactor, &log).await, "S1 3 4");
    assert_eq!(numbered.asked(), [(2, 2)]);
}

#[tokio::test]
async fn usage_from_before_a_compaction_triggers_no_second_one() {
    let numbered = Numbered::default();
    let compactor = numbered.compactor();
    let answer = AssistantMessage::text("x".repeat(20)).with_usage(Usage::tokens(95, 1));
    let mut log: Transcript = [message("u2"), message("a2"), message("u15"), answer.into(), message("u1")]
        .map(Arc::new)
        .into_iter()
        .collect();
    assert_eq!(view(&compactor, &log).await, "S1 3 4");
    log.push(Arc::new(message("a1")));
    assert_eq!(view(&compactor, &log).await, "S1 3 4 5", "the answer that is kept was asked with more");
    assert_eq!(numbered.asked(), [(2, 2)]);
}

/// Whoever compacts, in the same process or another: the transcript after it is what the plan shows.
async fn check_behind_a_compaction(metadata: Option<&str>, expected: [&str; 2]) {
    let made_by = Numbered::default();
    let mut first = UserMessage::text("x".repeat(80));
    first.metadata = metadata.map(|text| Json::parse(text).unwrap());
    let answer = AssistantMessage::text("x".repeat(20)).with_usage(Usage::tokens(95, 1));
    let all = [message("u2"), message("a2"), first.into(), answer.into()].map(Arc::new);
    let before: Transcript = all.into_iter().collect();
    let plan = made_by.compactor().compact(ask(&before, None)).await.unwrap().plan.unwrap();
    let stored: Vec<Message> =
        shown_by(&before, Some(&plan)).iter().map(|item| (*item.message).clone()).collect();
    let loaded = serde_json::from_str::<Vec<Message>>(&serde_json::to_string(&stored).unwrap()).unwrap();
    let mut after: Transcript = loaded.into_iter().map(Arc::new).collect();
    after.push(Arc::new(message("u1")));
    let other = Numbered::default();
    assert_eq!(view(&other.compactor(), &after).await, expected[0], "the usage that was kept is older");
    let answer = AssistantMessage::text("ok").with_usage(Usage::tokens(95, 1));
    after.push(Arc::new(answer.into()));
    after.push(Arc::new(message("u20")));
    assert_eq!(view(&other.compactor(), &after).await, expected[1], "new usage counts");
}

#[tokio::test]
async fn usage_from_before_a_permanent_compaction_counts_for_nobody() {
    check_behind_a_compaction(None, ["all", "S1"]).await;
    check_behind_a_compaction(Some(r#"{"mine":1.10}"#), ["all", "S1"]).await;
    check_behind_a_compaction(Some("[1]"), ["all", "S1"]).await;
}

#[tokio::test]
async fn a_twin_that_looks_ahead_teaches_nothing() {
    let numbered = Numbered::default();
    let (compactor, log) = (numbered.compactor(), log("u50 a50 u20"));
    for _ in 0..2 {
        let twin = Compactor::ahead(&compactor).unwrap();
        let plan = twin.compact_boxed(ask(&log, None)).await.unwrap().plan.unwrap();
        assert!(shown(&log, &plan).starts_with('S'));
    }
    assert_eq!(numbered.asked(), [(2, 2), (2, 2)], "each twin made its own summary");
    assert_eq!(view(&compactor, &log).await, "S3");
}

#[tokio::test]
async fn whoever_asks_may_be_held_to_the_trigger() {
    let numbered = Numbered::default();
    let settings = SummarizingSettings::new(10, 5).when_asked(WhenAsked::AboveTrigger);
    let compactor = SummarizingCompactor::new(numbered.clone(), 100, settings);
    for (texts, expected) in [("u10 a10 u10 a10", false), ("u50 a40 u10 a10", true)] {
        let log = log(texts);
        let requested = CompactReason::Requested { instructions: None };
        let compaction = compactor.compact(ask(&log, None).because(requested)).await.unwrap();
        assert_eq!(compaction.plan.is_some(), expected, "{texts}");
    }
}

#[tokio::test]
async fn an_earlier_summary_is_updated_with_the_new_part() {
    let (numbered, mut log) = (Numbered::default(), log("u50 a50 u20"));
    let compactor = numbered.compactor();
    view(&compactor, &log).await;
    for text in ["a50", "u20"] {
        log.push(Arc::new(message(text)));
    }
    assert_eq!(view(&compactor, &log).await, "S2");
    assert_eq!(numbered.asked(), [(2, 2), (2, 4)]);
}

#[tokio::test]
async fn a_transcript_that_was_loaded_anew_keeps_its_view() {
    let numbered = Numbered::default();
    let compactor = numbered.compactor();
    assert_eq!(view(&compactor, &log("u50 a50 u20")).await, "S1");
    assert_eq!(view(&compactor, &log("u50 a50 u20 a1")).await, "S1 3");
    assert_eq!(view(&compactor, &log("u1 a50 u20 a1")).await, "all", "another one does not");
    assert_eq!(numbered.asked(), [(2, 2)]);
}

#[tokio::test]
async fn a_plan_of_another_process_is_gone_on_from() {
    let log = log("u50 a50 u20 a50 u40");
    let made = Numbered::default().compactor().compact(ask(&log, None)).await.unwrap();
    let other = Numbered::default();
    let compaction = other.compactor().compact(ask(&log, made.plan)).await.unwrap();
    assert_eq!(compaction.plan, None, "it is short enough");
}

#[tokio::test]
async fn pinned_messages_and_pending_calls_stay() {
    let mut rule = UserMessage::text("x".repeat(40));
    rule.content.push(pin());
    let mut log = Transcript::default();
    for message in [message("u40"), rule.into(), message("a40"), message("u20")] {
        log.push(Arc::new(message));
    }
    assert_eq!(view(&Numbered::default().compactor(), &log).await, "1 S1");
}

#[tokio::test]
async fn a_failing_summarizer_leaves_the_view_and_is_left_alone_in_the_end() {
    let failing = Numbered { failing: true, ..Numbered::default() };
    let (compactor, log) = (failing.compactor(), log("u50 a50 u20"));
    let mut failed = String::new();
    for _ in 0..9 {
        let compaction = compactor.compact(ask(&log, None)).await.unwrap();
        assert_eq!((compaction.plan, compaction.note), (None, None));
        failed.push(if compaction.failed.is_empty() { '-' } else { 'x' });
    }
    assert_eq!(failed, "xxx-----x");
}

#[tokio::test]
async fn cancelling_ends_a_summary() {
    struct Hanging;
    impl Summarizer for Hanging {
        async fn summarize(&self, _: SummaryAsk) -> Result<Summary, SummaryFault> {
            std::future::pending().await
        }
    }
    let compactor = SummarizingCompactor::new(Hanging, 100, SummarizingSettings::new(10, 20));
    let ask = ask(&log("u50 a50 u20"), None);
    ask.cx.cancel.cancel();
    let compaction = compactor.compact(ask).await.unwrap();
    assert_eq!((compaction.plan, compaction.failed.len()), (None, 1));
}

#[tokio::test]
async fn whoever_asks_gets_a_short_view_below_the_trigger() {
    let (numbered, log) = (Numbered::default(), log("u10 a10 u10 a10"));
    let requested = CompactReason::Requested { instructions: Some("colours".into()) };
    let compaction = numbered.compactor().compact(ask(&log, None).because(requested)).await.unwrap();
    assert_eq!(shown(&log, &compaction.plan.unwrap()), "S1 3");
    let note = compaction.note.unwrap();
    assert_eq!((note.first_kept, note.summary.as_deref(), note.plan_version), (2, Some("S1"), 1));
}

#[tokio::test]
async fn a_refused_request_that_cannot_be_shortened_is_not_sent_again() {
    let log = log("u500");
    let asked = ask(&log, None).because(CompactReason::Overflow);
    let compaction = Numbered::default().compactor().compact(asked).await.unwrap();
    assert_eq!(compaction.overflow, Some(Overflow { tokens: 500, ceiling: 100 }));
}
