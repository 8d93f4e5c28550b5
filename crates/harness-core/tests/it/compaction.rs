//! What a compaction does to views, budgets and sessions.

use std::sync::Arc;

use harness_core::driver::{Ports, compact, drive};
use harness_core::limits::{Limit, Reached};
use harness_core::machine::{Start, ViewState};
use harness_core::message::{AssistantMessage, FinishReason, Message, ToolCall, ToolResultMessage, Usage};
use harness_core::port::{
    CompactAsk, Compaction, CompactionNote, Compactor, ContextPipeline, Deltas, Durability, Entry, EntryHead,
    Loaded, Model, ModelFault, ModelFaultCode, ModelRequest, Overflow, Session, SessionError, ViewCx,
};
use harness_core::run::{Run, RunSpec};
use harness_core::testing::{EventLog, ScriptedTools, ToolStep, VirtualClock};
use harness_core::tool::{ToolDef, ToolOutcome};
use harness_core::transcript::{Plan, Span, Transcript};
use harness_core::turn::{Turn, TurnSpec};
use harness_core::{Cancel, End, Evidence, Fault, Json, Origin, StopReason, Time};
use parking_lot::Mutex;

use crate::bare::bare;

type Lines = Arc<Mutex<Vec<String>>>;

fn note(lines: &Lines, line: String) {
    lines.lock().push(line);
}

fn shown(view: &harness_core::transcript::View) -> String {
    let mut texts = Vec::new();
    view.for_each(|message| texts.push(message.joined_text()));
    texts.join("|")
}

/// Answers in order, and writes down what it is shown.
struct Reader(Mutex<Vec<Said>>, Lines);

impl Model for Reader {
    async fn step(&self, request: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        note(&self.1, format!("model {}", shown(&request.view)));
        let mut answers = self.0.lock();
        if answers.is_empty() { Ok(AssistantMessage::text("done")) } else { answers.remove(0) }
    }
}

/// Does what the next step says, and writes down what it is asked.
struct Steps(Mutex<Vec<Step>>, Lines);

type Step = Box<dyn FnOnce(&CompactAsk) -> Option<Compaction> + Send>;

impl Compactor for Steps {
    async fn compact(&self, ask: CompactAsk) -> Result<Compaction, Fault> {
        let measured = ask.measured.as_ref().map(|measured| (measured.messages, measured.plan.is_some()));
        note(&self.1, format!("compact {} {} {measured:?}", ask.reason.as_str(), shown(&ask.view)));
        let step = {
            let mut steps = self.0.lock();
            if steps.is_empty() { None } else { Some(steps.remove(0)) }
        };
        match step {
            None => Ok(Compaction::unchanged()),
            Some(step) => {
                if let Some(done) = step(&ask) {
                    return Ok(done);
                }
                ask.cx.cancel.cancelled().await;
                note(&self.1, "asked to stop".to_owned());
                Ok(Compaction::unchanged())
            }
        }
    }
}

/// A plan that shows a summary in place of the messages before `from`, told of.
fn summarize(from: usize) -> Step {
    Box::new(move |_| Some(noted(from)))
}

fn noted(from: usize) -> Compaction {
    let made = Span::Made(Arc::from([Arc::new(Message::user("sum"))]));
    let mut done = Compaction::planned(Plan { spans: Arc::from([made, Span::Kept(from..usize::MAX)]) });
    let mut note = CompactionNote::default();
    (note.tokens_before, note.tokens_after) = (100, 40);
    done.note = Some(note);
    done
}

type Said = Result<AssistantMessage, ModelFault>;

fn too_long() -> Said {
    Err(ModelFault::new(ModelFaultCode::ContextLengthExceeded, "too long"))
}

fn call(id: &str) -> AssistantMessage {
    AssistantMessage::calls([ToolCall::new(id, "t", Json::empty_object())])
}

fn measured(text: &str) -> AssistantMessage {
    let mut answer = AssistantMessage::text(text);
    answer.usage = Some(Arc::new(Usage::tokens(10, 1)));
    answer
}

struct Scene {
    ports: Ports,
    lines: Lines,
    events: EventLog,
}

