//! Clearing without a plan.

use harness_memory::compact::clear::DirectClear;

use super::script::{items, shown};

#[track_caller]
fn check(target: Option<u64>, words: &str, results: usize, freed: u64) -> String {
    let mut items = items(words);
    let mut clear = DirectClear::default();
    clear.target = target;
    let cleared = clear.apply(&mut items);
    assert_eq!((cleared.results, cleared.freed_estimate), (results, freed));
    shown(&items)
}

#[test]
fn long_results_go_oldest_first_until_the_target_is_reached() {
    let words = "u a:1 t:1*237 a:2 t:2*237 a:3 t:3*237 b b";
    check(None, words, 3, 150);
    check(Some(51), words, 2, 100);
    check(Some(0), words, 0, 0);
    let view = check(Some(50), words, 1, 50);
    assert!(view.contains("t:1*237 | [Tool result cleared to save context]"), "{view}");
}

#[test]
fn short_new_pinned_and_irreplaceable_results_stay() {
    check(None, "u a:1 t:1*100 b b", 0, 0);
    check(None, "u a:1 t:1*237 b", 0, 0);
    check(None, "u a:1=web_search t:1*237 b b", 0, 0);
    check(None, "u a:1,2 t:1*237 b b", 0, 0);
}
