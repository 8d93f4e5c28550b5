//! What a message sets for the agents of its run reaches them on any worker.

use std::sync::Arc;

use harness::BoundGraph;
use harness::core::message::{AssistantMessage, Message};
use harness::core::{Json, Time};
use harness::descriptor::load_text;
use harness::prelude::*;
use harness::runtime::DeliveryMode;
use harness::testing::ScriptedModel;
use harness_restate::durable::sim::SimFaults;
use harness_restate::durable::{AgentSettings, RunOptions, SimEngine, ThreadAsk};

const DESK: &str = r#"
runtime: { entry_agent: desk }
context:
  fields: { customer.name: { default: nobody } }
  references: { customer.name: true }
agents:
  desk: { model: small, instructions: "You serve {{context.customer.name}}." }
"#;

const SCHEMA: &str = r#"{"type":"object","properties":{"euros":{"type":"number"}},"required":["euros"]}"#;

/// Plays messages on an engine that crashes at these points. Gives the instructions of each request, and how the last run
/// ended.
fn play(crash_at: &[u64], asks: Vec<ThreadAsk>, answers: &[&str]) -> (Vec<String>, String, u64) {
    let model = ScriptedModel::new(answers.iter().map(|text| AssistantMessage::text(*text))).repeatable();
    let graph = BoundGraph::bind::<String>(&load_text(DESK).unwrap(), []).unwrap();
    let faults = SimFaults { crash_at: crash_at.iter().copied().collect(), ..SimFaults::default() };
    let engine = SimEngine::new(faults);
    let runtime =
        Harness::new(model.clone()).graph(graph).clock(Arc::new(engine.clock())).build_runtime().unwrap();
    for (n, ask) in asks.into_iter().enumerate() {
        engine.client().send(n.to_string(), Time(0), &"t1".into(), ask);
    }
    let report = engine.run(&Arc::new(runtime));
    assert_eq!((&report.stuck[..], &report.violations[..]), (&[][..], &[][..]));
    let seen = model.requests().iter().map(|request| request.prepared.instructions.to_string()).collect();
    let end = engine.thread(&"t1".into()).unwrap().last().unwrap().clone().unwrap();
    (seen, format!("{}", end.reason()), report.points)
}

fn prompt(agents: AgentSettings) -> ThreadAsk {
    ThreadAsk::Deliver {
        entry: "m1".into(),
        message: Arc::new(Message::user("Hi")),
        mode: DeliveryMode::NextTurn,
        wakes: true,
        options: RunOptions { agents, ..RunOptions::default() },
    }
}

fn customer(name: &str) -> AgentSettings {
    let context = Some(Json::parse(&format!(r#"{{"customer":{{"name":"{name}"}}}}"#)).unwrap());
    AgentSettings { context, ..AgentSettings::default() }
}

#[test]
fn context_of_a_message_or_its_thread_is_in_the_instructions() {
    let configured = || ThreadAsk::Configure(RunOptions { agents: customer("Ada"), ..RunOptions::default() });
    let check = |asks: Vec<ThreadAsk>, expected: &str| {
        let (seen, end, _) = play(&[], asks, &["Hello."]);
        assert_eq!((&seen[..], &*end), (&[expected.to_owned()][..], "answer_finalized"));
    };
    check(vec![prompt(AgentSettings::default())], "You serve nobody.");
    check(vec![prompt(customer("Ada"))], "You serve Ada.");
    check(vec![configured(), prompt(AgentSettings::default())], "You serve Ada.");
    check(vec![configured(), prompt(customer("Bob"))], "You serve Bob.");
}

#[test]
fn context_that_the_descriptor_does_not_have_fails_the_run() {
    let context = Some(Json::parse(r#"{"color":"red"}"#).unwrap());
    let (seen, end, _) = play(&[], vec![prompt(AgentSettings { context, output: None })], &["Hello."]);
    assert_eq!((seen.len(), &*end), (0, "runtime_error"));
}

#[test]
fn an_answer_that_does_not_match_the_schema_is_corrected_whatever_dies() {
    let output = Some(Json::parse(SCHEMA).unwrap());
    let asks = || vec![prompt(AgentSettings { output: output.clone(), ..customer("Ada") })];
    let answers = [r#"{"euros":"many"}"#, r#"{"euros":9}"#];
    let (seen, end, points) = play(&[], asks(), &answers);
    assert_eq!((seen.len(), &*end), (2, "answer_finalized"));
    for point in 1..=points {
        let (seen, end, _) = play(&[point], asks(), &answers);
        assert!(seen.iter().all(|seen| seen.contains("You serve Ada.")), "crash at {point}: {seen:?}");
        assert_eq!(end, "answer_finalized", "crash at {point}");
    }
}
