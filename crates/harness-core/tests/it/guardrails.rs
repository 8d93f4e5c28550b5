//! Guardrails: what they let pass, what becomes of what they refuse.

use std::sync::Arc;

use harness_core::decide::{
    Check, CheckDecision, CheckVerdict, DecideCx, DynCheck, Guarded, OnError, Points, Subject, check,
};
use harness_core::driver::{Ports, drive};
use harness_core::machine::Start;
use harness_core::message::{AssistantMessage, Message, ToolCall};
use harness_core::testing::{EventLog, ScriptedModel, ScriptedTools, VirtualClock};
use harness_core::tool::{ToolDef, ToolOutcome};
use harness_core::transcript::Transcript;
use harness_core::turn::{Turn, TurnSpec};
use harness_core::{Cancel, End, Evidence, Fault, FaultSource, Json, Millis, Origin, Time};
use parking_lot::Mutex;

use crate::bare::bare;

/// What a guardrail does.
#[derive(Clone, Copy, Debug)]
enum Does {
    Pass,
    Trip,
    Amend,
    Again,
    Fault,
    Panic,
    Hang,
}

/// A guardrail that does one thing, and notes what it was asked about.
#[derive(Clone)]
struct Rail {
    name: &'static str,
    does: Does,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Check for Rail {
    async fn judge(&self, subject: &Subject, _: &DecideCx) -> Result<CheckDecision, Fault> {
        let text = subject.text();
        self.asked.lock().push(format!("{} {text}", self.name));
        let verdict = match self.does {
            Does::Pass => CheckVerdict::Accept,
            Does::Trip => CheckVerdict::refuse(format!("no {text}")),
            Does::Amend => CheckVerdict::Amend(format!("{text}, amended")),
            Does::Again => CheckVerdict::Continue { guidance: format!("not {text}") },
            Does::Fault => {
                return Err(Fault::new(FaultSource::Guardrail, "offline", "the checker is offline"));
            }
            Does::Panic => panic!("out of order"),
            Does::Hang => std::future::pending().await,
        };
        Ok(CheckDecision { verdict, facts: Json::parse("[1]").ok() })
    }
}

struct Seen {
    end: Arc<End>,
    log: Vec<String>,
    events: Vec<String>,
    asked: Vec<String>,
    models: u32,
}

struct Case {
    spec: TurnSpec,
    /// Changes every check.
    rules: fn(Guarded<dyn DynCheck>) -> Guarded<dyn DynCheck>,
    input: Vec<Does>,
    output: Vec<Does>,
    steps: Vec<AssistantMessage>,
}

fn case() -> Case {
    let steps = vec![AssistantMessage::text("yes")];
    Case { spec: bare(), rules: |check| check, input: Vec::new(), output: Vec::new(), steps }
}

impl Case {
    fn input(mut self, does: &[Does]) -> Self {
        self.input = does.to_vec();
        self
    }

    fn output(mut self, does: &[Does]) -> Self {
        self.output = does.to_vec();
        self
    }

    fn steps(mut self, steps: impl IntoIterator<Item = AssistantMessage>) -> Self {
        self.steps = steps.into_iter().collect();
        self
    }

    fn spec(mut self, change: impl FnOnce(&mut TurnSpec)) -> Self {
        change(&mut self.spec);
        self
    }

    fn rules(mut self, rules: fn(Guarded<dyn DynCheck>) -> Guarded<dyn DynCheck>) -> Self {
        self.rules = rules;
        self
    }

