//! Plans and the coordinator that makes them.

use harness_core::{ArtifactId, Fault, FaultSource};
use harness_memory::compact::CompactError;
use harness_memory::compact::durability::{DurabilityPolicies, ToolDurability, ToolDurabilityPolicy};
use harness_memory::compact::item::Item;
use harness_memory::compact::plan::{
    Action, Clear, ClearRecord, CompactionPlan, Coordinated, Coordinator, Done, Drop, DropRecord,
    Externalize, Strategy, Summarize, Work,
};
use harness_memory::compact::summary::{SpanReference, StructuredSummary};
use harness_memory::compact::tokens::RoundedCharacters;
use insta::assert_snapshot;

use super::script::{items, shown};

const ALL: u64 = u64::MAX;

fn clear() -> Strategy {
    Clear { preserve_recent_messages: 2, ..Clear::default() }.into()
}

fn summarize() -> Strategy {
    Summarize { preserve_recent_messages: 2, ..Summarize::default() }.into()
}

fn externalize() -> Strategy {
    Externalize { preserve_recent_messages: 2, ..Externalize::default() }.into()
}

/// Answers everything with one fact.
fn helpful(work: Work) -> Result<Done, CompactError> {
    let fact = |span| StructuredSummary::parse(r#"{"facts": ["a fact"]}"#, span, &[]);
    match work {
        Work::Summarize { span, .. } => fact(span).map(Done::Summary),
        Work::Store { span, .. } => Ok(Done::Stored(ArtifactId::from("art-1"), fact(span)?)),
        _ => Err(failed()),
    }
}

fn failed() -> CompactError {
    CompactError::Failed(Fault::new(FaultSource::Compactor, "test.down", "the summarizer is down"))
}

fn coordinate(
    coordinator: &Coordinator,
    items: &[Item],
    target: u64,
    answer: fn(Work) -> Result<Done, CompactError>,
) -> Coordinated {
    let mut coordination = coordinator.begin(items, &RoundedCharacters, target);
    while let Some(work) = coordination.next() {
        coordination.answer(answer(work));
    }
    coordination.finish()
}

#[track_caller]
fn check(strategies: impl IntoIterator<Item = Strategy>, words: &str, expected: &[(&str, Action)]) {
    let items = items(words);
    let done = coordinate(&Coordinator::new(strategies), &items, ALL, helpful);
    let actions = done.plan.actions();
    let actions: Vec<(&str, Action)> = actions.iter().map(|(id, action)| (&**id, *action)).collect();
    assert_eq!(actions, expected);
}

#[test]
fn old_results_are_cleared_but_not_those_that_cannot_be_had_again() {
    check([clear()], "u a:1 t:1*800 a:2 t:2*396 b b", &[("t:1*800", Action::Clear)]);
    check([clear()], "u a:1=web_search t:1*800 b b", &[]);
    check([clear()], "u a:1 t:1*800 b", &[]);
}

#[test]
fn large_messages_are_stored_elsewhere_but_not_calls_and_not_the_system_part() {
    check(
        [externalize()],
        "s*9000 u*9000 a:1 t:1*9000 b b",
        &[("t:1*9000", Action::Externalize), ("u*9000", Action::Externalize)],
    );
    check(
        [externalize()],
        "u a:1=web_search t:1*2400 a:2 t:2*2400 b b",
        &[("t:1*2400", Action::Externalize)],
    );
}

#[test]
fn a_summary_takes_whole_groups_and_neither_the_task_nor_the_system_part() {
    check(
        [summarize()],
        "s task b*800 b*804 u*800 b b",
        &[("b*800", Action::Summarize), ("b*804", Action::Summarize), ("u*800", Action::Summarize)],
    );
    check(
        [summarize()],
        "task b*800 b*804 b*808 a:1 t:1 t:2",
        &[("b*800", Action::Summarize), ("b*804", Action::Summarize), ("b*808", Action::Summarize)],
    );
    check([summarize()], "task b*400 b*404 b*408 b b", &[]);
    check([summarize()], "task b*2000 b*2004 b b", &[]);
}

#[test]
fn what_was_cleared_before_is_dropped_with_its_call() {
    let mut messages = items("task a:1 t:1 a:2,3 t:2 t:3 c b b");
    let clear = Clear { preserve_recent_messages: 4, min_tokens_to_clear: 0 };
    let cleared = coordinate(&Coordinator::new([clear.into()]), &messages, ALL, helpful);
    messages = cleared.plan.render(&messages);
    let drop = Drop { preserve_recent_messages: 2 };
    let dropped = coordinate(&Coordinator::new([drop.into()]), &messages, ALL, helpful);
    assert_snapshot!(shown(&dropped.plan.render(&messages)), @"
    task | task
    a:2,3 |
    t:2 | [Cleared: tool message]
    t:3 | data
    b | text
    b | text
    ");
}

#[test]
fn the_ladder_stops_when_enough_is_gone() {
    let messages = items("task a:1 t:1*800 a:2 t:2*800 a:3 t:3*800 b b");
    let coordinator = Coordinator::new([summarize(), clear()]);
    let done = coordinate(&coordinator, &messages, 200, helpful);
    assert_eq!(done.actions_applied, [Action::Clear]);
    assert_eq!((done.proposals_generated, done.proposals_applied), (3, 2));
    assert_eq!(done.plan.tokens_freed(), 388);
}

#[test]
fn a_cap_on_proposals_is_kept() {
    let messages = items("task a:1 t:1*800 a:2 t:2*800 a:3 t:3*800 b b");
    let mut coordinator = Coordinator::new([clear()]);
    coordinator.max_proposals = Some(1);
    assert_eq!(coordinate(&coordinator, &messages, ALL, helpful).proposals_applied, 1);
}

#[test]
fn after_a_stored_content_was_shown_again_only_clearing_is_done() {
    let messages = items("task a:1 t:1*8000 a:2=web_search t:2*8000 b b");
    let mut coordinator = Coordinator::new([clear(), externalize(), summarize()]);
    coordinator.has_rehydrated = true;
    let done = coordinate(&coordinator, &messages, ALL, helpful);
    assert_eq!(done.actions_applied, [Action::Clear]);
}

#[test]
fn a_failing_summarizer_changes_nothing_and_is_told() {
    let messages = items("task b*2000 b*2004 b*2008 b b");
    let done = coordinate(&Coordinator::new([summarize()]), &messages, ALL, |_| Err(failed()));
    assert!(done.plan.is_empty());
    assert_eq!(done.plan.render(&messages), messages);
    assert_eq!(done.failed, [failed()]);
    assert_eq!((done.proposals_applied, done.plan.tokens_freed()), (0, 0));
}

#[test]
fn an_empty_or_too_large_summary_stands_for_nothing() {
    let messages = items("task b*2000 b*2004 b*2008 b b");
    let coordinator = Coordinator::new([summarize()]);
    let empty = |work: Work| {
        let Work::Summarize { span, .. } = work else { return Err(failed()) };
        Ok(Done::Summary(StructuredSummary::of(span)))
    };
    let done = coordinate(&coordinator, &messages, ALL, empty);
    assert_eq!(done.failed.first().map(CompactError::kind), Some("compact.empty_summary"));
    let large = |work: Work| {
        let Work::Summarize { span, .. } = work else { return Err(failed()) };
        let mut summary = StructuredSummary::of(span);
        summary.facts.push("a".repeat(9_000));
        Ok(Done::Summary(summary))
    };
    let done = coordinate(&coordinator, &messages, ALL, large);
    assert_eq!(done.failed.first().map(CompactError::kind), Some("compact.summary_too_large"));
}

#[test]
fn work_that_nobody_answers_is_given_up() {
    let messages = items("task b*2000 b*2004 b*2008 b b");
    let coordinator = Coordinator::new([summarize()]);
    let mut coordination = coordinator.begin(&messages, &RoundedCharacters, ALL);
    assert!(coordination.next().is_some());
    assert!(coordination.next().is_none());
    assert!(coordination.finish().plan.is_empty());
}

#[test]
fn a_stored_result_keeps_its_place_and_points_to_the_whole() {
    let messages = items("task a:1 t:1*8000 b b");
    let done = coordinate(&Coordinator::new([externalize()]), &messages, ALL, helpful);
    let view = done.plan.render(&messages);
    assert_eq!(&*view[2].id, "t:1*8000");
    assert_snapshot!(view[2].message.joined_text(), @r#"
    [Externalized Content - artifact:art-1]
    Summary: **Key Facts:**
    - a fact

    **Externalized Content:**
    - [art-1] the whole of it
      Hint: when the summary is not enough, read it.
    To retrieve full content, call: read_artifact("art-1")
    "#);
}

#[test]
fn the_stored_content_is_what_the_result_says() {
    let messages = items("task a:1 t:1*8000 b b");
    let coordinator = Coordinator::new([externalize()]);
    let mut coordination = coordinator.begin(&messages, &RoundedCharacters, ALL);
    let Some(Work::Store { content, .. }) = coordination.next() else { unreachable!("a result is large") };
    assert_eq!(content, "a".repeat(8_000));
}

#[test]
fn a_policy_of_its_own_protects_a_tool() {
    let messages = items("task a:1=pay t:1*800 b b");
    let mut coordinator = Coordinator::new([clear()]);
    let policy = ToolDurabilityPolicy::new(ToolDurability::NonReplayable);
    coordinator.policies = DurabilityPolicies::built_in().with("pay", policy);
    assert!(coordinate(&coordinator, &messages, ALL, helpful).plan.is_empty());
}

fn span(ids: &[&str]) -> SpanReference {
    SpanReference::new(ids.iter().map(|id| (*id).into()), 0, 1).unwrap()
}

#[test]
fn law_6_a_plan_cannot_hide_what_is_protected() {
    let messages = items("s p task a:1");
    let drops = vec![DropRecord { span: span(&["s", "p", "a:1"]), reason: String::new() }];
    let view = CompactionPlan { drops, ..CompactionPlan::default() }.render(&messages);
    assert_snapshot!(shown(&view), @"
    s | rules
    p | rule
    task | task
    a:1 |
    placeholder-1 | [Tool result cleared during context compaction]
    ");
}

#[test]
fn the_stronger_of_two_actions_counts_and_a_warning_names_both() {
    let clearings = vec![ClearRecord { span: span(&["b", "c"]), ..ClearRecord::default() }];
    let drops = vec![DropRecord { span: span(&["c"]), reason: String::new() }];
    let plan = CompactionPlan { clearings, drops, ..CompactionPlan::default() };
    assert_eq!(plan.action_of("b"), Action::Clear);
    assert_eq!(plan.action_of("c"), Action::Drop);
    assert_eq!(plan.action_of("d"), Action::Include);
    let warnings: Vec<String> = plan.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(warnings, ["Message c in both clearings and drops; drops takes precedence"]);
}

#[test]
fn a_plan_has_a_wire_form_that_reads_back() {
    let messages = items("task a:1 t:1*8000 b*2000 b*2004 b*2008 b b");
    let coordinator = Coordinator::new([clear(), externalize(), summarize()]);
    let plan = coordinate(&coordinator, &messages, ALL, helpful).plan;
    let text = serde_json::to_string(&plan).unwrap();
    let back: CompactionPlan = serde_json::from_str(&text).unwrap();
    assert_eq!(back, plan);
    assert_eq!(back.render(&messages), plan.render(&messages));
}