fn scene(answers: impl IntoIterator<Item = Said>, steps: impl IntoIterator<Item = Step>) -> Scene {
    let lines = Lines::default();
    let model = Reader(Mutex::new(answers.into_iter().collect()), Arc::clone(&lines));
    let mut ports = Ports::new(Arc::new(model), Arc::new(VirtualClock::jumping(Time(0))));
    let results = ["one", "two"].map(|text| ToolStep::outcome(ToolOutcome::text(text)));
    ports.tools = Arc::new(ScriptedTools::new([ToolDef::new("t", "")]).answering(results));
    ports.compactor = Some(Arc::new(Steps(Mutex::new(steps.into_iter().collect()), Arc::clone(&lines))));
    let events = EventLog::default();
    ports.hub.fold(events.clone());
    Scene { ports, lines, events }
}

impl Scene {
    async fn turn(
        &self,
        spec: TurnSpec,
        log: Transcript,
        view: ViewState,
        cancel: &Cancel,
    ) -> (Arc<End>, Turn) {
        let spec = Arc::new(spec);
        let mut turn = Turn::new(spec, Origin::default(), log).with_view(view);
        let end = drive(&mut turn, &self.ports, cancel, Start::prompt(Message::user("go"))).await;
        (end, turn)
    }

    async fn first_turn(&self) -> (Arc<End>, Turn) {
        self.turn(bare(), Transcript::default(), ViewState::default(), &Cancel::never()).await
    }

    fn seen(&self) -> Vec<String> {
        self.lines.lock().clone()
    }

    fn told(&self) -> Vec<String> {
        let told = |line: &String| ["compact", "context", "view"].iter().any(|start| line.starts_with(start));
        self.events.lines().into_iter().filter(told).collect()
    }
}

