//! Law 6 and its neighbours, for every strategy over any transcript.

use harness_core::message::{AssistantMessage, Message};
use harness_memory::compact::clear::DirectClear;
use harness_memory::compact::group::Groups;
use harness_memory::compact::item::Item;
use harness_memory::compact::plan::{
    Action, Clear, CompactionPlan, Coordinator, Done, Drop, Externalize, Summarize, Work, total_tokens,
};
use harness_memory::compact::summary::StructuredSummary;
use harness_memory::compact::tokens::RoundedCharacters;
use proptest::prelude::*;

use super::script::message;

/// Something that happens in a conversation.
#[derive(Clone, Debug)]
enum Step {
    Said(&'static str, usize),
    Calls { calls: usize, size: usize, reasoning: bool, late: bool, pending: bool, tool: &'static str },
}

fn step() -> impl Strategy<Value = Step> {
    let said = (prop::sample::select(vec!["u", "b", "s", "p", "x", "r", "c"]), 0_usize..3_000);
    let tools = prop::sample::select(vec!["tool", "web_search", "list_directory"]);
    let calls = (1_usize..4, 0_usize..6_000, any::<bool>(), 0_u8..8, tools);
    prop_oneof![
        said.prop_map(|(kind, size)| Step::Said(kind, size)),
        calls.prop_map(|(calls, size, reasoning, rare, tool)| Step::Calls {
            calls,
            size,
            reasoning,
            late: rare == 0,
            pending: rare == 1,
            tool
        }),
    ]
}

fn transcript(steps: &[Step]) -> Vec<Item> {
    let mut words = vec!["task*200".to_owned()];
    for (n, step) in steps.iter().enumerate() {
        match step {
            Step::Said(kind, size) => words.push(format!("{kind}*{size}")),
            Step::Calls { calls, size, reasoning, late, pending, tool } => {
                let ids: Vec<String> = (0..*calls).map(|call| format!("{n}-{call}")).collect();
                let named: Vec<String> = ids.iter().map(|id| format!("{id}={tool}")).collect();
                words.extend(reasoning.then(|| "r".to_owned()));
                words.push(format!("a:{}", named.join(",")));
                words.extend(late.then(|| "u".to_owned()));
                let answered = ids.iter().skip(usize::from(*pending));
                words.extend(answered.map(|id| format!("t:{id}*{size}")));
            }
        }
    }
    let numbered = words.iter().enumerate();
    numbered.map(|(at, word)| Item::new(format!("m{at}"), message(word))).collect()
}

/// Whether every result has its call before it, and every call that had its result has it.
fn assert_pairs(before: &[Item], view: &[Item]) {
    let results = |items: &[Item]| -> Vec<String> {
        items.iter().filter_map(|i| i.message.as_tool_result()).map(|r| r.tool_call_id.to_string()).collect()
    };
    let answered = results(before);
    let mut open: Vec<String> = Vec::new();
    for item in view {
        if let Some(result) = item.message.as_tool_result() {
            let at = open.iter().position(|id| *id == result.tool_call_id.as_str());
            assert!(at.is_some(), "the result of {} has no call", result.tool_call_id);
            open.swap_remove(at.unwrap_or_default());
        }
        let calls = item.message.as_assistant().into_iter().flat_map(AssistantMessage::tool_calls);
        open.extend(calls.map(|call| call.id.to_string()));
    }
    assert!(open.iter().all(|id| !answered.contains(id)), "calls {open:?} lost their results");
}

/// Whether what must never go is there, byte for byte.
fn assert_kept(before: &[Item], view: &[Item]) {
    let groups = Groups::of(before);
    for group in groups.iter().filter(|group| group.is_protected()) {
        for member in &group.members {
            assert!(view.contains(&before[*member]), "{:?} is gone", before[*member]);
        }
    }
}

fn helpful(work: Work) -> Option<Done> {
    let fact = |span| StructuredSummary::parse(r#"{"facts": ["a fact"]}"#, span, &[]).ok();
    match work {
        Work::Summarize { span, .. } => fact(span).map(Done::Summary),
        Work::Store { span, .. } => {
            fact(span.clone()).map(|fact| Done::Stored(format!("art-{}", span.first_id()).into(), fact))
        }
        _ => None,
    }
}

fn ladder(preserve_recent_messages: usize) -> Coordinator {
    Coordinator::new([
        Clear { preserve_recent_messages, min_tokens_to_clear: 100 }.into(),
        Externalize { preserve_recent_messages, externalize_threshold_tokens: 500 }.into(),
        Summarize { preserve_recent_messages, ..Summarize::default() }.into(),
        Drop { preserve_recent_messages }.into(),
    ])
}

fn plan(coordinator: &Coordinator, items: &[Item], target: u64) -> CompactionPlan {
    let mut coordination = coordinator.begin(items, &RoundedCharacters, target);
    while let Some(work) = coordination.next() {
        if let Some(done) = helpful(work) {
            coordination.answer(Ok(done));
        }
    }
    coordination.finish().plan
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn law_6_a_plan_splits_no_pair_and_hides_nothing_protected(
        steps in prop::collection::vec(step(), 0..30),
        preserve in 0_usize..6,
        target in 0_u64..20_000,
    ) {
        let items = transcript(&steps);
        let untouched = items.clone();
        let plan = plan(&ladder(preserve), &items, target);
        let view = plan.render(&items);
        prop_assert_eq!(&items, &untouched);
        assert_pairs(&items, &view);
        assert_kept(&items, &view);
        prop_assert_eq!(&view, &plan.render(&items));
        prop_assert_eq!(plan.compacted_token_count, if plan.is_empty() {
            plan.original_token_count
        } else {
            total_tokens(&RoundedCharacters, &view)
        });
    }

    #[test]
    fn law_6_a_plan_without_storing_shows_the_task_and_the_newest_messages(
        steps in prop::collection::vec(step(), 0..30),
        preserve in 1_usize..6,
    ) {
        let items = transcript(&steps);
        let coordinator = Coordinator::new([
            Clear { preserve_recent_messages: preserve, min_tokens_to_clear: 100 }.into(),
            Summarize { preserve_recent_messages: preserve, ..Summarize::default() }.into(),
            Drop { preserve_recent_messages: preserve }.into(),
        ]);
        let view = plan(&coordinator, &items, u64::MAX).render(&items);
        prop_assert!(view.contains(&items[0]));
        for newest in items.iter().rev().take(preserve) {
            prop_assert!(view.contains(newest), "{:?} is gone", newest);
        }
    }

    #[test]
    fn clearing_what_is_cleared_does_nothing(steps in prop::collection::vec(step(), 0..30)) {
        let coordinator =
            Coordinator::new([Clear { preserve_recent_messages: 2, min_tokens_to_clear: 1 }.into()]);
        let items = transcript(&steps);
        let first = plan(&coordinator, &items, u64::MAX);
        let again = plan(&coordinator, &first.render(&items), u64::MAX);
        for (id, _) in again.actions() {
            prop_assert_eq!(first.action_of(&id), Action::Include);
        }
    }

    #[test]
    fn law_6_direct_clearing_keeps_every_message_and_what_is_protected(
        steps in prop::collection::vec(step(), 0..30),
    ) {
        let items = transcript(&steps);
        let mut cleared = items.clone();
        DirectClear::default().apply(&mut cleared);
        prop_assert_eq!(cleared.len(), items.len());
        assert_pairs(&items, &cleared);
        assert_kept(&items, &cleared);
        let mut again = cleared.clone();
        prop_assert_eq!(DirectClear::default().apply(&mut again).results, 0);
        let same_roles = items.iter().zip(&cleared).all(|(a, b)| a.message.role() == Message::role(&b.message));
        prop_assert!(same_roles);
    }
}
