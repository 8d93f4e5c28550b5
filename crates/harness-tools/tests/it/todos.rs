//! The task list, as a model meets it.

use std::sync::Arc;

use harness_core::machine::Origin;
use harness_core::message::{Message, ToolCall};
use harness_core::port::{DynTool, ToolOutcome, ToolRegistry as _};
use harness_core::{Json, Time};
use harness_tools::{Keep, TodoTools, ToolSet};

use crate::support::{ask, ask_in};

const ADD: (&str, &str) = (
    "todos_add",
    r#"{"todos":[{"title":"Read the log"},{"title":"Write the report","description":"one page"}]}"#,
);

/// What the last of some calls says.
#[track_caller]
fn check(calls: &[(&str, &str)], expected: &str) {
    let set = TodoTools::new(Keep::Run).into_set();
    let said: Vec<String> = calls.iter().map(|(name, arguments)| ask(&set, name, arguments)).collect();
    assert_eq!(said.last().map(String::as_str), Some(expected));
}

#[test]
fn things_are_added_in_batches_and_get_small_numbers() {
    check(&[ADD], "success\n{\"ids\":[1,2],\"remaining\":2}");
    check(&[ADD, ADD], "success\n{\"ids\":[3,4],\"remaining\":4}");
    check(
        &[ADD, ("todos_get_all", "{}")],
        "success\n{\"todos\":[{\"id\":1,\"title\":\"Read the log\",\"is_complete\":false},\
         {\"id\":2,\"title\":\"Write the report\",\"description\":\"one page\",\"is_complete\":false}]}",
    );
}

#[test]
fn done_things_are_kept_with_their_reasons_and_are_not_remaining() {
    let done = ("todos_complete", r#"{"id":1,"reason":"it has 3 faults"}"#);
    check(&[ADD, done], "success\n{\"ids\":[1],\"remaining\":1}");
    check(
        &[ADD, done, ("todos_get_all", "{}")],
        "success\n{\"todos\":[{\"id\":1,\"title\":\"Read the log\",\"is_complete\":true,\"reason\":\"it has 3 faults\"},\
         {\"id\":2,\"title\":\"Write the report\",\"description\":\"one page\",\"is_complete\":false}]}",
    );
    let both = ("todos_complete", r#"{"todos":[{"id":2,"reason":"sent"},{"id":1}]}"#);
    check(&[ADD, both, ("todos_get_remaining", "{}")], "success\n{\"todos\":[]}");
}

#[test]
fn a_removed_number_is_never_given_again() {
    let removed = ("todos_remove", r#"{"ids":[1,2]}"#);
    check(&[ADD, removed], "success\n{\"ids\":[1,2],\"remaining\":0}");
    check(&[ADD, removed, ADD], "success\n{\"ids\":[3,4],\"remaining\":2}");
}

#[test]
fn a_batch_with_an_unknown_number_changes_nothing() {
    let batch = ("todos_remove", r#"{"ids":[1,7]}"#);
    check(&[ADD, batch], "failed todos\nthere is no item 7; there are 1, 2");
    check(&[ADD, batch, ("todos_remove", r#"{"id":1}"#)], "success\n{\"ids\":[1],\"remaining\":1}");
    check(&[("todos_complete", r#"{"id":1}"#)], "failed todos\nthere is no item 1; the list is empty");
}

#[test]
fn what_is_wrong_is_said_with_what_to_do() {
    check(&[("todos_add", r#"{"todos":[]}"#)], "failed todos\ngive `todos` with at least one item");
    check(&[("todos_complete", "{}")], "failed todos\ngive `todos` with at least one item");
    check(
        &[("todos_add", r#"{"todos":[{"title":" "}]}"#)],
        "failed todos\na title is empty; say in a few words what is to be done",
    );
    let long = format!(r#"{{"todos":[{{"title":"{}"}}]}}"#, "x".repeat(501));
    check(&[("todos_add", &long)], "failed todos\na title has 501 bytes; at most 500 are kept");
    let many = format!(r#"{{"todos":[{}]}}"#, vec![r#"{"title":"x"}"#; 201].join(","));
    let full = "failed todos\nthe list holds 200 items at most; remove those that are not needed any more";
    check(&[("todos_add", &many)], full);
}

fn result_of(set: &ToolSet, run: &str, (name, arguments): (&str, &str)) -> Message {
    let outcome: ToolOutcome = ask_in(run, set, name, arguments);
    let call = ToolCall::new("c", name, Json::parse(arguments).unwrap());
    Message::ToolResult(outcome.to_message(&call, None, Time(0)))
}

#[test]
fn a_list_is_found_again_in_the_results() {
    let before = TodoTools::new(Keep::Run).into_set();
    let calls = [ADD, ("todos_complete", r#"{"id":1}"#), ("todos_get_remaining", "{}")];
    let messages: Vec<Message> = calls.map(|call| result_of(&before, "a", call)).into();
    let after = TodoTools::new(Keep::Run);
    let mut origin = Origin::default();
    origin.run = Some("b".into());
    assert!(!after.restore_from(&origin, [&Message::user("hi")]));
    assert!(after.restore_from(&origin, &messages));
    let titles: Vec<String> = after.list(&origin).remaining().map(|todo| todo.title.clone()).collect();
    assert_eq!((titles, after.list(&origin).added), (vec!["Write the report".to_owned()], 2));
    after.forget(&origin);
    assert_eq!(after.list(&origin).items, []);
}

#[test]
fn a_list_changes_nothing_outside() {
    let set = TodoTools::new(Keep::Thread).into_set();
    assert!(set.tools().iter().all(|tool: &Arc<dyn DynTool>| !tool.tool_def().mutates()));
    assert!(set.check(&ToolCall::new("c", "todos_add", Json::empty_object())).is_err());
}