#[tokio::test]
async fn what_is_shortened_stays_so_for_later_requests_and_turns() {
    let scene = scene([Ok(call("a")), Ok(measured("first"))], [summarize(1)]);
    let (_, turn) = scene.first_turn().await;
    let view = turn.view_state().clone();
    scene.turn(bare(), turn.into_log(), view, &Cancel::never()).await;
    insta::assert_snapshot!(scene.seen().join("\n"), @r"
    compact request go None
    model sum
    compact request sum||one None
    model sum||one
    compact request sum||one|first|go Some((3, true))
    model sum||one|first|go
    ");
    insta::assert_snapshot!(scene.told().join("\n"), @r"
    compaction_started request
    compaction_completed 100 -> 40
    view_planned compactor 1 in 2
    view_planned compactor 3 in 2
    view_planned compactor 5 in 2
    ");
}

#[tokio::test]
async fn a_plan_without_a_note_serves_one_request() {
    let plan = |_: &CompactAsk| noted(1).plan.map(Compaction::planned);
    let scene = scene([Ok(call("a"))], [Box::new(plan) as Step]);
    let (_, turn) = scene.first_turn().await;
    assert_eq!(turn.view_state().plan, None);
    let requests: Vec<_> = scene.seen().into_iter().filter(|line| line.starts_with("model")).collect();
    assert_eq!(requests, ["model sum", "model go||one"]);
}

#[tokio::test]
async fn law_6_a_plan_that_splits_a_call_from_its_result_is_refused_and_told() {
    let scene = scene([], [summarize(2)]);
    let call = ToolCall::new("c", "t", Json::empty_object());
    let result = ToolResultMessage::new(&call, Vec::new(), false);
    let earlier = [Message::user("before"), AssistantMessage::calls([call]).into(), result.into()];
    let log = earlier.into_iter().map(Arc::new).collect();
    let (end, turn) = scene.turn(bare(), log, ViewState::default(), &Cancel::never()).await;
    assert_eq!((end.reason(), turn.view_state().plan.clone()), (StopReason::AnswerFinalized, None));
    let failed = "compaction_failed compactor plan_refused \
                  \"the plan splits a tool call from its result at message 2\"";
    assert_eq!(scene.told().last().map(String::as_str), Some(failed));
}

#[tokio::test]
async fn a_request_that_is_refused_as_too_long_is_sent_once_more_and_shorter() {
    let scene = scene([too_long()], [Box::new(|_: &CompactAsk| Some(Compaction::unchanged())), summarize(1)]);
    let (end, turn) = scene.first_turn().await;
    assert_eq!((end.reason(), end.usage.model_calls), (StopReason::AnswerFinalized, 2));
    assert_eq!(end.usage.failed_calls, 1, "the one that was refused");
    assert!(turn.view_state().plan.is_some());
    assert_eq!(
        scene.seen(),
        ["compact request go None", "model go", "compact overflow go None", "model sum"]
    );
}

#[tokio::test]
async fn a_request_that_stays_too_long_defers_the_turn_with_the_models_fault() {
    async fn check(scene: Scene, requests: usize) {
        let (end, _) = scene.first_turn().await;
        assert_eq!(end.reason(), StopReason::ContextOverflow);
        assert!(matches!(&end.stop.evidence, Evidence::Fault(fault) if fault.message == "too long"));
        assert_eq!(scene.seen().iter().filter(|line| line.starts_with("model")).count(), requests);
    }
    check(scene([too_long()], []), 1).await;
    let unchanged: Step = Box::new(|_| Some(Compaction::unchanged()));
    check(scene([too_long(), too_long()], [unchanged, summarize(1)]), 2).await;
}

#[tokio::test]
async fn law_2_a_view_that_does_not_fit_is_not_sent_and_the_end_says_by_how_much() {
    let overflow = |_: &CompactAsk| {
        let mut done = noted(1);
        done.overflow = Some(Overflow { tokens: 900, ceiling: 800 });
        Some(done)
    };
    let scene = scene([], [Box::new(overflow) as Step]);
    let (end, turn) = scene.first_turn().await;
    let reached = Reached::new(Limit::Context, 900, 800);
    assert_eq!((end.reason(), &end.stop.evidence), (StopReason::ContextOverflow, &Evidence::Limit(reached)));
    assert!(turn.view_state().plan.is_some(), "what was made shorter stays so");
    assert!(scene.seen().iter().all(|line| !line.starts_with("model")));
}

#[tokio::test]
async fn law_3_what_a_compaction_uses_counts() {
    let costly = |_: &CompactAsk| {
        let mut done = noted(1);
        (done.usage.model_calls, done.usage.input_tokens, done.usage.output_tokens) = (1, Some(90), Some(10));
        Some(done)
    };
    let scene = scene([], [Box::new(costly) as Step]);
    let mut spec = bare();
    spec.limits.tokens = 100;
    let (end, _) = scene.turn(spec, Transcript::default(), ViewState::default(), &Cancel::never()).await;
    let reached = Reached::new(Limit::Tokens, 100, 100);
    assert_eq!((end.reason(), &end.stop.evidence), (StopReason::BudgetReached, &Evidence::Limit(reached)));
    assert_eq!((end.usage.model_calls, end.usage.input_tokens), (1, Some(90)));
}

#[tokio::test]
async fn law_8_a_compaction_in_flight_is_cancelled_and_one_that_hangs_is_cut_off() {
    let scene = scene([], [Box::new(|_: &CompactAsk| None) as Step]);
    let (end, _) = scene.first_turn().await;
    assert_eq!((end.reason(), end.elapsed.0), (StopReason::TimeoutReached, 30_000));
    assert_eq!(scene.seen(), ["compact request go None", "asked to stop"]);
}

/// Shows a made message before everything, another one each time.
struct Recalling(Mutex<u32>);

impl ContextPipeline for Recalling {
    async fn recall(&self, _: &ViewCx) -> Result<Option<Plan>, Fault> {
        let mut times = self.0.lock();
        *times += 1;
        let made = Span::Made(Arc::from([Arc::new(Message::user(format!("memory {times}")))]));
        Ok(Some(Plan { spans: Arc::from([made, Span::Kept(0..usize::MAX)]) }))
    }
}

#[tokio::test]
async fn what_layers_show_comes_and_goes_and_what_is_summarized_stays() {
    // As a compactor does: what it is shown, with a summary in place of the oldest message.
    let summarizing = |ask: &CompactAsk| {
        let recalled = ask.plan.as_ref().and_then(|plan| plan.spans.first().cloned()).expect("a memory");
        let mut done = noted(1);
        let own = done.plan.take().expect("a plan");
        let spans = [recalled].into_iter().chain(own.spans.iter().cloned()).collect();
        done.plan = Some(Plan { spans });
        Some(done)
    };
    let mut scene = scene([Ok(call("a"))], [Box::new(summarizing) as Step]);
    scene.ports.layers = Some(Arc::new(Recalling(Mutex::new(0))));
    scene.first_turn().await;
    assert_eq!(
        scene.seen(),
        [
            "compact request memory 1|go None",
            "model memory 1|sum",
            "compact request memory 2|sum||one None",
            "model memory 2|sum||one",
        ]
    );
}

/// Writes down what is stored.
struct Ledger(Lines);

impl Session for Ledger {
    async fn append(&self, _: &EntryHead, entries: &[Entry<'_>], _: Durability) -> Result<(), SessionError> {
        for entry in entries {
            match entry {
                Entry::Message(message) => note(&self.0, format!("stored {}", message.role())),
                Entry::Compaction { plan, permanent, .. } => {
                    note(&self.0, format!("stored a compaction of {} spans, {permanent}", plan.spans.len()));
                }
                _ => {}
            }
        }
        Ok(())
    }

    async fn load(&self) -> Result<Loaded, SessionError> {
        Ok(Loaded::default())
    }
}

#[tokio::test]
async fn law_4_a_compaction_is_stored_before_the_request_that_it_shortens() {
    let mut scene = scene([], [summarize(1)]);
    scene.ports.session = Some(Arc::new(Ledger(Arc::clone(&scene.lines))));
    scene.first_turn().await;
    assert_eq!(
        scene.seen(),
        [
            "stored user",
            "compact request go None",
            "stored a compaction of 2 spans, false",
            "model sum",
            "stored assistant",
        ]
    );
}

/// What a process leaves that died between an answer that broke off and the results of its calls.
fn broken_off() -> Transcript {
    let mut answer = call("c");
    answer.stop_reason = FinishReason::Aborted;
    [Message::user("go"), answer.into()].map(Arc::new).into_iter().collect()
}

#[tokio::test]
async fn law_1_calls_of_an_answer_that_broke_off_are_answered_before_the_transcript_is_shortened() {
    let scene = scene([], [summarize(3)]);
    let mut spec = RunSpec { turn: bare(), ..RunSpec::default() };
    spec.compact_between_turns = true;
    let mut run = Run::new(Arc::new(spec), Origin::default(), broken_off());
    drive(&mut run, &scene.ports, &Cancel::never(), Start::resume()).await;
    let answered = "This call did not run: the turn that asked for it ended before the call started.";
    assert_eq!(scene.seen(), [format!("compact request go||{answered} None"), "model sum".to_owned()]);
}

#[tokio::test]
async fn a_transcript_whose_calls_wait_for_results_is_not_shortened_between_runs() {
    let scene = scene([], [summarize(2)]);
    let spec = bare();
    let mut turn = Turn::new(Arc::new(spec), Origin::default(), broken_off());
    let refused = compact(&mut turn, &scene.ports, &Cancel::never(), None).await.unwrap_err();
    assert_eq!(&*refused.code, "open_calls");
}

/// A session whose code has a mistake.
struct Broken;

impl Session for Broken {
    async fn append(&self, _: &EntryHead, _: &[Entry<'_>], _: Durability) -> Result<(), SessionError> {
        panic!("a mistake")
    }

    async fn load(&self) -> Result<Loaded, SessionError> {
        Ok(Loaded::default())
    }
}

#[tokio::test]
async fn a_session_that_panics_while_a_compaction_is_stored_is_a_fault() {
    let mut scene = scene([], [summarize(1)]);
    scene.ports.session = Some(Arc::new(Broken));
    let log = [Message::user("go"), AssistantMessage::text("yes").into()].map(Arc::new).into_iter().collect();
    let mut turn = Turn::new(Arc::new(bare()), Origin::default(), log);
    let failed = compact(&mut turn, &scene.ports, &Cancel::never(), None).await.unwrap_err();
    assert_eq!((&*failed.code, &*failed.message), ("persist_failed", "the session panicked: a mistake"));
}
