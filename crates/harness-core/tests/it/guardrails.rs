//! Guardrails: what they let pass, what becomes of what they refuse.

use std::sync::{Arc, Mutex};

use harness_core::decide::DecideCx;
use harness_core::driver::{Ports, drive};
use harness_core::machine::{Origin, Start};
use harness_core::message::{AssistantMessage, Message, ToolCall};
use harness_core::port::{
    GuardedAnswer, GuardrailRules, InputGuardrail, Inspection, OnGuardrailError, OutputGuardrail, ToolDef,
    ToolOutcome,
};
use harness_core::testing::{EventLog, ScriptedModel, ScriptedTools, VirtualClock};
use harness_core::transcript::Transcript;
use harness_core::turn::{Turn, TurnSpec};
use harness_core::{Cancel, End, Evidence, Fault, FaultSource, GateName, Json, Millis, Time};

use crate::bare::bare;

/// What a guardrail does.
#[derive(Clone, Copy, Debug)]
enum Does {
    Pass,
    Trip,
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

impl Rail {
    async fn find(&self, text: String) -> Result<Inspection, Fault> {
        self.asked.lock().expect("unpoisoned").push(format!("{} {text}", self.name));
        match self.does {
            Does::Pass => Ok(Inspection::pass().with_metadata(Json::parse("[1]").expect("JSON"))),
            Does::Trip => Ok(Inspection::trip(format!("no {text}"))),
            Does::Fault => Err(Fault::new(FaultSource::Guardrail, "offline", "the checker is offline")),
            Does::Panic => panic!("out of order"),
            Does::Hang => std::future::pending().await,
        }
    }
}

impl InputGuardrail for Rail {
    fn name(&self) -> GateName {
        self.name.into()
    }

    async fn inspect(&self, prompt: &[Arc<Message>], _: &DecideCx) -> Result<Inspection, Fault> {
        let texts: Vec<_> = prompt.iter().map(|message| message.joined_text()).collect();
        self.find(texts.join("+")).await
    }
}

impl OutputGuardrail for Rail {
    fn name(&self) -> GateName {
        self.name.into()
    }

    async fn inspect(&self, answer: &GuardedAnswer, _: &DecideCx) -> Result<Inspection, Fault> {
        self.find(answer.text.clone()).await
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
    rules: GuardrailRules,
    input: Vec<Does>,
    output: Vec<Does>,
    steps: Vec<AssistantMessage>,
}

fn case() -> Case {
    let steps = vec![AssistantMessage::text("yes")];
    Case { spec: bare(), rules: GuardrailRules::default(), input: Vec::new(), output: Vec::new(), steps }
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

    fn rules(mut self, change: impl FnOnce(&mut GuardrailRules)) -> Self {
        change(&mut self.rules);
        self
    }

    fn run(self) -> Seen {
        let asked = Arc::default();
        let rail = |at: usize, does: &Does| {
            let name = ["first", "second", "third"][at];
            Rail { name, does: *does, asked: Arc::clone(&asked) }
        };
        let model = ScriptedModel::new(self.steps);
        let events = EventLog::default();
        let mut ports = Ports::new(Arc::new(model), Arc::new(VirtualClock::jumping(Time(0))));
        let mut bye = ToolOutcome::text("bye");
        bye.terminate = true;
        ports.tools = Arc::new(ScriptedTools::new([ToolDef::new("leave", "")]).answering([bye]));
        ports.input_guardrails =
            self.input.iter().enumerate().map(|(at, does)| Arc::new(rail(at, does)) as _).collect();
        ports.output_guardrails =
            self.output.iter().enumerate().map(|(at, does)| Arc::new(rail(at, does)) as _).collect();
        ports.guardrails = self.rules;
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
        let asked: Vec<String> = asked.lock().expect("unpoisoned").clone();
        Seen {
            log: turn
                .log()
                .iter()
                .map(|message| format!("{} {}", message.role(), message.joined_text()))
                .collect(),
            events: events.lines().into_iter().filter(|line| line.starts_with("guardrail")).collect(),
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
    assert_eq!(seen.events, ["guardrail_decided first input pass", "guardrail_decided first output pass"]);
}

#[test]
fn a_refused_prompt_reaches_neither_the_model_nor_the_transcript() {
    let seen = case().input(&[Does::Trip]).check("guardrail_triggered", None, &[]);
    assert_eq!(seen.models, 0);
    assert_eq!(seen.events, [r#"guardrail_decided first input triggered "no may I?""#]);
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
        (Does::Fault, "the guardrail failed: the checker is offline"),
        (Does::Panic, "the guardrail failed: panicked: out of order"),
        (Does::Hang, "the guardrail failed: it gave no answer within 10.0 s"),
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
        let lenient = case().rules(|rules| rules.on_error = OnGuardrailError::Pass);
        lenient.input(&[does]).output(&[does]).check("answer_finalized", Some("yes"), &BOTH);
    }
}

#[test]
fn a_hanging_guardrail_is_cut_off_at_the_deadline() {
    let case = case()
        .input(&[Does::Hang])
        .spec(|spec| spec.limits.elapsed = Some(Millis(50)))
        .rules(|rules| rules.timeout = None);
    case.check("timeout_reached", None, &[]);
}

#[test]
fn all_guardrails_are_asked_at_once() {
    let seen = case().input(&[Does::Pass, Does::Trip, Does::Pass]).check("guardrail_triggered", None, &[]);
    assert_eq!(seen.asked.len(), 3);
    let passing = [Does::Pass; 3];
    case().input(&passing).output(&passing).check("answer_finalized", Some("yes"), &BOTH);
}

#[test]
fn one_that_trips_does_not_wait_for_one_that_hangs() {
    let patient = case().rules(|rules| rules.timeout = None);
    let seen = patient.output(&[Does::Hang, Does::Trip]).check("guardrail_triggered", None, &["user may I?"]);
    assert_eq!(seen.events, [r#"guardrail_decided second output triggered "no yes""#]);
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
