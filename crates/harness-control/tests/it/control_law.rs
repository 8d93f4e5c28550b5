//! What of the control must hold whatever happens: law 7, and a decision that is made without the loop.

use std::sync::Arc;

use harness_control::contract::{EvidenceIndex, FactsAsk, FactsFound, PredicateKind, TaskContract};
use harness_control::{
    ControlEvent, ControlReport, ControlSpec, ControlState, DecisionCx, SignalSpec, StopCode, TurnOutcome,
    UntilDone, WorkSpec,
};
use harness_core::decide::{DecideCx, FactSource};
use harness_core::driver::{Ports, drive};
use harness_core::machine::{Input, Op, Reply, Start};
use harness_core::message::Message;
use harness_core::outcome::StopMode;
use harness_core::port::{Control as _, RunProgress, Used};
use harness_core::run::{Run, RunSpec};
use harness_core::testing::{
    Answer, Ran, ScriptedDriver, ScriptedModel, ScriptedWorld, VirtualClock, replay,
};
use harness_core::tool::{FnTool, ToolOutcome};
use harness_core::transcript::Transcript;
use harness_core::{Cancel, Fault, FaultSource, Json, Millis, OpId, Origin, Time};
use parking_lot::Mutex;

use crate::controlled::{calls, done, impatient, says};

fn file() -> ControlSpec {
    let there = PredicateKind::FileExists { path: "a.md".to_owned() };
    impatient().with_contract(TaskContract::new("c", "Write").require("R1", "the file", there))
}

fn run_of(control: ControlSpec) -> Run {
    let mut spec = RunSpec::default();
    spec.limits.turns = 3;
    Run::new(Arc::new(spec), Origin::default(), Transcript::default())
        .with_control(Box::new(UntilDone::new(control)))
}

/// A world with one model that signals, and a source of facts that is as it is told.
struct World {
    facts: Answer,
    unstored: u32,
    models: u32,
}

impl World {
    fn new(facts: Answer) -> Self {
        Self { facts, unstored: 0, models: 0 }
    }
}

impl ScriptedWorld for World {
    fn perform(&mut self, _: OpId, op: &Op, _: &Transcript) -> Answer {
        Answer::now(match op {
            Op::Facts { .. } => return self.facts.clone(),
            Op::Prepare { .. } => {
                let prepared = harness_core::port::PreparedAgent::new("main", "", Arc::from([]));
                Reply::Prepared(Ok(Arc::new(prepared)))
            }
            Op::Model { .. } => {
                self.models += 1;
                Reply::Model(Ok(Arc::new(Message::Assistant(says("It is written.")))))
            }
            other => panic!("nobody asked for {other:?}"),
        })
    }

    fn persist(&mut self, _: &[harness_core::machine::Record]) -> Result<(), String> {
        if self.unstored == 0 {
            return Ok(());
        }
        self.unstored -= 1;
        Err("the disk is full".to_owned())
    }
}

/// Control without a signal: an answer claims to be the end.
fn unsignalled() -> ControlSpec {
    let mut control = file();
    control.signal = None;
    control
}

fn found(is_there: bool) -> Answer {
    let mut found = FactsFound::default();
    let fact = serde_json::json!({"is": "file", "bytes": 3});
    if is_there {
        found.files.insert("a.md".to_owned(), serde_json::from_value(fact).expect("a fact"));
    }
    Answer::now(Reply::Facts(Ok(Json::of(&found).expect("JSON"))))
}

/// The decisions of a run in such a world, and how it ended.
#[track_caller]
fn check(facts: Answer, expected: &str) {
    let mut driver = ScriptedDriver::new(run_of(unsignalled()), World::new(facts), Time(0));
    let Ran::Ended(end) = driver.run(Start::prompt(Message::user("go"))) else {
        panic!("it did not end: {:?}", driver.open())
    };
    let codes = driver.events().iter().filter_map(|event| match ControlEvent::of(&event.kind)? {
        ControlEvent::StopDecided { decision } => Some(decision.code.as_str()),
        _ => None,
    });
    assert_eq!(format!("{} -> {}", codes.collect::<Vec<_>>().join(" "), end.reason()), expected);
}

