//! A run dies after any effect; another process takes it up and comes to the same end.

use std::collections::BTreeMap;
use std::sync::Arc;

use harness_core::decide::{CheckDecision, CheckVerdict, Guard, Points, Subject};
use harness_core::event::EventKind;
use harness_core::machine::{Op, PortSet, Reply, Start};
use harness_core::message::{AssistantMessage, Message, ToolCall, Usage};
use harness_core::outcome::StopMode;
use harness_core::port::PreparedAgent;
use harness_core::run::{Run, RunResume, RunSpec};
use harness_core::testing::{Answer, Ran, ScriptedDriver, ScriptedWorld, event_line};
use harness_core::tool::{RetryClass, ToolDef, ToolOutcome};
use harness_core::transcript::Transcript;
use harness_core::{CallId, End, Json, OpId, Origin, Time};

const TURNS: u32 = 6;

/// A model that goes by what it sees: in each turn it calls two tools, one of which must not run twice, and
/// then answers. A check of the end wants six turns.
#[derive(Clone, Default)]
struct Desk {
    runs: BTreeMap<CallId, u32>,
    requests: u32,
}

fn tools() -> Vec<ToolDef> {
    let class = |name: &str, class| ToolDef::new(name, "").with_class(class);
    vec![class("look", RetryClass::Pure), class("pay", RetryClass::Unsafe)]
}

fn answer(log: &Transcript) -> AssistantMessage {
    let said = log.iter().filter(|message| message.as_assistant().is_some()).count();
    let message = if said % 2 == 0 {
        let call = |name: &str| ToolCall::new(format!("{name}{said}"), name, Json::empty_object());
        AssistantMessage::calls([call("look"), call("pay"), call("look2")].into_iter().take(2))
    } else {
        AssistantMessage::text(format!("answer {said}"))
    };
    message.with_usage(Usage::tokens(10, 1))
}

impl ScriptedWorld for Desk {
    fn perform(&mut self, _: OpId, op: &Op, log: &Transcript) -> Answer {
        Answer::now(match op {
            Op::Prepare { .. } => Reply::Prepared(Ok(Arc::new(PreparedAgent::new("main", "", tools())))),
            Op::Model { .. } => {
                self.requests += 1;
                Reply::Model(Ok(Arc::new(Message::Assistant(answer(log)))))
            }
            Op::Tool { call, .. } => {
                *self.runs.entry(call.id.clone()).or_default() += 1;
                Reply::Tool(Ok(Arc::new(ToolOutcome::text(format!("did {}", call.id)))))
            }
            Op::Check { subject, .. } => {
                let Subject::End { progress, .. } = &**subject else { panic!("{subject:?}") };
                let turn = progress.turn;
                let verdict = if turn < TURNS {
                    CheckVerdict::Continue { guidance: format!("go on after {turn}") }
                } else {
                    CheckVerdict::Accept
                };
                Reply::Check(Box::new(CheckDecision::from(verdict).into()))
            }
            other => panic!("{other:?}"),
        })
    }
}

fn spec() -> Arc<RunSpec> {
    let mut spec = RunSpec::default();
    (spec.mode, spec.limits.turns) = (StopMode::StrictAutomation, TURNS);
    Arc::new(spec)
}

fn ports() -> PortSet {
    let mut ports = PortSet::default();
    ports.checks = vec![Guard::new("six", Points::END)];
    ports
}

fn origin() -> Origin {
    let mut origin = Origin::default();
    origin.run = Some("r".into());
    origin
}

fn first() -> ScriptedDriver<harness_core::run::RunState, Desk> {
    let run = Run::new(spec(), origin(), Transcript::default());
    ScriptedDriver::new(run.with_ports(ports()), Desk::default(), Time(1_000)).saving_checkpoints()
}

fn begin() -> Start {
    Start::prompt(Message::user("go"))
}

/// What the next process does with what the dead one left.
fn next(
    dead: &ScriptedDriver<harness_core::run::RunState, Desk>,
) -> (ScriptedDriver<harness_core::run::RunState, Desk>, Start) {
    let durable = dead.journal().reopen();
    let start = if durable.messages.is_empty() && dead.checkpoint().is_none() {
        begin()
    } else {
        Start::resume().with_open_calls(durable.open_calls)
    };
    let log: Transcript = durable.messages.into_iter().collect();
    let run = match dead.checkpoint() {
        Some(saved) => {
            let fresh = Run::new(spec(), origin(), log);
            RunResume::read(saved).expect("its own form").onto(fresh).expect("it fits")
        }
        None => Run::new(spec(), origin(), log),
    };
    // A day later.
    let later = Time(dead.now().0 + 86_400_000);
    (ScriptedDriver::new(run.with_ports(ports()), dead.outside().clone(), later).saving_checkpoints(), start)
}

