//! Checks of results and of outputs of no use, through the real driver.

use std::sync::Arc;

use harness_core::decide::{
    Check, CheckDecision, CheckVerdict, DecideCx, DynCheck, Guarded, OnError, Points, Subject, check,
};
use harness_core::driver::{Ports, drive};
use harness_core::machine::Start;
use harness_core::message::{AssistantMessage, Invalid, Message, ToolCall};
use harness_core::outcome::{AskReason, Question};
use harness_core::testing::{EventLog, ModelStep, ScriptedModel, ScriptedTools, VirtualClock};
use harness_core::tool::{ToolDef, ToolOutcome};
use harness_core::transcript::Transcript;
use harness_core::turn::Turn;
use harness_core::{Cancel, End, Evidence, Fault, FaultSource, Json, Millis, Origin, Time};
use parking_lot::Mutex;

use crate::bare::bare;

/// What a [`Host`] does.
#[derive(Clone)]
enum Does {
    Says(CheckVerdict),
    Fault,
    Panic,
    Hang,
}

/// Notes what it sees and does one thing at one point.
#[derive(Clone)]
struct Host {
    at: &'static str,
    does: Does,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Check for Host {
    async fn judge(&self, subject: &Subject, cx: &DecideCx) -> Result<CheckDecision, Fault> {
        let (point, what, progress) = match subject {
            Subject::Result { call, outcome, progress } => {
                let point = if outcome.is_error() { "error" } else { "result" };
                (point, call.id.as_str().to_owned(), progress)
            }
            Subject::Invalid { invalid, progress } => ("invalid", invalid.reason.clone(), progress),
            other => panic!("{other:?}"),
        };
        let line = format!("{point} {what} {}/{}", progress.iteration, cx.log.len());
        self.seen.lock().push(line);
        if point != self.at {
            return Ok(CheckVerdict::Accept.into());
        }
        match &self.does {
            Does::Says(verdict) => Ok(verdict.clone().into()),
            Does::Fault => Err(Fault::new(FaultSource::Gate, "broken", "it broke")),
            Does::Panic => panic!("out of order"),
            Does::Hang => std::future::pending().await,
        }
    }
}

fn host(at: &'static str, does: Does) -> Host {
    Host { at, does, seen: Arc::default() }
}

fn lenient(host: &Host) -> Guarded<dyn DynCheck> {
    strict(host).on_error(OnError::Lenient)
}

fn strict(host: &Host) -> Guarded<dyn DynCheck> {
    check::new("host", Points::RESULT.and(Points::INVALID), host.clone()).within(None)
}

fn calls(ids: &[&str]) -> ModelStep {
    AssistantMessage::calls(ids.iter().map(|id| ToolCall::new(*id, "t", Json::empty_object()))).into()
}

struct Played {
    end: Arc<End>,
    seen: Vec<String>,
    events: Vec<String>,
    texts: Vec<String>,
}

/// A turn of two calls, the second of which fails, then an invalid output, then an answer.
async fn play(host: &Host, guarded: Guarded<dyn DynCheck>) -> Played {
    let model = ScriptedModel::new([
        calls(&["a", "b"]),
        AssistantMessage::invalid(&Invalid::new("garbled")).into(),
        AssistantMessage::text("done").into(),
    ]);
    let tools = ScriptedTools::new([ToolDef::new("t", "")])
        .answering([ToolOutcome::text("one"), ToolOutcome::error("bad", "it did not work")]);
    let (clock, events) = (VirtualClock::jumping(Time(0)), EventLog::default());
    let mut ports = Ports::new(Arc::new(model), Arc::new(clock));
    ports.tools = Arc::new(tools);
    ports.checks.push(guarded);
    ports.hub.fold(events.clone());
    let mut turn = Turn::new(Arc::new(bare()), Origin::default(), Transcript::default());
    let end = drive(&mut turn, &ports, &Cancel::never(), Start::prompt(Message::user("go"))).await;
    let seen = host.seen.lock().clone();
    let texts = turn.log().iter().map(|message| message.joined_text()).collect();
    Played { end, seen, events: events.lines(), texts }
}

#[tokio::test]
async fn each_sees_its_point_in_order() {
    let nothing = host("nowhere", Does::Says(CheckVerdict::Accept));
    let played = play(&nothing, strict(&nothing)).await;
    assert_eq!(played.seen, ["result a 1/3", "error b 1/4", "invalid garbled 2/5"]);
    assert_eq!(played.end.answer.as_deref(), Some("done"));
}

#[tokio::test]
async fn a_question_ends_the_turn_and_stands_in_the_transcript() {
    let asks =
        host("result", Does::Says(CheckVerdict::Ask(Question::new(" Which? ", AskReason::EmptyResults))));
    let played = play(&asks, strict(&asks)).await;
    assert_eq!(played.end.reason().as_str(), "clarification_required");
    assert_eq!(played.end.answer.as_deref(), Some("Which?"));
    let Evidence::ToolResult(evidence) = &played.end.stop.evidence else { panic!("{:?}", played.end.stop) };
    assert_eq!((evidence.call_id.as_str(), evidence.reason), ("a", Some(AskReason::EmptyResults)));
    assert_eq!(played.seen, ["result a 1/3"]);
    assert_eq!(played.texts[4], "Which?");
    assert!(played.texts[3].contains("did not run"), "{:?}", played.texts);
}

#[tokio::test]
async fn a_blank_question_asks_nothing() {
    let blank = host("result", Does::Says(CheckVerdict::Ask(Question::new("  ", AskReason::Custom))));
    let played = play(&blank, strict(&blank)).await;
    assert_eq!(played.end.answer.as_deref(), Some("done"));
    assert!(played.events.contains(&"decided #a result host accept".to_owned()), "{:?}", played.events);
}

#[tokio::test]
async fn a_refused_result_ends_the_turn_and_stays() {
    let refuses = host("result", Does::Says(CheckVerdict::refuse("it holds a password")));
    let played = play(&refuses, strict(&refuses)).await;
    assert_eq!(played.end.reason().as_str(), "guardrail_triggered");
    let message = played.end.stop.evidence.message();
    assert_eq!(message.as_deref(), Some("Result guardrail \"host\" triggered. Reason: it holds a password"));
    assert_eq!(played.texts[2], "one");
}

#[tokio::test]
async fn a_check_may_say_what_the_model_reads_behind_an_output_of_no_use() {
    let guides = host("invalid", Does::Says(CheckVerdict::Continue { guidance: "Answer in prose.".into() }));
    let played = play(&guides, strict(&guides)).await;
    assert_eq!(played.end.answer.as_deref(), Some("done"));
    assert!(played.texts.contains(&"Answer in prose.".to_owned()), "{:?}", played.texts);
}

#[tokio::test]
async fn a_fault_or_a_panic_of_a_lenient_check_is_told_and_changes_nothing() {
    for at in ["result", "error", "invalid"] {
        for does in [Does::Fault, Does::Panic] {
            let fails = host(at, does);
            let played = play(&fails, lenient(&fails)).await;
            assert_eq!(played.end.answer.as_deref(), Some("done"));
        }
    }
}

#[tokio::test]
async fn a_fault_of_a_strict_check_ends_the_turn() {
    for at in ["result", "error", "invalid"] {
        let fails = host(at, Does::Fault);
        let played = play(&fails, strict(&fails)).await;
        assert_eq!(played.end.reason().as_str(), "guardrail_triggered", "{at}");
    }
}

#[tokio::test]
async fn the_deadline_cuts_off_a_check_that_hangs() {
    for at in ["result", "error", "invalid"] {
        let hangs = host(at, Does::Hang);
        let played = play(&hangs, lenient(&hangs)).await;
        assert_eq!(played.end.reason().as_str(), "timeout_reached", "{at}");
        assert_eq!(played.end.elapsed, Millis(32_000), "{at}");
    }
}
