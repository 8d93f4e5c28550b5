//! Atomic groups.

use std::sync::Arc;

use harness_core::Json;
use harness_core::message::{Block, Message};
use harness_memory::compact::group::{Group, Groups};

use super::script::{answer, messages};

/// Groups as `kind@positions`, `!` when pending, `*` when pinned, `~` when with reasoning.
fn shown(messages: &[Arc<Message>]) -> String {
    let groups = Groups::of(messages);
    let group = |group: &Group| {
        let mut text = format!("{}@", group.kind);
        text += &group.members.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        text += if group.has_reasoning { "~" } else { "" };
        text += if group.is_pending { "!" } else { "" };
        text += if group.is_pinned { "*" } else { "" };
        text
    };
    for (index, group) in groups.iter().enumerate() {
        assert!(group.members.iter().all(|member| groups.index_of(*member) == Some(index)));
    }
    groups.iter().map(group).collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn check(words: &str, expected: &str) {
    assert_eq!(shown(&messages(words)), expected);
}

#[test]
fn each_message_has_its_kind() {
    check("s u b x p", "system@0 user@1 assistant_text@2 unsent@3 user@4*");
}

#[test]
fn a_batch_of_calls_takes_its_reasoning_and_its_results() {
    check("u r r a:1,2 r t:1 t:2 b", "user@0 tool_call@1,2,3,4,5,6~ assistant_text@7");
    check("r b", "assistant_text@0~ assistant_text@1");
    check("a:1 t:1 r b", "tool_call@0,1 assistant_text@2~ assistant_text@3");
}

#[test]
fn a_result_that_comes_late_joins_its_call_when_there_is_no_doubt() {
    check("a:1 u t:1", "tool_call@0,2 user@1");
    check("a:1 u a:2 t:2 t:1", "tool_call@0,4 user@1 tool_call@2,3");
    check("a:1 u a:1 u t:1", "tool_call@0! user@1 tool_call@2! user@3 tool_call@4");
    check("a:1 t:1 u a:1 u t:1", "tool_call@0,1 user@2 tool_call@3,5 user@4");
}

#[test]
fn results_of_no_call_are_groups_of_their_own() {
    check("t:8 t:9 u t:7", "tool_call@0,1 user@2 tool_call@3");
    check("a:1 t:1 t:8", "tool_call@0,1,2");
}

#[test]
fn law_6_a_call_without_its_result_is_pending() {
    check("a:1,2 t:1", "tool_call@0,1!");
    check("a:1,2 t:1 t:2", "tool_call@0,1,2");
}

#[test]
fn law_6_an_approval_is_pending_until_it_is_decided() {
    let approval = |state: &str| {
        let text = format!(r#"{{"type":"approval","callId":"1","state":"{state}"}}"#);
        Json::parse(&text).and_then(|block| block.to::<Block>()).unwrap()
    };
    let with = |blocks: Vec<Block>| Arc::new(answer(blocks));
    let requested = with(vec![approval("requested")]);
    let decided = with(vec![approval("requested"), approval("granted")]);
    assert_eq!(shown(&[requested, decided]), "assistant_text@0! assistant_text@1");
}

#[test]
fn the_task_and_the_newest_group_are_found() {
    let groups = Groups::of(&messages("s x u b u s"));
    assert_eq!((groups.first_user(), groups.newest()), (Some(2), Some(4)));
    assert_eq!(Groups::of::<Arc<Message>>(&[]).newest(), None);
}
