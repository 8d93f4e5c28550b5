//! The run machine: what checks decide about an end that claims to be complete.

use std::collections::VecDeque;
use std::sync::Arc;

use harness_core::decide::{Check, CheckDecision, CheckVerdict, DecideCx, Points, Subject, check};
use harness_core::driver::{Ports, drive};
use harness_core::event::{Event, EventKind, Fold};
use harness_core::machine::{Input, Start};
use harness_core::message::{AssistantMessage, Message, Usage};
use harness_core::outcome::StopMode;
use harness_core::run::{Run, RunSpec};
use harness_core::testing::{ScriptedModel, VirtualClock};
use harness_core::transcript::Transcript;
use harness_core::{Cancel, End, Fault, Origin, RunId, Time};
use parking_lot::Mutex;

/// Judges as it is told, in order; accepts when nothing is left.
struct Told(Mutex<VecDeque<CheckVerdict>>);

impl Check for Told {
    async fn judge(&self, _: &Subject, _: &DecideCx) -> Result<CheckDecision, Fault> {
        Ok(self.0.lock().pop_front().unwrap_or(CheckVerdict::Accept).into())
    }
}

fn go_on(guidance: &str) -> CheckVerdict {
    CheckVerdict::Continue { guidance: guidance.into() }
}

/// The turn ids and stop reasons of all turns, in order.
#[derive(Clone, Default)]
struct Turns(Arc<Mutex<Vec<String>>>);

impl Fold for Turns {
    fn apply(&mut self, event: &Event) {
        if let EventKind::TurnFinished { end } = &event.kind {
            let turn = event.origin.turn.as_ref().map_or("", |id| id.as_str());
            self.0.lock().push(format!("{turn} {}", end.reason()));
        }
    }
}

/// Runs with one answer per turn and these judgements; gives the end, the texts said, the turns.
async fn run(
    answers: usize,
    judgements: impl IntoIterator<Item = CheckVerdict>,
    change: impl FnOnce(&mut RunSpec),
) -> (Arc<End>, Vec<String>, Vec<String>) {
    let steps =
        (1..=answers).map(|n| AssistantMessage::text(format!("answer {n}")).with_usage(Usage::tokens(10, 1)));
    let model = Arc::new(ScriptedModel::new(steps));
    let mut ports = Ports::new(model, Arc::new(VirtualClock::still(Time(0))));
    let told = Told(Mutex::new(judgements.into_iter().collect()));
    ports.checks = vec![check::new("told", Points::END, told)];
    let turns = Turns::default();
    ports.hub.fold(turns.clone());
    let mut spec = RunSpec::default();
    change(&mut spec);
    let mut origin = Origin::default();
    origin.run = Some(RunId::from("r"));
    let mut run = Run::new(Arc::new(spec), origin, Transcript::default());
    let end = drive(&mut run, &ports, &Cancel::never(), Start::prompt(Message::user("go"))).await;
    let texts = run.log().iter().map(|message| message.joined_text()).collect();
    let turns = turns.0.lock().clone();
    (end, texts, turns)
}

#[tokio::test]
async fn an_accepted_end_ends_the_run() {
    let (end, texts, turns) = run(1, [CheckVerdict::Accept], |_| {}).await;
    assert_eq!(end.reason().as_str(), "answer_finalized");
    assert_eq!(texts, ["go", "answer 1"]);
    assert_eq!(turns, ["r.1 answer_finalized"]);
}

#[tokio::test]
async fn a_gate_that_is_not_satisfied_asks_for_another_turn_with_guidance() {
    let (end, texts, turns) = run(2, [go_on("check the total")], |_| {}).await;
    assert_eq!((end.reason().as_str(), end.turns), ("answer_finalized", 2));
    assert_eq!(texts, ["go", "answer 1", "check the total", "answer 2"]);
    assert_eq!(turns, ["r.1 answer_finalized", "r.2 answer_finalized"]);
    assert_eq!(end.usage.input_tokens, Some(20), "the run's totals");
}

#[tokio::test]
async fn an_interactive_run_accepts_after_its_nudges_and_says_so() {
    let nagging = || (0..9).map(|_| go_on("not yet"));
    let (end, _, turns) = run(9, nagging(), |spec| spec.nudges = 2).await;
    assert_eq!(end.reason().as_str(), "completion_waived");
    assert_eq!(end.outcome().as_str(), "completed");
    assert_eq!(turns.len(), 3);
    let waived: Vec<_> =
        end.waived.iter().map(|waiver| (waiver.gate.as_str(), waiver.why.as_str())).collect();
    assert_eq!(waived, [("told", "not yet")]);
}

#[tokio::test]
async fn law_2_a_strict_run_never_accepts_and_is_deferred_at_its_limit() {
    let nagging = (0..9).map(|_| go_on("not yet"));
    let strict = |spec: &mut RunSpec| {
        spec.mode = StopMode::StrictAutomation;
        spec.limits.turns = 4;
    };
    let (end, _, turns) = run(9, nagging, strict).await;
    assert_eq!((end.reason().as_str(), end.outcome().as_str()), ("max_turns_reached", "deferred"));
    assert_eq!(turns.len(), 4);
    assert!(end.waived.is_empty());
}

#[tokio::test]
async fn a_waiver_is_visible_when_interactive_and_refused_when_strict() {
    let waive = || [CheckVerdict::Waive { why: "the user left".into() }];
    let (end, ..) = run(1, waive(), |_| {}).await;
    assert_eq!(end.reason().as_str(), "completion_waived");
    assert_eq!(end.waived[0].why, "the user left");
    let (end, texts, _) = run(2, waive(), |spec| spec.mode = StopMode::StrictAutomation).await;
    assert_eq!(end.reason().as_str(), "answer_finalized");
    assert_eq!(texts[2], "the user left");
}

#[tokio::test]
async fn law_3_the_limits_of_a_run_hold_inside_its_turns() {
    let nagging = (0..9).map(|_| go_on("not yet"));
    let (end, _, turns) = run(9, nagging, |spec| spec.limits.amount.iterations = 2).await;
    assert_eq!(end.reason().as_str(), "max_iterations_reached");
    assert_eq!(turns, ["r.1 answer_finalized", "r.2 answer_finalized", "r.3 max_iterations_reached"]);
    assert_eq!(end.usage.model_calls, 2);
}

#[tokio::test]
async fn a_deferred_run_leaves_a_continuation() {
    let nagging = (0..9).map(|_| go_on("not yet"));
    let strict = |spec: &mut RunSpec| {
        spec.mode = StopMode::StrictAutomation;
        spec.limits.turns = 2;
    };
    let (end, ..) = run(9, nagging, strict).await;
    let continuation = end.continuation.as_ref().expect("a continuation");
    assert_eq!((continuation.id.as_str(), continuation.transcript_len), ("r.2:deferred", 4));
    assert_eq!(continuation.stop_reason, end.reason());
}

#[test]
fn what_comes_before_the_start_changes_nothing_and_a_start_counts_once() {
    let mut run = Run::new(Arc::default(), Origin::default(), Transcript::default());
    let mut effects = Vec::new();
    run.advance(Input::Cancel { by: "nobody".into() }, Time(0), &mut effects);
    run.advance(Input::Wake, Time(0), &mut effects);
    assert!(effects.as_slice().is_empty());
    let start = || Input::Start(Box::new(Start::prompt(Message::user("go"))));
    run.advance(start(), Time(0), &mut effects);
    let begun = effects.as_slice().len();
    run.advance(start(), Time(0), &mut effects);
    assert!(begun > 0 && effects.as_slice().len() == begun);
}