    fn run(self) -> Seen {
        let asked = Arc::default();
        let rails = |does: &[Does], points: Points| {
            let rails = ["first", "second", "third"].into_iter().zip(does.to_vec());
            let rail =
                |(name, does)| check::new(name, points, Rail { name, does, asked: Arc::clone(&asked) });
            rails.map(rail).map(self.rules).collect::<Vec<_>>()
        };
        let model = ScriptedModel::new(self.steps);
        let events = EventLog::default();
        let mut ports = Ports::new(Arc::new(model), Arc::new(VirtualClock::jumping(Time(0))));
        let mut bye = ToolOutcome::text("bye");
        bye.terminate = true;
        ports.tools = Arc::new(ScriptedTools::new([ToolDef::new("leave", "")]).answering([bye]));
        ports.checks = rails(&self.input, Points::PROMPT);
        ports.checks.extend(rails(&self.output, Points::ANSWER));
        ports.hub.fold(events.clone());
        let spec = Arc::new(self.spec);
        let mut turn = Turn::new(spec, Origin::default(), Transcript::default());
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let end = runtime.block_on(drive(
            &mut turn,
            &ports,
            &Cancel::never(),
            Start::prompt(Message::user("may I?")),
        ));
        let asked: Vec<String> = asked.lock().clone();
        Seen {
            log: turn
                .log()
                .iter()
                .map(|message| format!("{} {}", message.role(), message.joined_text()))
                .collect(),
            events: events.lines().into_iter().filter(|line| line.starts_with("decided")).collect(),
            models: end.usage.model_calls,
            asked,
            end,
        }
    }

