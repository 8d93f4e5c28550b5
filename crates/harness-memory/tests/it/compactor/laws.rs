//! What holds for every view that the compactor makes, whatever the transcript.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use harness_core::message::{AssistantMessage, Block, Message, SystemMessage, ToolCall, ToolResultMessage};
use harness_core::port::{CompactAsk, Compaction, Compactor as _, ViewCx};
use harness_core::transcript::{Plan, Transcript, View};
use harness_core::{Json, Origin, Time};
use harness_host::testing::ArtifactShelf;
use harness_memory::compact::group::{is_pinned, pin};
use harness_memory::compact::{
    CompactionPolicy, ContextCompactor, Recency, Rung, Summarizer, Summary, SummaryAsk, SummaryFault,
};
use proptest::prelude::*;

/// Says how much it stands for; fails every `fails`-th time.
struct Counting {
    asked: AtomicU32,
    fails: u32,
}

impl Summarizer for Counting {
    async fn summarize(&self, ask: SummaryAsk) -> Result<Summary, SummaryFault> {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        if self.fails > 0 && asked.is_multiple_of(self.fails) {
            return Err(SummaryFault::new("it is not in the mood"));
        }
        Ok(Summary::new(format!("{} messages", ask.covers)))
    }
}

/// What happens next in a conversation; numbers are characters.
#[derive(Clone, Debug)]
enum Step {
    User(usize),
    Pinned(usize),
    System(usize),
    Answer(usize),
    /// Calls in parallel with the length of each result, and whether a model thought before.
    Calls(Vec<(bool, usize)>, bool),
    /// A call whose result never comes.
    Pending,
    /// A result of a call that is not there.
    Orphan(usize),
    /// The program starts anew, with the plan that it stored.
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let call = (any::<bool>(), 0..3_000_usize);
    prop_oneof![
        4 => (1..800_usize).prop_map(Step::User),
        1 => (1..200_usize).prop_map(Step::Pinned),
        1 => (1..200_usize).prop_map(Step::System),
        4 => (1..800_usize).prop_map(Step::Answer),
        8 => (prop::collection::vec(call, 1..4), any::<bool>()).prop_map(|(calls, thought)| Step::Calls(calls, thought)),
        1 => Just(Step::Pending),
        1 => (1..400_usize).prop_map(Step::Orphan),
        1 => Just(Step::Restart),
    ]
}

fn text(characters: usize) -> String {
    "word ".chars().cycle().take(characters).collect()
}

fn grow(log: &mut Transcript, step: &Step, ids: &mut u32) {
    let mut call = |name: &str| {
        *ids += 1;
        ToolCall::new(format!("c{ids}"), name, Json::empty_object())
    };
    let mut push = |message: Message| log.push(Arc::new(message));
    match step {
        Step::User(n) => push(Message::user(text(*n))),
        Step::Pinned(n) => {
            let mut message = harness_core::message::UserMessage::text(text(*n));
            message.content.push(pin());
            push(message.into());
        }
        Step::System(n) => push(SystemMessage::text(text(*n)).into()),
        Step::Answer(n) => push(AssistantMessage::text(text(*n)).into()),
        Step::Calls(results, thought) => {
            let calls: Vec<_> =
                results.iter().map(|(web, _)| call(if *web { "web_search" } else { "read_file" })).collect();
            let mut answer = AssistantMessage::calls(calls.clone());
            if *thought {
                answer.content.insert(0, Block::thinking(text(40)));
            }
            push(answer.into());
            for (call, (_, length)) in calls.iter().zip(results) {
                push(ToolResultMessage::new(call, vec![Block::text(text(*length))], false).into());
            }
        }
        Step::Pending => push(AssistantMessage::calls([call("read_file")]).into()),
        Step::Orphan(n) => {
            push(ToolResultMessage::new(&call("read_file"), vec![Block::text(text(*n))], false).into());
        }
        Step::Restart => {}
    }
}

fn compactor(fails: u32, store: &Arc<ArtifactShelf>) -> ContextCompactor {
    let mut policy = CompactionPolicy::ladder(3_000);
    policy.recency = Recency::new(3, 200);
    policy.excerpt = 100;
    policy.externalize_from = 100;
    assert!(policy.ladder.contains(&Rung::Drop));
    ContextCompactor::new(policy)
        .with_summarizer(Counting { asked: AtomicU32::new(1), fails })
        .with_artifacts(Arc::<ArtifactShelf>::clone(store))
}

fn ask(log: &Transcript, plan: Option<&Plan>) -> CompactAsk {
    let view =
        plan.map_or_else(|| View::whole(log.prefix()), |plan| View::planned(log.prefix(), plan.clone()));
    let cx = ViewCx::new(log.prefix(), Arc::new(Origin::default()), Time(0));
    CompactAsk::new(view, plan.cloned(), cx)
}

fn shown(log: &Transcript, plan: Option<&Plan>) -> Vec<Arc<Message>> {
    let view = ask(log, plan).view;
    let mut messages = Vec::new();
    view.for_each(|message| messages.push(Arc::clone(message)));
    messages
}

/// Whether a message is there, as it was.
fn has(view: &[Arc<Message>], message: &Arc<Message>) -> bool {
    view.iter().any(|shown| Arc::ptr_eq(shown, message))
}