#[test]
fn facts_that_are_not_known_are_not_met() {
    let unmet = "contract_not_satisfied contract_not_satisfied max_turns -> max_turns_reached";
    check(found(true), "agent_done -> answer_finalized");
    check(found(false), unmet);
    check(Answer::now(Reply::Facts(Err(Fault::new(FaultSource::Facts, "down", "no files")))), unmet);
    check(Answer::now(Reply::Interrupted { partial: None }), unmet);
}

#[test]
fn a_source_of_facts_that_hangs_is_cut_off() {
    let late = Answer::After(Millis(10_000_000), Reply::Interrupted { partial: None });
    check(late, "contract_not_satisfied contract_not_satisfied max_turns -> max_turns_reached");
}

#[test]
fn a_run_that_is_cancelled_while_it_is_judged_ends_cancelled_with_its_report() {
    let mut driver = ScriptedDriver::new(run_of(unsignalled()), World::new(Answer::Open), Time(0));
    driver.input_at(Time(10), Input::Cancel { by: "test".into() });
    let Ran::Ended(end) = driver.run(Start::prompt(Message::user("go"))) else { panic!("it did not end") };
    let report = ControlReport::of(&end).expect("a report");
    assert_eq!((end.reason().as_str(), report.status.as_str()), ("cancelled", "cancelled"));
    assert_eq!(report.decision.code, StopCode::Cancelled);
}

#[test]
fn a_record_that_could_not_be_stored_does_not_lose_the_question() {
    let mut driver = ScriptedDriver::new(run_of(unsignalled()), World::new(found(true)), Time(0));
    driver.outside_mut().unstored = u32::MAX;
    let Ran::Ended(end) = driver.run(Start::prompt(Message::user("go"))) else {
        panic!("it did not end: {:?}", driver.open())
    };
    assert_eq!(end.reason().as_str(), "answer_finalized");
    assert!(end.persist_failed.is_some());
}

#[test]
fn law_7_the_inputs_alone_rebuild_a_controlled_run() {
    let mut driver = ScriptedDriver::new(run_of(unsignalled()), World::new(found(false)), Time(0));
    assert!(matches!(driver.run(Start::prompt(Message::user("go"))), Ran::Ended(_)));
    let mut again = run_of(unsignalled());
    replay(&mut again, driver.inputs());
    let state = |run: &Run| run.control().save().text().to_owned();
    assert_eq!(state(&again), state(driver.machine()));
}

#[tokio::test]
async fn law_7_the_evidence_of_the_events_is_that_of_the_state() {
    let published =
        PredicateKind::ToolResultSuccess { tool_name: "publish".into(), args_match: None, min_count: 1 };
    let contract = TaskContract::new("c", "Publish").require("R1", "published", published);
    let folded = Arc::new(Mutex::new(EvidenceIndex::of(&contract)));
    let model = ScriptedModel::new([calls(&[("publish", "{}")]), says("published"), done()]);
    let mut ports = Ports::new(Arc::new(model), Arc::new(VirtualClock::still(Time(0))));
    let publish = FnTool::with_schema("publish", "publishes", Json::empty_object(), |_: Json, _| async {
        ToolOutcome::text("v2")
    });
    ports.tools = Arc::new(harness_core::tool::Toolbox::new([Arc::new(publish) as _]));
    ports.hub.fold(Arc::clone(&folded));
    let mut spec = RunSpec::default();
    spec.limits.turns = 2;
    spec.turn.on_tool_failure = harness_core::turn::OnToolFailure::Answer;
    let control = UntilDone::new(impatient().with_contract(contract));
    let mut run =
        Run::new(Arc::new(spec), Origin::default(), Transcript::default()).with_control(Box::new(control));
    drive(&mut run, &ports, &Cancel::never(), Start::prompt(Message::user("go"))).await;
    let state = ControlState::of(&run).expect("a controlled run");
    assert_eq!(*folded.lock(), *state.evidence());
    assert_ne!(*state.evidence(), EvidenceIndex::default());
}

