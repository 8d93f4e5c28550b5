//! Whatever a model does: a strict run is never called completed with a requirement unmet, and passes no limit.

use harness_control::contract::TaskContract;
use harness_control::{ControlSpec, SignalSpec, StallSpec};
use harness_core::Json;
use harness_core::message::{AssistantMessage, Message};
use harness_core::tool::ToolOutcome;
use proptest::prelude::*;

use crate::controlled::{Played, Scene, calls, says};

const TURNS: u32 = 6;
const REQUESTS: u32 = 14;

/// What a model may do in one step: truthful, lying, idle, looping or broken.
#[derive(Clone, Copy, Debug)]
enum Does {
    Lies,
    SaysNothing,
    Talks,
    SaysTheWord,
    Looks,
    Checks,
    CallsGarbage,
    SignalsWithoutSense,
}

fn step(does: Does) -> AssistantMessage {
    match does {
        Does::Lies => calls(&[("work_complete", r#"{"summary":"all is done","confidence":1}"#)]),
        Does::SaysNothing => says(""),
        Does::Talks => says("All requirements are met, I am sure of it."),
        Does::SaysTheWord => says("The word is MAGIC."),
        Does::Looks => calls(&[("look", "{}")]),
        Does::Checks => calls(&[("check", "{}")]),
        Does::CallsGarbage => calls(&[("no_such_tool", "[]"), ("look", "7")]),
        Does::SignalsWithoutSense => calls(&[("work_complete", "[]")]),
    }
}

fn does() -> impl Strategy<Value = Does> {
    prop_oneof![
        3 => Just(Does::Lies),
        1 => Just(Does::SaysNothing),
        2 => Just(Does::Talks),
        2 => Just(Does::SaysTheWord),
        2 => Just(Does::Looks),
        2 => Just(Does::Checks),
        1 => Just(Does::CallsGarbage),
        1 => Just(Does::SignalsWithoutSense),
    ]
}

fn contract() -> TaskContract {
    let contract = r#"{
        "id": "c", "goal": "check it and say the word",
        "required_outputs": [
            {"id": "R1", "description": "it is checked",
             "predicate": {"type": "tool_result_success", "args": {"tool_name": "check"}}},
            {"id": "R2", "description": "the word is said",
             "predicate": {"type": "contains_text", "args": {"pattern": "MAGIC", "field": "any_response"}}}
        ]
    }"#;
    Json::parse(contract).expect("JSON").to().expect("a contract")
}

fn holds(played: &Played, is: impl Fn(&Message) -> bool) -> bool {
    played.log.iter().any(|message| is(message))
}

fn result_of(message: &Message, tool: &str) -> Option<bool> {
    message.as_tool_result().filter(|result| result.tool_name == tool).map(|result| !result.is_error)
}

fn cases(n: u32) -> ProptestConfig {
    ProptestConfig { cases: n, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn law_2_no_script_of_a_model_ends_a_strict_run_completed_with_a_requirement_unmet(
        script in prop::collection::vec(does(), 0..20),
        checks_succeed in prop::collection::vec(any::<bool>(), 1..4),
        stalls in any::<bool>(),
    ) {
        let mut control = ControlSpec::default().with_signal(SignalSpec::default().patience(2, 2));
        control.contract = Some(contract());
        control.stall = stalls.then(StallSpec::default);
        let outcome = |good: bool| if good { ToolOutcome::text("ok") } else { ToolOutcome::error("bad", "no") };
        let mut scene = Scene::new(control, script.into_iter().map(step))
            .with_tool("look", [ToolOutcome::text("the same")])
            .with_tool("check", checks_succeed.into_iter().map(outcome))
            .strict()
            .turns(TURNS);
        scene.spec.limits.amount.iterations = REQUESTS;
        let played = scene.play();

        prop_assert!(played.end.turns <= TURNS, "{} turns", played.end.turns);
        prop_assert!(played.requests.len() <= REQUESTS as usize, "{} requests", played.requests.len());
        if played.end.outcome().as_str() != "completed" {
            return Ok(());
        }
        prop_assert_eq!(played.end.reason().as_str(), "answer_finalized", "nothing is waived");
        prop_assert!(holds(&played, |message| result_of(message, "check") == Some(true)), "it was never checked");
        let said = |message: &Message| {
            message.as_assistant().is_some() && message.joined_text().contains("MAGIC")
        };
        prop_assert!(holds(&played, said), "the word was never said");
        let signalled = holds(&played, |message| result_of(message, "work_complete") == Some(true));
        prop_assert!(signalled, "the signal was never given");
    }
}
