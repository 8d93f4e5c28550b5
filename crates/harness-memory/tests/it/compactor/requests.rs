//! Requests of one thread: what is done when, and what is shown then.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use harness_core::message::{AssistantMessage, Block, Message, ToolCall, ToolResultMessage, Usage};
use harness_core::port::{
    CompactAsk, CompactReason, Compaction, CompactionLevel, Compactor, Measured, Overflow, PreparedAgent,
    ViewCx,
};
use harness_core::tool::ToolDef;
use harness_core::transcript::{Plan, Span, Transcript, View};
use harness_core::{Json, Origin, Time};
use harness_host::testing::ArtifactShelf;
use parking_lot::Mutex;

use harness_memory::compact::{
    CompactionPolicy, ContextCompactor, Recency, Rehydration, Rung, Summarizer, Summary, SummaryAsk,
    SummaryFault, Target, Trigger,
};

/// Numbers its summaries; notes new messages, all messages, and instructions of each.
#[derive(Clone, Default)]
pub(super) struct Numbered {
    asked: Arc<Mutex<Vec<String>>>,
    fails: bool,
    /// Characters of each summary beyond its name.
    length: usize,
}

impl Summarizer for Numbered {
    async fn summarize(&self, ask: SummaryAsk) -> Result<Summary, SummaryFault> {
        let mut asked = self.asked.lock();
        let previous = ask.previous.map(|summary| format!(" after {}", summary.text)).unwrap_or_default();
        let heeding = ask.instructions.map(|text| format!(" heeding {text}")).unwrap_or_default();
        asked.push(format!("{} of {}{previous}{heeding}", ask.messages.len(), ask.covers));
        if self.fails {
            return Err(SummaryFault::new("no"));
        }
        Ok(Summary::new(format!("S{}{}", asked.len(), ".".repeat(self.length))))
    }
}

impl Numbered {
    fn asked(&self) -> Vec<String> {
        self.asked.lock().clone()
    }
}

/// A transcript in words: `u40` is a user text of 40 tokens, `a40` an answer, `read40` a call of `read_file`
/// with a result of 40 tokens, `web40` one of `web_search`, `open` a call that waits for its result.
pub(super) fn log(words: &str) -> Transcript {
    let mut log = Transcript::default();
    words.split_whitespace().for_each(|word| grow(&mut log, word));
    log
}

pub(super) static CALLS: AtomicU32 = AtomicU32::new(0);

pub(super) fn grow(log: &mut Transcript, word: &str) {
    let (kind, tokens) = word.split_at(word.find(|c: char| c.is_ascii_digit()).unwrap_or(word.len()));
    let text = "x".repeat(tokens.parse::<usize>().unwrap_or(0) * 4);
    let call = |name: &str| {
        let id = format!("c{}", CALLS.fetch_add(1, Ordering::Relaxed));
        ToolCall::new(id, name, Json::empty_object())
    };
    let mut push = |message: Message| log.push(Arc::new(message));
    match kind {
        "u" => push(Message::user(text)),
        "a" => push(AssistantMessage::text(text).into()),
        "open" => push(AssistantMessage::calls([call("read_file")]).into()),
        "read" | "web" => {
            let call = call(if kind == "read" { "read_file" } else { "web_search" });
            push(AssistantMessage::calls([call.clone()]).into());
            push(ToolResultMessage::new(&call, vec![Block::text(text)], false).into());
        }
        other => panic!("no word begins with {other}"),
    }
}

pub(super) fn ask(log: &Transcript, plan: Option<Plan>) -> CompactAsk {
    let cx = ViewCx::new(log.prefix(), Arc::new(Origin::default()), Time(0));
    let view = match &plan {
        Some(plan) => View::planned(log.prefix(), plan.clone()),
        None => View::whole(log.prefix()),
    };
    CompactAsk::new(view, plan, cx)
}

/// A window of 1,000: trigger 800, target 700, ceiling 950; the newest 100 tokens are kept.
pub(super) fn policy(rungs: &[Rung]) -> CompactionPolicy {
    let mut policy = CompactionPolicy::ladder(1_000);
    policy.recency = Recency::new(0, 100);
    policy.ladder = rungs.to_vec();
    policy.clear_from = 20;
    policy.min_gain = Some(1);
    policy
}

