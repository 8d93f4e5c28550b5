//! Checks of the end of a run, through the real driver.

use std::collections::VecDeque;
use std::sync::Arc;

use harness_core::decide::{
    Check, CheckDecision, CheckVerdict, DecideCx, DynCheck, Guarded, OnError, Points, Subject, check,
};
use harness_core::driver::{Ports, drive};
use harness_core::machine::Start;
use harness_core::message::{AssistantMessage, Message, ToolCall};
use harness_core::outcome::{AskReason, ContinuationKind, Question, StopMode};
use harness_core::run::{Run, RunSpec};
use harness_core::testing::{EventLog, ModelStep, ScriptedModel, ScriptedTools, VirtualClock};
use harness_core::tool::{ToolDef, ToolOutcome};
use harness_core::transcript::Transcript;
use harness_core::{Cancel, End, Fault, FaultSource, Json, Origin, Time};
use parking_lot::Mutex;

/// Says what it is told to, in order, then accepts; notes what it saw.
#[derive(Clone, Default)]
struct Hook {
    says: Arc<Mutex<VecDeque<Result<CheckVerdict, Fault>>>>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Hook {
    fn saying(answers: impl IntoIterator<Item = Result<CheckVerdict, Fault>>) -> Self {
        Self { says: Arc::new(Mutex::new(answers.into_iter().collect())), ..Self::default() }
    }

    /// One that fails as stop hooks do.
    fn guarded(&self) -> Guarded<dyn DynCheck> {
        check::new("review", Points::END, self.clone()).on_error(OnError::LenientIfInteractive)
    }
}

impl Check for Hook {
    async fn judge(&self, subject: &Subject, _: &DecideCx) -> Result<CheckDecision, Fault> {
        let Subject::End { progress, .. } = subject else { panic!("{subject:?}") };
        let calls: Vec<_> = progress.tool_calls.iter().map(|(tool, n)| format!("{tool}={n}")).collect();
        let line = format!("{} {} {}", progress.turn, calls.join(","), progress.signalled);
        self.seen.lock().push(line);
        let says = self.says.lock().pop_front();
        says.unwrap_or(Ok(CheckVerdict::Accept)).map(CheckDecision::from)
    }
}

fn block() -> CheckVerdict {
    CheckVerdict::Continue { guidance: "the tests do not pass".into() }
}

fn broken() -> Fault {
    Fault::new(FaultSource::Gate, "down", "review service down")
}

struct Played {
    end: Arc<End>,
    seen: Vec<String>,
    /// What the user side said.
    said: Vec<String>,
    /// The last message.
    last: String,
    events: Vec<String>,
}

/// Turns of two calls and an answer each, the second of which gives the signal.
async fn play(hook: &Hook, mode: StopMode) -> Played {
    play_with(hook, hook.guarded(), mode).await
}

async fn play_with(hook: &Hook, guarded: Guarded<dyn DynCheck>, mode: StopMode) -> Played {
    let calls = |names: [&str; 2]| {
        let call = |(n, name): (usize, &str)| ToolCall::new(format!("c{n}"), name, Json::empty_object());
        ModelStep::answer(AssistantMessage::calls(names.into_iter().enumerate().map(call)))
    };
    let answer = || ModelStep::answer(AssistantMessage::text("done"));
    let model = ScriptedModel::new([
        calls(["read", "read"]),
        answer(),
        calls(["read", "work_complete"]),
        answer(),
        answer(),
    ]);
    let tools = ScriptedTools::new(["read", "work_complete"].map(|name| ToolDef::new(name, "")))
        .answering((0..4).map(|_| ToolOutcome::text("ok")));
    let events = EventLog::default();
    let mut ports = Ports::new(Arc::new(model), Arc::new(VirtualClock::still(Time(0))));
    ports.tools = Arc::new(tools);
    ports.hub.fold(events.clone());
    ports.checks.push(guarded);
    let mut spec = RunSpec::default();
    (spec.mode, spec.limits.turns) = (mode, 3);
    let mut run = Run::new(Arc::new(spec), Origin::default(), Transcript::default());
    let end = drive(&mut run, &ports, &Cancel::never(), Start::prompt(Message::user("go"))).await;
    let said = run.log().iter().filter(|message| matches!(***message, Message::User(_) | Message::Custom(_)));
    let seen = hook.seen.lock().clone();
    Played {
        end,
        seen,
        said: said.map(|message| message.joined_text()).collect(),
        last: run.log().last().map(|message| message.joined_text()).unwrap_or_default(),
        events: events.lines().into_iter().filter(|line| line.starts_with("decided")).collect(),
    }
}

#[tokio::test]
async fn a_check_that_asks_for_more_makes_the_run_go_on_and_what_it_sees_grows() {
    let played = play(&Hook::saying([Ok(block())]), StopMode::Interactive).await;
    assert_eq!(played.end.reason().as_str(), "answer_finalized");
    assert_eq!(played.seen, ["1 read=2 false", "2 read=3,work_complete=1 true"]);
    assert_eq!(played.said.len(), 2);
    assert!(played.said[1].contains("the tests do not pass"), "{:?}", played.said);
    let told = [r#"decided end review continue "the tests do not pass""#, "decided end review accept"];
    assert_eq!(played.events, told);
}

#[tokio::test]
async fn a_stop_hook_that_fails_lets_an_interactive_run_end_and_a_strict_one_go_on() {
    let played = play(&Hook::saying([Err(broken())]), StopMode::Interactive).await;
    assert_eq!((played.end.reason().as_str(), played.end.turns), ("answer_finalized", 1));
    assert_eq!(played.events, ["decided end review accept"]);

    let played = play(&Hook::saying([Err(broken())]), StopMode::StrictAutomation).await;
    assert_eq!((played.end.reason().as_str(), played.end.turns), ("answer_finalized", 2));
    assert!(played.said[1].contains("the check failed: review service down"), "{:?}", played.said);
}

#[tokio::test]
async fn what_a_failure_means_can_be_said() {
    let fails = || Hook::saying([Err(broken())]);
    let strict = fails().guarded().on_error(OnError::Strict);
    assert_eq!(play_with(&fails(), strict, StopMode::Interactive).await.end.turns, 2);
    let lenient = fails().guarded().on_error(OnError::Lenient);
    assert_eq!(play_with(&fails(), lenient, StopMode::StrictAutomation).await.end.turns, 1);
}

#[tokio::test]
async fn a_verdict_that_means_nothing_at_an_end_is_a_failure() {
    let amends = Hook::saying([Ok(CheckVerdict::Amend("better".into()))]);
    let played = play(&amends, StopMode::StrictAutomation).await;
    assert_eq!(played.end.turns, 2);
    assert!(played.said[1].contains("`amend` means nothing at the point `end`"), "{:?}", played.said);
}

#[tokio::test]
async fn a_check_may_ask_the_user_before_the_run_ends() {
    let asks = Hook::saying([Ok(CheckVerdict::Ask(Question::new(" Shall I push it? ", AskReason::Custom)))]);
    let played = play(&asks, StopMode::Interactive).await;
    let end = &played.end;
    assert_eq!(
        (end.reason().as_str(), end.outcome().as_str()),
        ("clarification_required", "needs_clarification")
    );
    assert_eq!((end.answer.as_deref(), end.turns), (Some("Shall I push it?"), 1));
    assert_eq!(played.last, "Shall I push it?", "whoever goes on reads what was asked");
    assert_eq!(end.continuation.as_ref().map(|to| to.kind), Some(ContinuationKind::Clarification));
}

#[tokio::test]
async fn a_strict_run_that_stays_blocked_is_deferred() {
    let blocked = (0..9).map(|_| Ok(block()));
    let played = play(&Hook::saying(blocked), StopMode::StrictAutomation).await;
    assert_eq!((played.end.reason().as_str(), played.seen.len()), ("max_turns_reached", 3));
}
