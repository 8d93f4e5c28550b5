//! Strategies over groups.

use std::sync::Arc;

use harness_memory::compact::CompactError;
use harness_memory::compact::item::Item;
use harness_memory::compact::window::{
    ContextWindow, FlooredCharacters, Measure, SelectiveToolCall, SlidingWindow, Summarization,
    TokenBudgetComposed, ToolResults, Truncation, Window, WindowStrategy,
};

use super::script::items;

/// Ten tokens a message.
fn window(words: &str) -> Window {
    Window::weighed(&items(words), |_| 10)
}

fn with<T>(mut strategy: T, set: impl FnOnce(&mut T)) -> T {
    set(&mut strategy);
    strategy
}

fn names(view: &[Item]) -> String {
    view.iter().map(|item| &*item.id).collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn check(strategy: &dyn WindowStrategy, words: &str, expected: &str) -> Window {
    let mut window = window(words);
    let changed = strategy.apply(&mut window, &FlooredCharacters);
    assert_eq!(names(&window.view()), expected);
    assert_eq!(changed, words != expected);
    let shown: u64 = window
        .groups()
        .iter()
        .filter(|group| group.is_included())
        .map(harness_memory::compact::window::WindowGroup::tokens)
        .sum();
    assert_eq!(window.included_tokens(), shown);
    window
}

#[test]
fn truncation_takes_the_oldest_groups_once_there_is_too_much() {
    let tokens = Truncation::new(Measure::Tokens, 50, 30).unwrap();
    check(&tokens, "s u a:1 t:1 b", "s u a:1 t:1 b");
    check(&tokens, "s u a:1 t:1 b last", "s b last");
    let messages = Truncation::new(Measure::Messages, 3, 2).unwrap();
    check(&messages, "one two three four", "three four");
    let task = with(messages, |setting| setting.preserve_first_user = true);
    check(&task, "one two three four", "one four");
    let system = with(messages, |setting| setting.preserve_system = false);
    check(&system, "s one two three", "two three");
}

#[test]
fn the_newest_group_stays_even_when_it_is_too_much_alone() {
    let tokens = Truncation::new(Measure::Tokens, 10, 5).unwrap();
    check(&tokens, "u a:1,2 t:1 t:2", "a:1,2 t:1 t:2");
    check(&TokenBudgetComposed::new(1, []), "s u last", "s last");
    check(&SelectiveToolCall { keep_last_tool_call_groups: 0 }, "a:1 t:1 a:2 t:2", "a:2 t:2");
}

#[test]
fn a_sliding_window_counts_groups_that_are_not_of_the_system() {
    check(&SlidingWindow::new(2).unwrap(), "s u a:1 t:1 s x b", "s a:1 t:1 s x b");
}

#[test]
fn old_calls_go_or_become_one_line() {
    check(&SelectiveToolCall::default(), "u a:1 t:1 b a:2 t:2 last", "u b a:2 t:2 last");
    let window = check(
        &ToolResults::default(),
        "u a:1=read,2=list t:1 t:2 b a:3 t:3 a:4 t:4 last",
        "u tool_summary_group_a:1=read,2=list b tool_summary_group_a:3 a:4 t:4 last",
    );
    let view = window.view();
    assert_eq!(view[1].message.joined_text(), "[Tool results: read: data; list: data]");
    assert_eq!(window.total_messages(), 12);
}

#[test]
fn a_line_of_results_is_bounded() {
    let strategy = ToolResults { keep_last_tool_call_groups: 0, max_characters: 40 };
    let mut window = window("a:1 t:1*9000 last");
    strategy.apply(&mut window, &FlooredCharacters);
    let line = window.view()[0].message.joined_text();
    assert_eq!(line, format!("[Tool results: tool: {}…]", "a".repeat(17)));
    assert_eq!(line.chars().count(), 40);
}

#[test]
fn law_6_pinned_groups_and_pending_calls_stay() {
    let strict = with(TokenBudgetComposed::new(1, []), |setting| setting.is_strict = true);
    check(&strict, "s p u a:1 b a:2,3 t:2 last", "p a:1 a:2,3 t:2 last");
}

#[test]
fn a_late_result_goes_with_its_call() {
    check(&SelectiveToolCall::default(), "a:1 u t:1 a:2 t:2 last", "u a:2 t:2 last");
}

#[test]
fn a_budget_runs_its_strategies_until_it_is_met() {
    let calls: Arc<dyn WindowStrategy> = Arc::new(SelectiveToolCall { keep_last_tool_call_groups: 0 });
    let slide: Arc<dyn WindowStrategy> = Arc::new(SlidingWindow::new(1).unwrap());
    let budget = TokenBudgetComposed::new(20, [calls, slide]);
    check(&budget, "u a:1 t:1 last", "u last");
    let eager = with(budget.clone(), |setting| setting.early_stop = false);
    check(&eager, "u a:1 t:1 last", "last");
    check(&budget, "u last", "u last");
}

#[test]
fn a_budget_that_no_strategy_meets_takes_the_oldest_and_the_system_part_only_when_asked_to() {
    let budget = TokenBudgetComposed::new(15, []);
    check(&budget, "s u b last", "s last");
    let strict = with(budget, |setting| setting.is_strict = true);
    let window = check(&strict, "s u b last", "last");
    let reasons: Vec<_> = window
        .groups()
        .iter()
        .filter_map(|group| group.excluded)
        .map(harness_memory::compact::window::ExcludeReason::as_str)
        .collect();
    assert_eq!(reasons, ["token_budget_fallback_strict", "token_budget_fallback", "token_budget_fallback"]);
}

#[test]
fn a_context_window_collapses_first() {
    let mut strategy = ContextWindow::new(130, 50).unwrap();
    strategy.keep_last_tool_call_groups = 1;
    check(&strategy, "u a:1 t:1 a:2 t:2", "u tool_summary_group_a:1 a:2 t:2");
    check(&strategy, "u a:1 t:1", "u a:1 t:1");
}

#[test]
fn fault_40_a_context_window_of_groups_keeps_history() {
    // The budget is 100: collapsing starts at 50, removing groups only above 80.
    let strategy = ContextWindow::new(150, 50).unwrap();
    check(&strategy, "u v w x y z", "u v w x y z");
    check(&strategy, "one two three four five six seven eight", "one two three four five six seven eight");
    check(&strategy, "one two three four five six seven eight nine", "five six seven eight nine");
}

#[test]
fn a_summary_takes_the_place_of_the_oldest_groups() {
    let mut summarization = Summarization::new(2, 1).unwrap();
    let mut window = window("s one a:1 t:1 two three");
    let request = summarization.request(&window, &FlooredCharacters).unwrap();
    assert_eq!(request.text, "1. [user] one\n2. [assistant] calls tool({})\n3. [toolResult] data\n");
    assert!(summarization.accept(&mut window, &request, Ok(" They talked. "), &FlooredCharacters));
    assert_eq!(names(&window.view()), "s summary_6 two three");
    assert!(summarization.request(&window, &FlooredCharacters).is_none());
    assert!(!summarization.accept(&mut window, &request, Ok("late"), &FlooredCharacters));
}

#[test]
fn a_request_for_a_summary_is_bounded() {
    let summarization =
        with(Summarization::new(1, 0).unwrap(), |setting| setting.max_summary_input_tokens = 60);
    let window = window("u*100 v*100 w*100 last");
    let request = summarization.request(&window, &FlooredCharacters).unwrap();
    assert_eq!(request.text.lines().count(), 2);
}

#[test]
fn three_failures_in_a_row_are_told() {
    let mut summarization = Summarization::new(1, 0).unwrap();
    let mut window = window("one two three");
    let request = summarization.request(&window, &FlooredCharacters).unwrap();
    for n in 1..=3 {
        let reply = if n == 2 { Ok("  ") } else { Err(CompactError::EmptySpan) };
        assert!(!summarization.accept(&mut window, &request, reply, &FlooredCharacters));
        assert_eq!((summarization.failures_in_a_row(), summarization.is_broken()), (n, n == 3));
    }
    assert!(summarization.accept(&mut window, &request, Ok("ok"), &FlooredCharacters));
    assert!(!summarization.is_broken());
}

#[track_caller]
fn check_refused<T: std::fmt::Debug>(made: Result<T, CompactError>, expected: &str) {
    assert_eq!(made.unwrap_err().to_string(), expected);
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    check_refused(SlidingWindow::new(0), "setting `keep_last_groups` is 0, but must be at least 1");
    check_refused(Summarization::new(0, 1), "setting `target_count` is 0, but must be at least 1");
    check_refused(
        Truncation::new(Measure::Tokens, 1, 2),
        "setting `compact_to` is 2, but must be at most `max_n`",
    );
    check_refused(
        ContextWindow::new(10, 10),
        "setting `max_output_tokens` is 10, but must be less than `max_context_window_tokens`",
    );
    check_refused(
        ContextWindow::new(10, 1).unwrap().with_thresholds(0.9, 0.5),
        "setting `thresholds` is 0.9, 0.5, but must be 0 < tool eviction <= truncation <= 1",
    );
}