#[test]
fn a_decision_and_the_guidance_are_made_without_the_loop() {
    let spec = ControlSpec::default().with_signal(SignalSpec::default()).with_work(WorkSpec::default());
    let mut state = ControlState::new(&spec);
    state.note_message(&spec, 1, &Message::Assistant(done()));
    let (asked, found) = (FactsAsk::default(), FactsFound::default());
    let at = DecisionCx {
        spec: &spec,
        mode: StopMode::StrictAutomation,
        turn: 1,
        max_turns: 9,
        asked: &asked,
        found: &found,
        now: Time(0),
    };
    let outcome = state.turn_over(&spec);
    assert_eq!(outcome, TurnOutcome::Silent, "a call without a result is no signal");
    let refusal = state.judge(&at, TurnOutcome::Done { signal: false });
    let decision = state.decide(&at, TurnOutcome::Done { signal: false }, refusal, None);
    assert_eq!((decision.code, decision.retries), (StopCode::WorkCompleteNotCalled, Some(1)));

    let mut control = UntilDone::new(spec).with_state(state);
    let at = |turn| RunProgress { turn, max_turns: 9, ..RunProgress::default() };
    assert_eq!(control.guide(&at(1)), None);
    let mut late = at(9);
    late.used[0] = Used { what: "turns".into(), used: 9, most: 9 };
    let guidance = control.guide(&late).expect("the budget is almost used up").joined_text();
    let [event] = control.take_events().try_into().expect("one event");
    assert!(
        event.text().contains(r#""sections":["instructions.approaching_turn_limit","budget"]"#),
        "{event}"
    );
    assert!(guidance.contains("- 9 of 9 turns"));
}

/// Knows everything, at once.
struct Knows;

impl FactSource for Knows {
    async fn gather(&self, ask: &Json, _: &DecideCx) -> Result<Json, Fault> {
        let ask: FactsAsk = ask.to().expect("a question");
        let mut found = FactsFound::default();
        found.schemas = ask.schemas.iter().map(|_| Ok(())).collect();
        Ok(Json::of(&found).expect("JSON"))
    }
}

#[tokio::test]
async fn a_source_of_facts_of_the_application_is_asked_through_the_ports() {
    let schema = PredicateKind::JsonSchemaValid {
        schema: serde_json::json!({"type": "object"}),
        source: harness_control::contract::SchemaSource::Response,
    };
    let mut control =
        impatient().with_contract(TaskContract::new("c", "Tell").require("R1", "an object", schema));
    control.signal = None;
    let mut ports = Ports::new(
        Arc::new(ScriptedModel::new([says(r#"{"a":1}"#)])),
        Arc::new(VirtualClock::still(Time(0))),
    );
    ports.facts = Some(Arc::new(Knows));
    let mut run = Run::new(Arc::default(), Origin::default(), Transcript::default())
        .with_control(Box::new(UntilDone::new(control)));
    let end = drive(&mut run, &ports, &Cancel::never(), Start::prompt(Message::user("go"))).await;
    assert_eq!(end.reason().as_str(), "answer_finalized");
}

#[test]
fn settings_that_can_not_be_meant_are_all_told() {
    let mut control = file().with_stall(harness_control::StallSpec::after(1));
    control.guidance.texts.insert("greeting".to_owned(), "hi".to_owned());
    control.guidance.budget_from = 2.0;
    control.signal = Some(SignalSpec::default());
    let told: Vec<_> = control.check().iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "invalid `stall.threshold` 1: expected at least 2",
            "invalid `guidance.budget_from` 2: expected a number between 0 and 1",
            "unknown text `greeting` in `guidance.texts`: expected one of items, budget, environment, continuation, \
             work_complete_missing, contract_gap, acceptability, control_invariant, work_items_incomplete, \
             hook_block, stall_nudge",
        ]
    );
    let mut effects = Vec::new();
    run_of(ControlSpec::default()).advance(Input::Wake, Time(0), &mut effects);
    assert!(effects.as_slice().is_empty(), "nothing happens before the start");
}

#[test]
fn settings_read_back_and_refuse_what_they_do_not_know() {
    let control = file().with_work(WorkSpec::default());
    let text = serde_json::to_string(&control).expect("JSON");
    assert_eq!(serde_json::from_str::<ControlSpec>(&text).expect("settings"), control);
    let fault = serde_json::from_str::<ControlSpec>(r#"{"signals":{}}"#).expect_err("unknown");
    assert!(fault.to_string().contains("unknown field `signals`"), "{fault}");
}