/// Results have their call before them, and calls their results behind them, as far as the transcript has
/// them.
fn check_pairs(log: &Transcript, view: &[Arc<Message>]) {
    let calls_of = |messages: &mut dyn Iterator<Item = &Arc<Message>>| -> Vec<String> {
        let answers = messages.filter_map(|message| message.as_assistant());
        answers.flat_map(|answer| answer.tool_calls().map(|call| call.id.to_string())).collect()
    };
    let results_of = |messages: &mut dyn Iterator<Item = &Arc<Message>>| -> Vec<String> {
        messages.filter_map(|m| m.as_tool_result()).map(|result| result.tool_call_id.to_string()).collect()
    };
    let (calls, results) = (calls_of(&mut log.iter()), results_of(&mut log.iter()));
    for (at, message) in view.iter().enumerate() {
        assert!(!message.content().is_empty(), "an empty message");
        if let Some(result) = message.as_tool_result() {
            let id = result.tool_call_id.to_string();
            let before = calls_of(&mut view.iter().take(at));
            assert!(before.contains(&id) || !calls.contains(&id), "the result {id} lost its call");
        }
        for call in message.as_assistant().into_iter().flat_map(AssistantMessage::tool_calls) {
            let id = call.id.to_string();
            let behind = results_of(&mut view.iter().skip(at));
            let times = behind.iter().filter(|result| **result == id).count();
            assert_eq!(times, usize::from(results.contains(&id)), "results of the call {id}");
        }
    }
}

fn check_compaction(compactor: &ContextCompactor, log: &Transcript, plan: Option<&Plan>, done: &Compaction) {
    if let Some(note) = &done.note {
        let is_met = note.tokens_after <= note.target;
        assert!(is_met || !done.failed.is_empty() || done.overflow.is_some(), "silently above: {done:?}");
        assert!(note.tokens_after < note.tokens_before, "{note:?}");
        assert_eq!(note.target, compactor.policy().target());
    }
    check_kept(log, plan, true);
}

/// Whether calls have their results, and everything that is never touched is there.
fn check_kept(log: &Transcript, plan: Option<&Plan>, keeps_first_prompt: bool) {
    let view = shown(log, plan);
    if let Some(plan) = plan {
        assert_eq!(plan.check(log), Ok(()), "law 6");
    }
    check_pairs(log, &view);
    assert!(log.iter().next_back().is_none_or(|last| has(&view, last)), "the newest message is there");
    let first_user = log.iter().find(|message| matches!(***message, Message::User(_)));
    let first_user = first_user.filter(|_| keeps_first_prompt);
    assert!(first_user.is_none_or(|first| has(&view, first)), "the task is there");
    for message in log.iter() {
        let is_protected = is_pinned(message) || matches!(**message, Message::System(_));
        assert!(!is_protected || has(&view, message), "a protected message is gone");
    }
}

fn converse(steps: &[Step], fails: u32) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let store = Arc::new(ArtifactShelf::default());
    let (mut compactor, mut log, mut ids) = (compactor(fails, &store), Transcript::default(), 0);
    let mut plan: Option<Plan> = None;
    let mut before: Vec<Arc<Message>> = Vec::new();
    for step in steps {
        grow(&mut log, step, &mut ids);
        if matches!(step, Step::Restart) {
            let stored = serde_json::to_string(&plan).unwrap();
            plan = serde_json::from_str(&stored).unwrap();
            compactor = self::compactor(fails, &store);
            before = shown(&log, plan.as_ref());
        }
        let done = runtime.block_on(compactor.compact(ask(&log, plan.as_ref()))).unwrap();
        plan = done.plan.clone().or(plan);
        check_compaction(&compactor, &log, plan.as_ref(), &done);
        let view = shown(&log, plan.as_ref());
        if done.note.is_none() {
            assert!(view.iter().zip(&before).all(|(a, b)| a == b), "the prefix of the view has changed");
            assert!(view.len() >= before.len());
        } else if done.failed.is_empty() && done.overflow.is_none() {
            let again = runtime.block_on(compactor.compact(ask(&log, plan.as_ref()))).unwrap();
            assert_eq!(again, Compaction::unchanged(), "a second compaction of the same");
        }
        before = view;
    }
}

/// What each policy of groups and calls leaves of a conversation.
fn cut(steps: &[Step], policy: CompactionPolicy) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (keeps_first_prompt, compactor) = (policy.keep_first_prompt, ContextCompactor::new(policy));
    let (mut log, mut ids) = (Transcript::default(), 0);
    let mut plan: Option<Plan> = None;
    for step in steps {
        grow(&mut log, step, &mut ids);
        let done = runtime.block_on(compactor.compact(ask(&log, plan.as_ref()))).unwrap();
        plan = done.plan.clone().or(plan);
        check_kept(&log, plan.as_ref(), keeps_first_prompt);
        let again = runtime.block_on(compactor.compact(ask(&log, plan.as_ref()))).unwrap();
        assert_eq!((again.plan, again.note), (None, None), "a second compaction of the same");
    }
}

fn policies() -> [CompactionPolicy; 4] {
    [
        CompactionPolicy::truncate(600, 300),
        CompactionPolicy::sliding_window(3),
        CompactionPolicy::selective(1),
        CompactionPolicy::tool_results(1),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn law_6_holds_for_every_view(steps in prop::collection::vec(step(), 1..60), fails in 0..4_u32) {
        converse(&steps, fails);
    }

    #[test]
    fn law_6_holds_for_every_policy(steps in prop::collection::vec(step(), 1..30), policy in 0..4_usize) {
        cut(&steps, policies()[policy].clone());
    }
}
