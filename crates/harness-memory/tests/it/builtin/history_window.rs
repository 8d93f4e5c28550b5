//! The window over the history.

use std::sync::Arc;

use harness_core::Time;
use harness_core::message::{AssistantMessage, Block, Message, SystemMessage, ToolCall, ToolResultMessage};
use harness_core::transcript::Transcript;
use harness_memory::builtin::HistoryWindow;
use harness_memory::layer::{Execution, History, Layer as _, LayerCx, developer};

use super::{json, run};

/// `u:` user, `a:` answer, `s:` system, `d:` developer, `c:1,2` calls, `ac:1,2` text and calls, `o:1` result.
fn message(code: &str) -> Message {
    let (kind, text) = code.split_once(':').unwrap();
    let call = |id: &str| ToolCall::new(id, "work", json("{}"));
    match kind {
        "u" => Message::user(text),
        "a" => AssistantMessage::text(text).into(),
        "s" => SystemMessage::text(text).into(),
        "d" => (*developer(text)).clone(),
        "c" => AssistantMessage::calls(text.split(',').map(call)).into(),
        "ac" => {
            let mut answer = AssistantMessage::calls(text.split(',').map(call));
            answer.content.insert(0, Block::text("text"));
            answer.content.insert(0, Block::thinking("hm"));
            answer.into()
        }
        _ => ToolResultMessage::new(&call(text), vec![Block::text("done")], false).into(),
    }
}

fn code(message: &Message) -> String {
    let calls: Vec<String> = message
        .as_assistant()
        .into_iter()
        .flat_map(AssistantMessage::tool_calls)
        .map(|call| call.id.to_string())
        .collect();
    let text = message.joined_text();
    match message.role() {
        "user" => format!("u:{text}"),
        "system" => format!("s:{text}"),
        "toolResult" => format!("o:{}", message.as_tool_result().unwrap().tool_call_id),
        _ if calls.is_empty() => format!("a:{text}"),
        _ if text.is_empty() => format!("c:{}", calls.join(",")),
        _ => format!("ac:{}", calls.join(",")),
    }
}

#[track_caller]
fn check(max_items: usize, items: &str, expected: &str) {
    let log: Transcript = items.split(' ').map(|item| Arc::new(message(item))).collect();
    let cx = LayerCx::new(Arc::new(Execution::new("x")), log.prefix(), Time(0));
    let window = HistoryWindow::new(max_items).unwrap();
    let shown = run(window.project_history(History::whole(log.prefix()), &cx)).unwrap();
    let shown: Vec<String> = shown.iter().map(|message| code(message)).collect();
    assert_eq!(shown.join(" "), expected);
}

#[test]
fn the_newest_messages_are_shown() {
    check(4, "u:1 a:1 u:2 a:2 u:3 a:3", "u:2 a:2 u:3 a:3");
    check(6, "u:1 c:k a:2 u:3 a:4 u:5", "u:1 c:k a:2 u:3 a:4 u:5");
}

#[test]
fn the_window_grows_until_both_roles_are_in_it_four_times_at_most() {
    check(2, "u:0 a:0 u:1 c:1 o:1 c:2 o:2", "a:0 u:1 c:1 o:1 c:2 o:2");
    check(2, "a:0 u:1 c:1 o:1 c:2 o:2 c:3 o:3 c:4 o:4 a:1", "c:2 o:2 c:3 o:3 c:4 o:4 a:1");
    check(2, "c:1 o:1 c:2 o:2 a:1", "a:1");
    check(2, "u:0 c:1 o:1 c:2 o:2", "u:0 c:1 o:1 c:2 o:2");
}

#[test]
fn a_system_message_of_the_head_stays_and_one_of_a_layer_does_not() {
    check(2, "u:a s:rules u:1 a:1 u:2 a:2", "s:rules u:2 a:2");
    check(2, "u:a u:b u:c u:d s:late u:1 a:1 u:2 a:2", "u:2 a:2");
    check(2, "d:hint u:1 a:1 u:2 a:2", "u:2 a:2");
}

#[test]
fn no_call_is_shown_without_its_result_and_no_result_without_its_call() {
    check(3, "u:1 c:k o:k u:2 a:3", "u:2 a:3");
    check(4, "u:0 a:0 o:x c:x u:1 a:1", "u:1 a:1");
    check(5, "u:0 a:0 c:1,2 o:1 o:2 u:1 a:1", "c:1,2 o:1 o:2 u:1 a:1");
    check(5, "u:0 a:0 ac:1,2 o:2 u:1 a:1 u:2", "ac:2 o:2 u:1 a:1 u:2");
    check(4, "u:0 a:0 c:1 o:1 o:1 u:1 a:1", "u:1 a:1");
    check(6, "u:0 c:1 c:1 o:1 o:1 u:1 a:1", "c:1 c:1 o:1 o:1 u:1 a:1");
}

#[test]
fn a_size_out_of_bounds_is_refused() {
    for size in [0, 1, 10_001] {
        let refused = HistoryWindow::new(size).unwrap_err();
        assert_eq!(refused.kind(), "INVALID_HISTORY_MAX_ITEMS");
        let expected = format!("history: maxItems must be an integer in [2, 10000], got {size}");
        assert_eq!(refused.to_string(), expected);
    }
    for (number, text) in [(2.5, "2.5"), (-1.0, "-1"), (f64::NAN, "NaN"), (1e9, "1000000000")] {
        let refused = HistoryWindow::from_number(number).unwrap_err();
        let expected = format!("history: maxItems must be an integer in [2, 10000], got {text}");
        assert_eq!(refused.to_string(), expected);
    }
    assert!(HistoryWindow::from_number(40.0).is_ok());
    assert!(HistoryWindow::new(2).is_ok() && HistoryWindow::new(10_000).is_ok());
}
