//! Arguments that are too deep or too long: refused before anything looks at them a second time.

use std::sync::Arc;

use harness_core::driver::{Ports, drive};
use harness_core::machine::Start;
use harness_core::message::{AssistantMessage, Message, ToolCall, Usage};
use harness_core::testing::{ModelStep, ScriptedModel, ScriptedTools, VirtualClock};
use harness_core::tool::{ToolDef, Toolbox, tool_fn};
use harness_core::transcript::Transcript;
use harness_core::turn::{MAX_ARGUMENT_BYTES, MAX_ARGUMENT_DEPTH, Turn, TurnSpec};
use harness_core::{Cancel, Json, Origin, Time};

fn ports(arguments: impl IntoIterator<Item = Json>) -> Ports {
    let calls = arguments.into_iter().enumerate();
    let calls = calls.map(|(number, arguments)| ToolCall::new(format!("c{number}"), "t", arguments));
    // The usage is reported: an estimate of megabytes of arguments would reach the limit of tokens.
    let answers = [AssistantMessage::calls(calls), AssistantMessage::text("flatter next time")];
    let steps = answers.map(|answer| ModelStep::answer(answer.with_usage(Usage::tokens(1, 1))));
    Ports::new(Arc::new(ScriptedModel::new(steps)), Arc::new(VirtualClock::jumping(Time(0))))
}

/// Runs a turn to its end: whether each result is an error, and its text.
async fn results(ports: &Ports) -> Vec<(bool, String)> {
    let spec = Arc::new(TurnSpec::default());
    let mut turn = Turn::new(spec, Origin::default(), Transcript::default());
    drive(&mut turn, ports, &Cancel::never(), Start::prompt(Message::user("go"))).await;
    assert_eq!(turn.log().last().map(|last| last.joined_text()).as_deref(), Some("flatter next time"));
    let results = turn.log().iter().filter_map(|message| match &**message {
        Message::ToolResult(result) => Some((result.is_error, message.joined_text())),
        _ => None,
    });
    results.collect()
}

/// An object whose lists make it `depth` levels deep.
fn nested(depth: usize) -> Json {
    let lists = depth - 1;
    Json::parse(&format!(r#"{{"a":{}{}}}"#, "[".repeat(lists), "]".repeat(lists))).expect("JSON")
}

/// An object of so many bytes.
fn long(bytes: usize) -> Json {
    Json::parse(&format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes - 8))).expect("JSON")
}

#[tokio::test]
async fn fault_23_arguments_out_of_bounds_are_answered_with_an_error() {
    let tools = ScriptedTools::new([ToolDef::new("t", "")]);
    let mut ports = ports([
        nested(MAX_ARGUMENT_DEPTH),
        nested(MAX_ARGUMENT_DEPTH + 1),
        long(MAX_ARGUMENT_BYTES),
        long(MAX_ARGUMENT_BYTES + 1),
    ]);
    ports.tools = Arc::new(tools.clone());
    let results = results(&ports).await;
    let refused = |(is_error, text): &(bool, String)| *is_error && text.contains("The call did not run.");
    assert_eq!(results.iter().map(refused).collect::<Vec<_>>(), [false, true, false, true]);
    assert!(results[1].1.contains("nested more than 128 levels deep"), "{}", results[1].1);
    assert!(results[3].1.contains("1048577 bytes; the limit is 1048576"), "{}", results[3].1);
    assert_eq!(tools.executions().len(), 2);
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

#[tokio::test]
async fn fault_23_four_deep_calls_do_not_stall_other_tasks() {
    // Each call has 2.4 MB of nested lists and needs approval, so that its arguments would be hashed. Work that is
    // quadratic in their depth would take minutes.
    let tool = tool_fn("t", "", |_: Nothing, _| async { "done" }).needs_approval();
    let mut ports = ports((0..4).map(|_| nested(1_200_000)));
    ports.tools = Arc::new(Toolbox::new([Arc::new(tool) as _]));
    let (other, results) = tokio::join!(async { "other" }, results(&ports));
    assert_eq!((other, results.len()), ("other", 4));
    assert!(results.iter().all(|(is_error, text)| *is_error && text.contains("levels deep")), "{results:?}");
}