    /// Why it ended, what it ended with, and what is in the transcript.
    #[track_caller]
    fn check(self, reason: &str, answer: Option<&str>, log: &[&str]) -> Seen {
        let seen = self.run();
        assert_eq!((seen.end.reason().as_str(), seen.end.answer.as_deref()), (reason, answer));
        assert_eq!(seen.log, log);
        seen
    }
}

const BOTH: [&str; 2] = ["user may I?", "assistant yes"];

#[test]
fn what_passes_goes_on() {
    let seen =
        case().input(&[Does::Pass]).output(&[Does::Pass]).check("answer_finalized", Some("yes"), &BOTH);
    assert_eq!(seen.asked, ["first may I?", "first yes"]);
    assert_eq!(seen.events, ["decided prompt first accept", "decided answer first accept"]);
}

#[test]
fn a_refused_prompt_reaches_neither_the_model_nor_the_transcript() {
    let seen = case().input(&[Does::Trip]).check("guardrail_triggered", None, &[]);
    assert_eq!(seen.models, 0);
    assert_eq!(seen.events, [r#"decided prompt first refuse "no may I?""#]);
    let message = seen.end.stop.evidence.message();
    assert_eq!(message.as_deref(), Some("Input guardrail \"first\" triggered. Reason: no may I?"));
}

#[test]
fn a_refused_answer_is_believed_by_nobody() {
    let seen = case().output(&[Does::Trip]).check("guardrail_triggered", None, &["user may I?"]);
    assert_eq!(seen.models, 1, "what the model used counts");
    let message = seen.end.stop.evidence.message();
    assert_eq!(message.as_deref(), Some("Output guardrail \"first\" triggered. Reason: no yes"));
    assert_eq!(seen.end.continuation, None);
}

#[test]
fn a_guardrail_without_an_answer_is_triggered() {
    for (does, why) in [
        (Does::Fault, "the check failed: the checker is offline"),
        (Does::Panic, "the check failed: panicked: out of order"),
        (Does::Hang, "the check failed: no decision within 60.0 s"),
    ] {
        let evidence = |seen: Seen| match seen.end.stop.evidence.clone() {
            Evidence::Guardrail { reason, .. } => reason.expect("a reason"),
            other => panic!("{other:?}"),
        };
        assert_eq!(evidence(case().input(&[does]).check("guardrail_triggered", None, &[])), why);
        let output = case().output(&[does]).check("guardrail_triggered", None, &["user may I?"]);
        assert_eq!(evidence(output), why);
    }
}

#[test]
fn a_guardrail_without_an_answer_may_be_told_to_pass() {
    for does in [Does::Fault, Does::Panic, Does::Hang] {
        let lenient = case().rules(|check| check.on_error(OnError::Lenient).within(Millis(50)));
        lenient.input(&[does]).output(&[does]).check("answer_finalized", Some("yes"), &BOTH);
    }
}

#[test]
fn a_hanging_guardrail_is_cut_off_at_the_deadline() {
    let case = case()
        .input(&[Does::Hang])
        .spec(|spec| spec.limits.elapsed = Some(Millis(50)))
        .rules(|check| check.within(None));
    case.check("timeout_reached", None, &[]);
}

#[test]
fn checks_are_asked_in_their_order_until_one_refuses() {
    let seen = case().input(&[Does::Pass, Does::Trip, Does::Pass]).check("guardrail_triggered", None, &[]);
    assert_eq!(seen.asked, ["first may I?", "second may I?"]);
    let passing = [Does::Pass; 3];
    case().input(&passing).output(&passing).check("answer_finalized", Some("yes"), &BOTH);
}

#[test]
fn amended_words_count_and_are_what_later_checks_see() {
    let log = ["user may I?, amended", "assistant yes, amended"];
    let seen = case().input(&[Does::Amend, Does::Pass]).output(&[Does::Amend, Does::Pass]);
    let seen = seen.check("answer_finalized", Some("yes, amended"), &log);
    let asked = ["first may I?", "second may I?, amended", "first yes", "second yes, amended"];
    assert_eq!(seen.asked, asked);
    let refused =
        case().output(&[Does::Amend, Does::Trip]).check("guardrail_triggered", None, &["user may I?"]);
    assert!(!format!("{:?}", refused.end).contains("yes\""), "{:?}", refused.end);
}

#[test]
fn an_answer_may_be_sent_back_to_the_model() {
    let steps = [AssistantMessage::text("yes"), AssistantMessage::text("no")];
    let log = ["user may I?", "assistant yes", "user not yes", "assistant no"];
    let only_first = case().steps(steps).output(&[Does::Again]);
    let seen = only_first.spec(|spec| spec.limits.iterations = 2).run();
    assert_eq!(seen.log[..4], log.map(str::to_owned));
    assert_eq!(seen.models, 2);
    case().input(&[Does::Again]).check("guardrail_triggered", None, &[]);
}

#[test]
fn of_checks_that_are_asked_at_once_the_strictest_counts_and_a_refusal_waits_for_none() {
    let run = |does: &[Does]| {
        let asked = Arc::default();
        let rail = |does: &Does| -> Arc<dyn DynCheck> {
            Arc::new(Rail { name: "one", does: *does, asked: Arc::clone(&asked) })
        };
        let all = check::all("both", Points::ANSWER, does.iter().map(rail));
        let subject =
            Subject::Answer { text: "yes".into(), agent: "main".into(), message: None, output: None };
        let log = Transcript::default();
        let cx = DecideCx::new(log.prefix(), Arc::default(), Cancel::never(), Time(0));
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let said = runtime.block_on(all.judge(&subject, &cx, &VirtualClock::jumping(Time(0)))).answer;
        said.map_or_else(|fault| fault.code.to_string(), |decision| decision.verdict.as_str().to_owned())
    };
    assert_eq!(run(&[Does::Pass, Does::Amend, Does::Again]), "continue");
    assert_eq!(run(&[Does::Hang, Does::Trip]), "refuse");
    assert_eq!(run(&[Does::Fault, Does::Trip]), "refuse");
    assert_eq!(run(&[Does::Fault, Does::Pass]), "offline");
    assert_eq!(run(&[Does::Pass, Does::Hang]), "timeout");
}

#[test]
fn questions_and_the_words_of_ending_tools_are_answers_too() {
    let question = || [AssistantMessage::clarification("Which?")];
    let seen = case().steps(question()).output(&[Does::Pass]).run();
    assert_eq!(
        (seen.end.reason().as_str(), seen.asked),
        ("clarification_required", vec!["first Which?".to_owned()])
    );
    case().steps(question()).output(&[Does::Trip]).check("guardrail_triggered", None, &["user may I?"]);
    let leave = || [AssistantMessage::calls([ToolCall::new("c1", "leave", Json::empty_object())])];
    let log = ["user may I?", "assistant ", "toolResult bye"];
    case().steps(leave()).output(&[Does::Pass]).check("answer_finalized", Some("bye"), &log);
    case().steps(leave()).output(&[Does::Trip]).check("guardrail_triggered", None, &log);
}

#[test]
fn calls_and_refusals_are_no_answers() {
    let seen = case().steps([AssistantMessage::refusal("no")]).output(&[Does::Trip]).run();
    assert_eq!((seen.end.reason().as_str(), seen.asked.len()), ("model_refused", 0));
}