/// What a view shows: positions, and what stands for the rest.
pub(super) fn shown(log: &Transcript, plan: Option<&Plan>) -> String {
    let Some(plan) = plan else { return "all".to_owned() };
    assert_eq!(plan.check(log), Ok(()), "law 6");
    let mut words = Vec::new();
    for span in plan.spans.iter() {
        match span {
            Span::Kept(range) if range.end == usize::MAX => words.push(format!("{}..", range.start)),
            Span::Kept(range) => words.push(format!("{}..{}", range.start, range.end)),
            Span::Made(made) => words.extend(made.iter().map(|message| {
                let text = message.joined_text();
                let text = text.lines().last().unwrap_or_default();
                format!("({})", if text.is_empty() { message.role() } else { text })
            })),
        }
    }
    words.join(" ")
}

pub(super) async fn compact(compactor: &ContextCompactor, ask: CompactAsk) -> Compaction {
    compactor.compact(ask).await.unwrap()
}

#[track_caller]
pub(super) fn check_told(compaction: &Compaction, actions: &[(&str, u32)], failed: &[&str]) {
    let note = compaction.note.as_ref();
    let done: Vec<_> = note.iter().flat_map(|note| &note.actions).map(|(a, n)| (a.as_str(), *n)).collect();
    let codes: Vec<&str> = compaction.failed.iter().map(|fault| &*fault.code).collect();
    assert_eq!((&done[..], &codes[..]), (actions, failed));
}

#[tokio::test]
async fn a_short_view_stays_as_it_is() {
    let compaction =
        compact(&ContextCompactor::new(policy(&[Rung::Clear])), ask(&log("u10 read700"), None)).await;
    assert_eq!(compaction, Compaction::unchanged());
}

