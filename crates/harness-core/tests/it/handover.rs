//! A run that another process takes over between two iterations goes on as if nothing had happened.

use std::collections::VecDeque;
use std::sync::Arc;

use harness_core::event::Event;
use harness_core::machine::{Effect, Input, Op, PortSet, Reply, ResumeErrorKind, Start};
use harness_core::message::{AssistantMessage, FinishReason, Message, ToolCall, Usage};
use harness_core::port::{Checkpoint, PreparedAgent};
use harness_core::run::{Run, RunResume, RunSpec, SNAPSHOT_VERSION};
use harness_core::tool::{RetryClass, ToolDef, ToolOutcome};
use harness_core::transcript::Transcript;
use harness_core::{EntryId, Json, Millis, Origin, Time};

fn fresh(log: Transcript) -> Run {
    let mut spec = RunSpec::default();
    (spec.turn.continue_broken, spec.turn.limits.tokens) = (2, 100_000);
    let (mut origin, mut ports) = (Origin::default(), PortSet::default());
    origin.run = Some("r".into());
    (ports.session, ports.steering, ports.listeners) = (true, true, true);
    Run::new(Arc::new(spec), origin, log).with_ports(ports)
}

fn take_over(dead: &Run, log: Transcript) -> Result<Run, ResumeErrorKind> {
    let state = Arc::new(dead.hand_over().expect("only the queue is waited for"));
    let messages = dead.log().len() as u64;
    let saved = Checkpoint::new("r".into(), Time(0), SNAPSHOT_VERSION, messages, state);
    RunResume::read(&saved).and_then(|saved| saved.onto(fresh(log))).map_err(|error| error.kind)
}

/// The reply of the world: `look` always says the same, other tools name their call; one message is in the queue.
fn reply(op: &Op, answers: &[AssistantMessage], log: &Transcript, drains: usize) -> Reply {
    let tools = ["look", "see", "pay"].map(|name| ToolDef::new(name, "").with_class(RetryClass::Pure));
    match op {
        Op::Prepare { .. } => Reply::Prepared(Ok(Arc::new(PreparedAgent::new("main", "Help.", tools)))),
        Op::Store { .. } => Reply::Stored(Ok(())),
        Op::Arguments { .. } => Reply::Arguments(Ok(())),
        Op::Model { .. } => {
            let said = log.iter().filter(|message| message.as_assistant().is_some()).count();
            let usage = Usage::tokens(10, 1 + said as u64);
            Reply::Model(Ok(Arc::new(Message::Assistant(answers[said].clone().with_usage(usage)))))
        }
        Op::Tool { call, .. } => {
            let text =
                if call.name.as_str() == "pay" { format!("paid {}", call.id) } else { "tea".to_owned() };
            Reply::Tool(Ok(Arc::new(ToolOutcome::text(text))))
        }
        Op::Drain { .. } => {
            let message = (EntryId::from("m"), Arc::new(Message::user("And milk.")));
            Reply::Drained(if drains == 2 { vec![message] } else { Vec::new() })
        }
        other => panic!("{other:?}"),
    }
}

/// Drives a run; before it drains for the time `at`, another one takes over. The events, and how often it drained.
fn play(answers: &[AssistantMessage], at: usize) -> (Vec<Event>, usize) {
    let (mut run, mut now, mut drains) = (fresh(Transcript::default()), Time(0), 0);
    let (mut events, mut effects, mut was_taken) = (Vec::new(), Vec::new(), false);
    let mut inputs = VecDeque::from([Input::Start(Box::new(Start::prompt(Message::user("Tea."))))]);
    while let Some(input) = inputs.pop_front() {
        now = if matches!(input, Input::Start(_)) { now } else { now.after(Millis(7)) };
        run.advance(input, now, &mut effects);
        for effect in std::mem::take(&mut effects) {
            match effect {
                Effect::Event(event) => events.push(event),
                Effect::Perform(_, Op::Drain { .. }) if drains + 1 == at && !was_taken => {
                    was_taken = true;
                    run = take_over(&run, run.log().iter().cloned().collect()).expect("it fits");
                    inputs.push_back(Input::Start(Box::new(Start::resume())));
                }
                Effect::Perform(id, op) => {
                    drains += usize::from(matches!(op, Op::Drain { .. }));
                    inputs.push_back(Input::Reply(id, reply(&op, answers, run.log(), drains)));
                }
                Effect::Done(_) => return (events, drains),
                Effect::AbortAll => panic!("nothing is in flight"),
            }
        }
    }
    panic!("the run has no end");
}

fn check(answers: &[AssistantMessage], end: &str) {
    let (undisturbed, drains) = play(answers, usize::MAX);
    let last = harness_core::testing::event_line(&undisturbed.last().expect("an event").kind);
    assert_eq!(last, end);
    for at in 1..=drains {
        let (events, _) = play(answers, at);
        assert!(events == undisturbed, "taken over at {at} of {drains}: {events:#?}, not {undisturbed:#?}");
    }
}

fn calls(names: &[&str]) -> AssistantMessage {
    AssistantMessage::calls(names.iter().map(|name| ToolCall::new(*name, *name, Json::empty_object())))
}

fn cut() -> AssistantMessage {
    let mut half = AssistantMessage::text("Half");
    half.stop_reason = FinishReason::Length;
    half
}

#[test]
fn a_run_goes_on_between_any_two_iterations() {
    let done = || AssistantMessage::text("Done.");
    check(&[done(), done()], "run_finished answer_finalized");
    check(&[calls(&["pay", "look"]), calls(&["pay"]), done(), done()], "run_finished answer_finalized");
}

#[test]
fn repeated_results_count_on() {
    let again = || calls(&["look"]);
    check(&[again(), again(), again(), again()], "run_finished redundant_tool_loop");
    let cycle = [["look"], ["see"]].iter().cycle().take(12).map(|names| calls(names));
    check(&cycle.collect::<Vec<_>>(), "run_finished redundant_tool_loop");
}

#[test]
fn broken_steps_count_on() {
    check(&[cut(), cut(), AssistantMessage::text("Done.")], "run_finished answer_finalized");
    check(&[cut(), cut(), cut(), cut()], "run_finished runtime_error");
}

#[test]
fn a_run_is_handed_over_only_while_it_waits_for_its_queue_and_over_its_own_transcript() {
    let (mut run, mut effects) = (fresh(Transcript::default()), Vec::new());
    let mut inputs = VecDeque::from([Input::Start(Box::new(Start::prompt(Message::user("Tea."))))]);
    assert_eq!(run.hand_over(), None);
    while let Some(input) = inputs.pop_front() {
        run.advance(input, Time(0), &mut effects);
        for effect in std::mem::take(&mut effects) {
            let Effect::Perform(id, op) = effect else { continue };
            if let Op::Drain { .. } = op {
                let more = run.log().iter().cloned().chain([Arc::new(Message::user("More."))]);
                assert_eq!(take_over(&run, more.collect()).err(), Some(ResumeErrorKind::RunStale));
                let other = [Arc::new(Message::user("Coffee."))];
                assert_eq!(
                    take_over(&run, other.into_iter().collect()).err(),
                    Some(ResumeErrorKind::RunForeign)
                );
                return;
            }
            assert_eq!(run.hand_over(), None, "{op:?}");
            inputs.push_back(Input::Reply(id, reply(&op, &[], run.log(), 0)));
        }
    }
    panic!("the run did not drain");
}
