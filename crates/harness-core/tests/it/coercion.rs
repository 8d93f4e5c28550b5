//! Arguments are prepared, and brought to the types of their schema, before anything else looks at them.

use std::sync::Arc;

use harness_core::decide::{DecideCx, DynGate, GateVerdict, Guarded, Points, gate};
use harness_core::driver::{Ports, drive};
use harness_core::machine::Start;
use harness_core::message::{AssistantMessage, Message, ToolCall};
use harness_core::port::ProposedCall;
use harness_core::testing::{ModelStep, ScriptedModel, VirtualClock};
use harness_core::tool::{Toolbox, tool_fn};
use harness_core::transcript::Transcript;
use harness_core::turn::Turn;
use harness_core::{Cancel, Json, Origin, Time};
use parking_lot::Mutex;

use crate::bare::bare;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Count {
    n: u32,
}

/// Notes the arguments that it is asked about.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    fn gate(&self) -> Guarded<dyn DynGate> {
        let seen = Arc::clone(&self.0);
        gate::func("seen", move |ask, _| {
            seen.lock().push(ask.call.arguments.text().to_owned());
            GateVerdict::Allow
        })
    }
}

/// Calls `count` with these arguments; gives what gates saw, and what the tool answered.
async fn check(arguments: &str, seen: &[&str], answer: &str) {
    let call = ToolCall::new("c1", "count", Json::parse(arguments).expect("arguments"));
    let steps = [AssistantMessage::calls([call]), AssistantMessage::text("done")].map(ModelStep::answer);
    let mut ports = Ports::new(Arc::new(ScriptedModel::new(steps)), Arc::new(VirtualClock::still(Time(0))));
    let count = tool_fn("count", "", |arguments: Count, _| async move { format!("{} seen", arguments.n) });
    ports.tools = Arc::new(Toolbox::new([Arc::new(count) as _]));
    let gate = Seen::default();
    ports.gates = vec![gate.gate()];
    let spec = bare();
    let mut turn = Turn::new(Arc::new(spec), Origin::default(), Transcript::default());
    let start = Start::prompt(Message::user("go"));
    drive(&mut turn, &ports, &Cancel::never(), start).await;
    assert_eq!(*gate.0.lock(), seen);
    let result = turn.log().get(2).expect("a result").joined_text();
    assert!(result.starts_with(answer), "{result}");
    let asked = turn.log().get(1).and_then(|message| message.as_assistant()?.tool_calls().next());
    assert_eq!(asked.expect("the call").arguments.text(), arguments, "what the model wrote stays");
}

#[tokio::test]
async fn gates_and_tools_see_the_declared_type() {
    check(r#"{"n":"3"}"#, &[r#"{"n":3}"#], "3 seen").await;
    check(r#"{"n":3}"#, &[r#"{"n":3}"#], "3 seen").await;
}

#[tokio::test]
async fn what_cannot_be_brought_to_its_type_is_refused_as_ever() {
    check(r#"{"n":"three"}"#, &[], "argument `n` is wrong").await;
    check(r#"{"n":null}"#, &[], "argument `n` is wrong").await;
}

/// Renames the argument `count` to `n`, or denies what has neither; notes what it was asked about.
#[derive(Clone, Default)]
struct Renames(Arc<Mutex<Vec<String>>>);

impl Renames {
    fn gate(&self) -> Guarded<dyn DynGate> {
        let asked = Arc::clone(&self.0);
        let rename = move |ask: &ProposedCall, _: &DecideCx| {
            let text = ask.call.arguments.text();
            asked.lock().push(text.to_owned());
            if text == "{}" {
                return GateVerdict::Deny { message: "say how many".into() };
            }
            match text.replace("\"count\"", "\"n\"") {
                same if same == text => GateVerdict::Allow,
                prepared => GateVerdict::Rewrite(Json::parse(&prepared).expect("JSON")),
            }
        };
        gate::func("renames", rename).at(Points::PREPARE)
    }
}

/// Calls `count` with these arguments through a gate that prepares them, which is the last one of the list;
/// gives what both gates saw, and what the tool answered.
async fn prepared(arguments: &str, asked: &[&str], seen: &[&str], answer: &str) {
    let call = ToolCall::new("c1", "count", Json::parse(arguments).expect("arguments"));
    let steps = [AssistantMessage::calls([call]), AssistantMessage::text("done")].map(ModelStep::answer);
    let mut ports = Ports::new(Arc::new(ScriptedModel::new(steps)), Arc::new(VirtualClock::still(Time(0))));
    let count = tool_fn("count", "", |arguments: Count, _| async move { format!("{} seen", arguments.n) });
    ports.tools = Arc::new(Toolbox::new([Arc::new(count) as _]));
    let (gate, renames) = (Seen::default(), Renames::default());
    ports.gates = vec![gate.gate(), renames.gate()];
    let spec = bare();
    let mut turn = Turn::new(Arc::new(spec), Origin::default(), Transcript::default());
    drive(&mut turn, &ports, &Cancel::never(), Start::prompt(Message::user("go"))).await;
    assert_eq!(*renames.0.lock(), asked);
    assert_eq!(*gate.0.lock(), seen);
    let result = turn.log().get(2).expect("a result").joined_text();
    assert!(result.starts_with(answer), "{result}");
    let asked = turn.log().get(1).and_then(|message| message.as_assistant()?.tool_calls().next());
    assert_eq!(asked.expect("the call").arguments.text(), arguments, "what the model wrote stays");
}

#[tokio::test]
async fn fault_43_a_gate_prepares_arguments_before_they_are_validated() {
    prepared(r#"{"count":"3"}"#, &[r#"{"count":"3"}"#], &[r#"{"n":3}"#], "3 seen").await;
    prepared(r#"{"n":4}"#, &[r#"{"n":4}"#], &[r#"{"n":4}"#], "4 seen").await;
    prepared(r#"{"m":4}"#, &[r#"{"m":4}"#], &[], "the arguments are wrong: missing field `n`").await;
    prepared("{}", &["{}"], &[], "say how many").await;
}