#[tokio::test]
async fn a_result_that_its_tool_declares_irreplaceable_is_not_cleared() {
    let log = log("u10 read190 read190 read190 read190 a10");
    let mut tool = ToolDef::new("read_file", "");
    tool.metadata = Some(Json::parse(r#"{"compaction":{"durability":"non_replayable"}}"#).unwrap());
    let mut ask = ask(&log, None);
    ask.cx.prepared = Some(Arc::new(PreparedAgent::new("clerk", "", vec![tool])));
    let compaction = compact(&ContextCompactor::new(policy(&[Rung::Clear])), ask).await;
    check_told(&compaction, &[], &[]);
    assert_eq!(shown(&log, compaction.plan.as_ref()), "all");
}

#[tokio::test]
async fn old_results_are_cleared_until_the_target_is_met() {
    let log = log("u10 read190 read190 read190 read190 a10");
    let compaction = compact(&ContextCompactor::new(policy(&[Rung::Clear])), ask(&log, None)).await;
    check_told(&compaction, &[("clear", 1)], &[]);
    assert_eq!(shown(&log, compaction.plan.as_ref()), "0..1 (assistant) ([read_file: success]) 3..");
    let note = compaction.note.unwrap();
    assert!(note.tokens_after <= 700 && note.tokens_before - note.tokens_after > 180);
    assert_eq!((note.first_kept, note.plan_version, note.level), (3, 1, CompactionLevel::Optimized));
}

#[tokio::test]
async fn a_compaction_is_made_once_and_lasts() {
    let mut log = log("u10 read190 read190 read190 read190 a10");
    let compactor = ContextCompactor::new(policy(&[Rung::Clear]));
    let first = compact(&compactor, ask(&log, None)).await;
    let again = compact(&compactor, ask(&log, None)).await;
    assert_eq!((&again.plan, again.note), (&first.plan, None), "a host that forgets it is told it again");
    let again = compact(&compactor, ask(&log, first.plan.clone())).await;
    assert_eq!(again, Compaction::unchanged());
    grow(&mut log, "a20");
    let later = compact(&compactor, ask(&log, first.plan.clone())).await;
    assert_eq!(later, Compaction::unchanged(), "the prefix is the same");
}

#[tokio::test]
async fn usage_of_before_a_compaction_triggers_no_second_one() {
    let log = log("u10 read190 read190 read190 read190 a10");
    let compactor = ContextCompactor::new(policy(&[Rung::Clear]));
    let measured = Measured { messages: 9, plan: None, usage: Usage::tokens(830, 10) };
    let first = compact(&compactor, ask(&log, None).with_measured(Some(measured.clone()))).await;
    assert!(first.note.is_some());
    let again = compact(&compactor, ask(&log, first.plan).with_measured(Some(measured))).await;
    assert_eq!((again.note, again.failed), (None, vec![]));
}

#[tokio::test]
async fn an_answer_counts_as_the_provider_counts() {
    let log = log("u10 read200 read200 a10");
    let measured = Measured { messages: 5, plan: None, usage: Usage::tokens(900, 10) };
    let asked = ask(&log, None).with_measured(Some(measured));
    let compaction = compact(&ContextCompactor::new(policy(&[Rung::Clear])), asked).await;
    let note = compaction.note.unwrap();
    assert!(note.tokens_before > 900 && note.tokens_after <= 700, "{note:?}");
}

#[tokio::test]
async fn what_is_old_is_summarized_and_the_summary_updated() {
    let summarizer = Numbered::default();
    let compactor = ContextCompactor::new(policy(&[Rung::Summarize])).with_summarizer(summarizer.clone());
    let mut log = log("u10 a300 u10 a300 u10 a100 a100");
    let first = compact(&compactor, ask(&log, None)).await;
    assert_eq!(shown(&log, first.plan.as_ref()), "0..1 (S1) 6..");
    check_told(&first, &[("summarize", 5)], &[]);
    for word in ["u10", "a300", "u10", "a300", "a100"] {
        grow(&mut log, word);
    }
    let second = compact(&compactor, ask(&log, first.plan)).await;
    assert_eq!(shown(&log, second.plan.as_ref()), "0..1 (S2) 11..");
    assert_eq!(summarizer.asked(), ["5 of 5", "5 of 10 after S1"]);
    let note = second.note.unwrap();
    assert_eq!((note.summary.as_deref(), note.plan_version, note.first_kept), (Some("S2"), 2, 11));
}

#[tokio::test]
async fn one_prompt_with_many_tool_turns_is_summarized_at_a_group_border() {
    let compactor = ContextCompactor::new(policy(&[Rung::Summarize])).with_summarizer(Numbered::default());
    let log = log("u10 web200 web200 web200 web200 web50");
    let compaction = compact(&compactor, ask(&log, None)).await;
    assert_eq!(shown(&log, compaction.plan.as_ref()), "0..1 (S1) 7..");
}

#[tokio::test]
async fn a_plan_of_an_earlier_process_is_gone_on_from() {
    let old = ContextCompactor::new(policy(&[Rung::Summarize])).with_summarizer(Numbered::default());
    let mut log = log("u10 a300 u10 a300 u10 a100 a100");
    let plan = compact(&old, ask(&log, None)).await.plan.unwrap();
    let plan: Plan = serde_json::from_str(&serde_json::to_string(&plan).unwrap()).unwrap();

    let summarizer = Numbered::default();
    let new = ContextCompactor::new(policy(&[Rung::Summarize])).with_summarizer(summarizer.clone());
    assert_eq!(compact(&new, ask(&log, Some(plan.clone()))).await, Compaction::unchanged());
    for word in ["u10", "a300", "u10", "a300", "a100"] {
        grow(&mut log, word);
    }
    let next = compact(&new, ask(&log, Some(plan))).await;
    assert_eq!(summarizer.asked(), ["5 of 10 after S1"]);
    assert_eq!(shown(&log, next.plan.as_ref()), "0..1 (S1) 11..");
}

#[tokio::test]
async fn views_of_layers_are_shortened_the_same_way() {
    let log = log("u10 read190 read190 read190 read190 a10");
    let compactor = ContextCompactor::new(policy(&[Rung::Clear]));
    let layered = |text: &str| {
        let made: Arc<[_]> = Arc::from([Arc::new(Message::user(text))]);
        Some(Plan { spans: Arc::from([Span::Made(made), Span::Kept(0..usize::MAX)]) })
    };
    let first = compact(&compactor, ask(&log, layered("noon"))).await;
    assert_eq!(shown(&log, first.plan.as_ref()), "(noon) 0..1 (assistant) ([read_file: success]) 3..");
    let second = compact(&compactor, ask(&log, layered("one"))).await;
    assert_eq!(shown(&log, second.plan.as_ref()), "(one) 0..1 (assistant) ([read_file: success]) 3..");
    assert_eq!(second.note, None);
}

#[tokio::test]
async fn a_summary_that_stands_among_what_layers_made_is_updated() {
    let summarizer = Numbered::default();
    let compactor = ContextCompactor::new(policy(&[Rung::Summarize])).with_summarizer(summarizer.clone());
    let mut log = log("u10 a300 u10 a300 u10 a100 a100");
    let layered = Plan {
        spans: Arc::from([
            Span::Made(Arc::from([Arc::new(Message::user("noon"))])),
            Span::Kept(0..usize::MAX),
        ]),
    };
    let first = compact(&compactor, ask(&log, Some(layered.clone()))).await;
    let in_force = first.plan.unwrap().without_made_of(&layered);
    assert_eq!(shown(&log, Some(&in_force)), "0..1 (S1) 6..");
    for word in ["u10", "a300", "u10", "a300", "a100"] {
        grow(&mut log, word);
    }
    let second = compact(&compactor, ask(&log, Some(layered.under(&in_force)))).await;
    assert_eq!(summarizer.asked(), ["5 of 5", "5 of 10 after S1"]);
    assert_eq!(shown(&log, second.plan.as_ref()), "(noon) 0..1 (S2) 11..");
    assert_eq!(summarizer.asked(), ["5 of 5", "5 of 10 after S1"]);
}

#[tokio::test]
async fn pressure_is_told_once_per_crossing() {
    let compactor = ContextCompactor::new(policy(&[]));
    let mut log = log("u10 a800");
    let mut told = Vec::new();
    for word in ["a1", "a1", "a1"] {
        told.push(compact(&compactor, ask(&log, None)).await.pressure.is_some());
        grow(&mut log, word);
    }
    assert_eq!(told, [true, false, false]);
}

#[tokio::test]
async fn rungs_follow_one_another() {
    let all = policy(&[Rung::Clear, Rung::Collapse, Rung::Summarize, Rung::Drop]);
    let log = log("u300 read100 read100 read100 read100 a150 a100");
    let compaction = compact(&ContextCompactor::new(all), ask(&log, None)).await;
    check_told(&compaction, &[("clear", 4)], &[]);

    let mut tight = policy(&[Rung::Clear, Rung::Collapse, Rung::Drop]);
    tight.target = Target::Slack(460);
    let log = self::log("u200 read100 read100 read100 read100 read100 a100");
    let compaction = compact(&ContextCompactor::new(tight), ask(&log, None)).await;
    check_told(&compaction, &[("clear", 5), ("collapse", 5), ("drop", 4)], &[]);
    assert_eq!(
        shown(&log, compaction.plan.as_ref()),
        "0..1 ([Tool results: read_file: [read_file: success]]) 11.."
    );
}

#[tokio::test]
async fn a_failing_summarizer_is_told_of_and_the_next_rung_is_taken() {
    let failing = Numbered { fails: true, ..Numbered::default() };
    let rungs = policy(&[Rung::Summarize, Rung::Clear]);
    let compactor = ContextCompactor::new(rungs).with_summarizer(failing);
    let log = log("u10 read190 read190 read190 read190 a10");
    let compaction = compact(&compactor, ask(&log, None)).await;
    check_told(&compaction, &[("clear", 1)], &["compact_failed"]);
}

#[tokio::test]
async fn three_failures_leave_the_summarizer_alone_for_five_requests() {
    let failing = Numbered { fails: true, ..Numbered::default() };
    let compactor = ContextCompactor::new(policy(&[Rung::Summarize])).with_summarizer(failing.clone());
    let log = log("u10 a300 u10 a300 u10 a100 a100");
    for _ in 0..9 {
        assert_eq!(compact(&compactor, ask(&log, None)).await.plan, None);
    }
    assert_eq!(failing.asked().len(), 4);
}

#[tokio::test]
async fn a_summary_that_is_not_shorter_is_not_taken() {
    let wordy = Numbered { length: 4_000, ..Numbered::default() };
    let compactor = ContextCompactor::new(policy(&[Rung::Summarize])).with_summarizer(wordy);
    let log = log("u10 a300 u10 a300 u10 a100 a100");
    let compaction = compact(&compactor, ask(&log, None)).await;
    assert_eq!(compaction.plan, None);
    check_told(&compaction, &[], &["compact_failed"]);
}

#[tokio::test]
async fn what_cannot_be_got_again_is_stored_and_can_be_read() {
    let store = Arc::new(ArtifactShelf::default());
    let mut rungs = policy(&[Rung::Clear, Rung::Externalize]);
    rungs.excerpt = 20;
    let compactor = ContextCompactor::new(rungs).with_artifacts(Arc::<ArtifactShelf>::clone(&store));
    let log = log("u10 web600 read10 a100 a100");
    let compaction = compact(&compactor, ask(&log, None)).await;
    check_told(&compaction, &[("externalize", 1)], &[]);
    let Some(Span::Made(made)) = compaction.plan.as_ref().and_then(|plan| plan.spans.get(1)) else {
        panic!()
    };
    let text = made[1].joined_text();
    let id = text.split('"').nth(1).unwrap().into();
    assert!(text.contains("2400 bytes") && text.contains("[2380 characters left out]"), "{text}");
    let read = harness_host::ArtifactStore::read(&*store, &id, 0..9_999, None, Time(0)).await;
    assert_eq!(read.unwrap().unwrap().bytes.len(), 2_400);
}

#[tokio::test]
async fn what_is_said_is_not_stored_elsewhere() {
    let store = Arc::new(ArtifactShelf::default());
    let compactor = ContextCompactor::new(policy(&[Rung::Externalize])).with_artifacts(store);
    let log = log("u10 u2000 a2000 a100 a100");
    let compaction = compact(&compactor, ask(&log, None)).await;
    assert_eq!((compaction.plan, compaction.note), (None, None));
}

#[tokio::test]
async fn what_looks_like_a_placeholder_is_not_dropped() {
    let mut log = log("u10 read300");
    log.push(Arc::new(AssistantMessage::text("[Cleared: assistant message]").into()));
    for word in ["read300", "a300", "a100"] {
        grow(&mut log, word);
    }
    let compaction = compact(&ContextCompactor::new(policy(&[Rung::Drop])), ask(&log, None)).await;
    assert_eq!((compaction.plan, compaction.note), (None, None));
}

#[tokio::test]
async fn a_store_that_fails_loses_nothing() {
    let store = Arc::new(ArtifactShelf::bounded(10));
    let compactor = ContextCompactor::new(policy(&[Rung::Externalize])).with_artifacts(store);
    let log = log("u10 web600 a100 a100");
    let compaction = compact(&compactor, ask(&log, None)).await;
    assert_eq!(compaction.plan, None);
    check_told(&compaction, &[], &["storage.full"]);
}

#[tokio::test]
async fn what_is_pinned_or_pending_stays() {
    let mut rule = harness_core::message::UserMessage::text("x".repeat(400));
    rule.content.push(harness_memory::compact::group::pin());
    let mut log = log("u10 a300 open");
    log.push(Arc::new(rule.into()));
    for word in ["a300", "u10", "a100", "a100"] {
        grow(&mut log, word);
    }
    let compactor = ContextCompactor::new(policy(&[Rung::Summarize])).with_summarizer(Numbered::default());
    let compaction = compact(&compactor, ask(&log, None)).await;
    assert_eq!(shown(&log, compaction.plan.as_ref()), "0..1 (S1) 2..4 7..");
}

#[tokio::test]
async fn a_refused_request_becomes_half_a_window() {
    let log = log("u10 read100 read100 read100 read100 a10");
    let asked = ask(&log, None).because(CompactReason::Overflow);
    let compaction = compact(&ContextCompactor::new(policy(&[Rung::Clear])), asked).await;
    let note = compaction.note.unwrap();
    assert!(note.tokens_before > 1_000 && note.tokens_after <= 500, "{note:?}");
}

#[tokio::test]
async fn a_view_that_cannot_be_shortened_is_not_sent() {
    let log = log("u1000 a10");
    let compaction = compact(&ContextCompactor::new(policy(&[Rung::Clear])), ask(&log, None)).await;
    assert_eq!(compaction.overflow, Some(Overflow { tokens: 1_021, ceiling: 950 }));
    let asked = ask(&log, None).because(CompactReason::Overflow);
    let mut unknown = policy(&[Rung::Clear]);
    unknown.window = 0;
    let unknown = ContextCompactor::new(unknown);
    let compaction = compact(&unknown, asked).await;
    assert!(compaction.overflow.is_some(), "refused once, it would be refused again");
}

#[tokio::test]
async fn less_is_kept_before_nothing_is_sent() {
    let mut keeping = policy(&[Rung::Clear]);
    keeping.recency.messages = 100;
    let log = log("u10 read300 read300 read300 a10");
    let compaction = compact(&ContextCompactor::new(keeping), ask(&log, None)).await;
    assert!(compaction.overflow.is_none() && compaction.note.is_some());
}

#[tokio::test]
async fn a_summary_of_more_goes_on_from_the_one_that_was_made_first() {
    let summarizer = Numbered::default();
    let mut keeping = policy(&[Rung::Summarize]);
    keeping.recency.messages = 3;
    let compactor = ContextCompactor::new(keeping).with_summarizer(summarizer.clone());
    let log = log("u10 a300 a300 a500 a500 a10");
    let compaction = compact(&compactor, ask(&log, None)).await;
    assert_eq!(shown(&log, compaction.plan.as_ref()), "0..1 (S2) 4..");
    assert_eq!(summarizer.asked(), ["2 of 2", "1 of 3 after S1"]);
}

#[tokio::test]
async fn whoever_asks_gets_a_summary_below_the_trigger() {
    let summarizer = Numbered::default();
    let compactor =
        ContextCompactor::new(policy(&[Rung::Clear, Rung::Summarize])).with_summarizer(summarizer.clone());
    let log = log("u10 a100 u10 a100 u10 a10");
    let requested = CompactReason::Requested { instructions: Some("colours".into()) };
    let compaction = compact(&compactor, ask(&log, None).because(requested)).await;
    assert_eq!(shown(&log, compaction.plan.as_ref()), "0..1 (S1) 3..");
    assert_eq!(summarizer.asked(), ["2 of 2 heeding colours"]);
}

#[tokio::test]
async fn small_gains_are_not_worth_the_cache() {
    let mut careful = policy(&[Rung::Clear]);
    careful.min_gain = Some(200);
    let log = log("u500 read100 a250 a10");
    let compaction = compact(&ContextCompactor::new(careful.clone()), ask(&log, None)).await;
    assert_eq!(compaction.plan, None);
    let log = self::log("u600 read100 a250 a10");
    let compaction = compact(&ContextCompactor::new(careful), ask(&log, None)).await;
    check_told(&compaction, &[("clear", 1)], &["compact_target_missed"]);
}

#[tokio::test]
async fn a_view_that_cannot_get_much_shorter_is_left_alone() {
    let summarizer = Numbered { length: 400, ..Numbered::default() };
    let mut careful = policy(&[Rung::Summarize]);
    careful.min_gain = Some(100);
    careful.recency = Recency::new(0, 750);
    careful.window = 3_000;
    careful.trigger = Trigger::Share(300);
    let compactor = ContextCompactor::new(careful).with_summarizer(summarizer.clone());
    let mut log = log("u10 a300 a100 a750");
    let first = compact(&compactor, ask(&log, None)).await;
    check_told(&first, &[("summarize", 2)], &["compact_target_missed"]);
    let mut plan = first.plan;
    for _ in 0..3 {
        grow(&mut log, "u10");
        let next = compact(&compactor, ask(&log, plan.clone())).await;
        assert_eq!(next.note, None);
        plan = next.plan.or(plan);
    }
    assert_eq!(summarizer.asked().len(), 1);
}

#[tokio::test]
async fn another_transcript_of_the_same_thread_begins_anew() {
    let compactor = ContextCompactor::new(policy(&[Rung::Clear]));
    compact(&compactor, ask(&log("u10 read190 read190 read190 read190 a10"), None)).await;
    let other = compact(&compactor, ask(&log("u10 a10 u10 a10"), None)).await;
    assert_eq!(other, Compaction::unchanged());
}

#[tokio::test]
async fn a_cancelled_ask_changes_nothing() {
    let compactor = ContextCompactor::new(policy(&[Rung::Clear]));
    let asked = ask(&log("u10 read190 read190 read190 read190 a10"), None);
    asked.cx.cancel.cancel();
    assert_eq!(compact(&compactor, asked).await.plan, None);
}

#[tokio::test]
async fn a_twin_that_looks_ahead_teaches_nothing() {
    let summarizer = Numbered::default();
    let compactor = ContextCompactor::new(policy(&[Rung::Summarize])).with_summarizer(summarizer.clone());
    let log = log("u10 a300 u10 a300 u10 a100 a100");
    for name in ["(S1)", "(S2)"] {
        let twin = Compactor::ahead(&compactor).unwrap();
        let plan = twin.compact_boxed(ask(&log, None)).await.unwrap().plan;
        assert!(shown(&log, plan.as_ref()).contains(name), "each twin made its own summary");
    }
    let plan = compact(&compactor, ask(&log, None)).await.plan;
    assert_eq!(shown(&log, plan.as_ref()), "0..1 (S3) 6..");
}

#[tokio::test]
async fn cancelling_ends_a_summary() {
    struct Cancelling;
    impl Summarizer for Cancelling {
        async fn summarize(&self, ask: SummaryAsk) -> Result<Summary, SummaryFault> {
            ask.cx.cancel.cancel();
            std::future::pending().await
        }
    }
    let compactor = ContextCompactor::new(policy(&[Rung::Summarize])).with_summarizer(Cancelling);
    let compaction = compact(&compactor, ask(&log("u10 a300 u10 a300 u10 a100 a100"), None)).await;
    assert_eq!(compaction.plan, None);
    check_told(&compaction, &[], &["compact_failed"]);
}

#[tokio::test]
async fn what_is_named_is_shown_once_when_that_is_wanted() {
    let store = Arc::new(ArtifactShelf::default());
    let put = |text: &'static str, sensitivity| {
        let mut meta = harness_host::ArtifactMeta::default();
        "text/plain".clone_into(&mut meta.media_type);
        meta.sensitivity = sensitivity;
        let store = Arc::clone(&store);
        async move { harness_host::ArtifactStore::put(&*store, text.as_bytes(), meta).await.unwrap() }
    };
    let open = put("the open one", harness_host::Sensitivity::Internal).await;
    let secret = put("the secret one", harness_host::Sensitivity::Confidential).await;
    let off = ContextCompactor::new(policy(&[])).with_artifacts(Arc::<ArtifactShelf>::clone(&store));
    let on = ContextCompactor::new(policy(&[]))
        .with_artifacts(Arc::<ArtifactShelf>::clone(&store))
        .with_rehydration(Rehydration::default());

    let mut log = log("u10");
    log.push(Arc::new(Message::user(format!("What do `{open}`, {secret} and x{open} say?"))));
    assert_eq!(compact(&off, ask(&log, None)).await, Compaction::unchanged());
    let shown = compact(&on, ask(&log, None)).await;
    assert_eq!(self::shown(&log, shown.plan.as_ref()), "0..2 (the open one)");
    assert_eq!(shown.note, None, "it serves this request alone");
    assert_eq!(compact(&on, ask(&log, None)).await, Compaction::unchanged());
    log.push(Arc::new(Message::user(format!("And {open}?"))));
    assert_eq!(compact(&on, ask(&log, None)).await, Compaction::unchanged(), "it was shown in this turn");
}
