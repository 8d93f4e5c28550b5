//! Calls and results that belong together.

use harness_memory::compact::pairing::{is_paired, repair};

use super::script::items;

#[track_caller]
fn check(words: &str, expected: &str) {
    let before = items(words);
    let was_paired = is_paired(&before);
    let view = repair(before);
    let names: Vec<&str> = view.iter().map(|item| &*item.id).collect();
    assert_eq!(names.join(" "), expected);
    assert_eq!(was_paired, words == expected);
    assert!(is_paired(&view));
    assert_eq!(repair(view.clone()), view);
}

#[test]
fn what_is_complete_stays() {
    check("u a:1,2 t:1 t:2 b", "u a:1,2 t:1 t:2 b");
    check("a:1 u t:1", "a:1 u t:1");
    check("a:1 t:1 a:1 t:1", "a:1 t:1 a:1 t:1");
}

#[test]
fn a_call_without_a_result_gets_a_placeholder_right_behind_it() {
    check("a:1 b", "a:1 placeholder-1 b");
    check("a:1,2,3 t:2", "a:1,2,3 placeholder-1 placeholder-3 t:2");
    check("a:abcdefghijklmno", "a:abcdefghijklmno placeholder-abcdefghijkl");
}

#[test]
fn a_result_without_a_call_before_it_goes() {
    check("t:1 u", "u");
    check("t:1 a:1", "a:1 placeholder-1");
    check("a:1 t:1 t:8", "a:1 t:1");
    check("a:1 t:1 b t:1", "a:1 t:1 b");
}