fn texts(driver: &ScriptedDriver<harness_core::run::RunState, Desk>) -> Vec<String> {
    driver.journal().messages().map(|message| message.joined_text()).collect()
}

/// The texts, but for those of calls that a crash interrupted.
#[track_caller]
fn same_but_for_repairs(expected: &[String], got: &[String], context: &str) {
    assert_eq!(expected.len(), got.len(), "{context}: {got:#?}");
    for (want, have) in expected.iter().zip(got) {
        let repaired = have.contains("was cut off") || have.contains("did not run");
        assert!(want == have || (want.starts_with("did pay") && repaired), "{context}: {want:?}, {have:?}");
    }
}

fn ended(ran: Ran) -> Option<Arc<End>> {
    match ran {
        Ran::Ended(end) => Some(end),
        Ran::Crashed => None,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_run_that_dies_after_any_effect_is_taken_up_and_ends_as_if_nothing_had_happened() {
    let mut whole = first();
    let expected = ended(whole.run(begin())).expect("an end");
    assert_eq!(
        (expected.reason().as_str(), expected.turns, expected.usage.model_calls),
        ("answer_finalized", TURNS, 12)
    );
    let all = texts(&whole);
    let mut crashes = 0;
    for n in 1.. {
        let mut dead = first().crash_after(n);
        if ended(dead.run(begin())).is_some() {
            break;
        }
        crashes += 1;
        let (mut driver, start) = next(&dead);
        let context = format!("crash after effect {n}");
        let end = ended(driver.run(start)).expect("an end");
        let told = || driver.events().iter().map(|e| event_line(&e.kind)).collect::<Vec<_>>().join("\n");
        assert_eq!((end.reason(), end.turns), (expected.reason(), TURNS), "{context}\n{}", told());
        same_but_for_repairs(&all, &texts(&driver), &format!("{context}\n{}", told()));
        assert_eq!(end.answer, expected.answer, "{context}");
        assert_eq!(end.usage, expected.usage, "{context}\n{}", told());
        assert_eq!(end.iterations, expected.iterations, "{context}\n{}", told());
        assert!(end.elapsed.0 < 86_400_000, "the time without a process does not count: {}", end.elapsed);
        for (call, runs) in &driver.outside().runs {
            assert!(
                *runs <= if call.as_str().starts_with("pay") { 1 } else { 2 },
                "{context}: #{call} ran {runs} times"
            );
        }
    }
    assert!(crashes > 150, "{crashes} crash points");
}

/// Calls with their results, in order: the call's name, and whether its one result is right behind its answer.
fn answered_calls(messages: &[Arc<Message>]) -> Vec<(CallId, bool)> {
    let mut calls = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let Some(answer) = message.as_assistant() else { continue };
        for (place, call) in answer.tool_calls().enumerate() {
            let behind = messages.get(at + 1 + place).and_then(|message| message.as_tool_result());
            let results = messages.iter().filter_map(|message| message.as_tool_result());
            let all = results.filter(|result| result.tool_call_id == call.id).count();
            calls.push((call.id.clone(), all == 1 && behind.is_some_and(|one| one.tool_call_id == call.id)));
        }
    }
    calls
}

#[test]
fn what_a_crash_leaves_open_is_repaired_once_told_and_never_repeated() {
    let mut left_open = 0;
    for n in 1.. {
        let mut dead = first().crash_after(n);
        if ended(dead.run(begin())).is_some() {
            break;
        }
        let open = dead.journal().reopen().open_calls;
        left_open += open.len();
        let (mut driver, start) = next(&dead);
        ended(driver.run(start)).expect("an end");
        for call in &open {
            let repaired = |kind: &EventKind| matches!(kind, EventKind::CallRepaired { call: repaired, .. } if repaired.id == call.call);
            let told = driver.events().iter().filter(|event| repaired(&event.kind)).count();
            assert_eq!(told, 1, "crash after effect {n}: {} was repaired {told} times", call.call);
        }
        let again = driver.journal().reopen();
        assert_eq!(again.open_calls.len(), 0, "crash after effect {n}: nothing is left to repair");
        let messages: Vec<_> = again.messages.into_iter().collect();
        for (call, legal) in answered_calls(&messages) {
            assert!(legal, "crash after effect {n}: {call} has its one result right behind its answer");
        }
    }
    assert!(left_open > 20, "{left_open} calls were left open");
}
