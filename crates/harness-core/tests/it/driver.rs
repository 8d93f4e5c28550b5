//! The tokio driver: what ports do to a turn when they hang, panic, fail or are asked to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt as _;
use harness_core::decide::gate;
use harness_core::driver::{Ports, drive};
use harness_core::event::{Event, Fold};
use harness_core::machine::Start;
use harness_core::message::{AssistantMessage, Message, ToolCall};
use harness_core::port::{DeltaPart, Durability, Entry, EntryHead, Loaded, Session, SessionError};
use harness_core::testing::{EventLog, ModelStep, ScriptedModel, ScriptedTools, ToolStep, VirtualClock};
use harness_core::tool::{RetryClass, Tool, ToolCx, ToolDef, ToolOutcome, Toolbox};
use harness_core::transcript::Transcript;
use harness_core::turn::{Execution, OnToolFailure, Turn, TurnSpec};
use harness_core::{Cancel, End, Json, Origin, ThreadId, Time};
use parking_lot::Mutex;

use crate::bare::bare;

fn call(id: &str, name: &str) -> ToolCall {
    ToolCall::new(id, name, Json::empty_object())
}

fn calls(all: &[(&str, &str)]) -> ModelStep {
    ModelStep::answer(AssistantMessage::calls(all.iter().map(|(id, name)| call(id, name))))
}

fn answer(text: &str) -> ModelStep {
    ModelStep::answer(AssistantMessage::text(text))
}

fn ports(steps: impl IntoIterator<Item = ModelStep>) -> Ports {
    Ports::new(Arc::new(ScriptedModel::new(steps)), Arc::new(VirtualClock::jumping(Time(0))))
}

fn with_tools(mut ports: Ports, tools: ScriptedTools) -> Ports {
    ports.tools = Arc::new(tools);
    ports
}

async fn run(ports: &Ports, spec: TurnSpec) -> (Arc<End>, Vec<String>) {
    let mut turn = Turn::new(Arc::new(spec), Origin::default(), Transcript::default());
    let end = drive(&mut turn, ports, &Cancel::never(), Start::prompt(Message::user("go"))).await;
    let transcript = turn.log().iter().map(|message| short(message)).collect();
    (end, transcript)
}

/// One line for a message: who, and what.
fn short(message: &Message) -> String {
    match message {
        Message::Assistant(answer) => {
            let calls: Vec<_> = answer.tool_calls().map(|call| call.id.to_string()).collect();
            let ending = answer.stop_reason.as_str();
            format!("assistant {ending} {:?} {calls:?}", answer.joined_text())
        }
        Message::ToolResult(result) => {
            let code = result.outcome.as_ref().map_or("ok", |outcome| outcome.text());
            format!("result {} {code}", result.tool_call_id)
        }
        other => format!("{} {:?}", other.role(), other.joined_text()),
    }
}

#[tokio::test]
async fn law_3_a_model_that_hangs_is_cut_off_at_the_deadline_and_what_it_said_stays() {
    let ports = ports([ModelStep::hang().with_deltas([DeltaPart::Text("Half an ans".into())])]);
    let (end, transcript) = run(&ports, bare()).await;
    assert_eq!(end.reason().as_str(), "timeout_reached");
    assert_eq!(transcript, ["user \"go\"", "assistant aborted \"Half an ans\" []"]);
    assert_eq!(end.elapsed.0, 32_000, "30 s, and 2 s of grace");
}

#[tokio::test]
async fn law_1_a_tool_that_hangs_gets_its_result_and_the_others_keep_theirs() {
    let tools = ScriptedTools::new([ToolDef::new("slow", ""), ToolDef::new("fast", "")])
        .answering([ToolStep::hang().of("slow"), ToolStep::outcome(ToolOutcome::text("4")).of("fast")]);
    let ports = with_tools(ports([calls(&[("a", "slow"), ("b", "fast")])]), tools);
    let mut spec = bare();
    spec.execution = Execution::Parallel { max: 4 };
    let (end, transcript) = run(&ports, spec).await;
    assert_eq!(end.reason().as_str(), "timeout_reached");
    assert_eq!(
        transcript,
        [
            "user \"go\"",
            "assistant toolUse \"\" [\"a\", \"b\"]",
            r#"result a {"status":"timeout","errorCode":"interrupted"}"#,
            "result b ok",
        ]
    );
}

#[tokio::test]
async fn a_panic_of_a_model_or_a_tool_is_a_fault_of_the_turn_and_not_of_the_host() {
    let (end, _) = run(&ports([ModelStep::panic("boom")]), bare()).await;
    assert_eq!(end.reason().as_str(), "runtime_error");
    assert!(format!("{:?}", end.stop.evidence).contains("the model panicked: boom"), "{end:?}");

    let tools = || ScriptedTools::new([ToolDef::new("t", "")]).answering([ToolStep::panic("boom")]);
    let step = || [calls(&[("a", "t")]), answer("went on")];
    let (end, transcript) = run(&with_tools(ports(step()), tools()), bare()).await;
    assert_eq!(end.reason().as_str(), "runtime_error");
    assert_eq!(
        transcript.last().expect("a message"),
        r#"result a {"status":"failed","errorCode":"tool_panicked"}"#
    );

    let mut spec = bare();
    spec.on_tool_failure = OnToolFailure::Answer;
    let (end, _) = run(&with_tools(ports(step()), tools()), spec).await;
    assert_eq!(end.answer.as_deref(), Some("went on"));
}

#[tokio::test]
async fn a_gate_that_panics_denies() {
    let tools = ScriptedTools::new([ToolDef::new("t", "")]);
    let mut ports = with_tools(ports([calls(&[("a", "t")]), answer("understood")]), tools.clone());
    ports.gates = vec![gate::func("broken", |_, _| panic!("gate out of order"))];
    let (end, transcript) = run(&ports, bare()).await;
    assert_eq!(end.answer.as_deref(), Some("understood"));
    assert_eq!(transcript[2], r#"result a {"status":"failed","errorCode":"tool_blocked"}"#);
    assert!(tools.executions().is_empty());
}

/// Runs until it is asked to stop, and then says so.
struct Patient(ToolDef, Arc<AtomicBool>, Cancel);

impl Tool for Patient {
    fn def(&self) -> &ToolDef {
        &self.0
    }

    async fn call(&self, cx: ToolCx) -> ToolOutcome {
        self.2.cancel();
        cx.cancel.cancelled().await;
        self.1.store(true, Ordering::SeqCst);
        ToolOutcome::text("stopped in time")
    }
}

#[tokio::test]
async fn law_8_a_cancelled_tool_may_still_answer_and_its_result_is_kept() {
    let (told, cancel) = (Arc::new(AtomicBool::new(false)), Cancel::new());
    let mut ports = ports([calls(&[("a", "patient"), ("b", "patient")])]);
    let tool = Patient(ToolDef::new("patient", ""), Arc::clone(&told), cancel.clone());
    ports.tools = Arc::new(Toolbox::new([Arc::new(tool) as _]));
    let mut turn = Turn::new(Arc::new(bare()), Origin::default(), Transcript::default());
    let end = drive(&mut turn, &ports, &cancel, Start::prompt(Message::user("go"))).await;
    assert_eq!(end.reason().as_str(), "cancelled");
    assert!(told.load(Ordering::SeqCst));
    let transcript: Vec<_> = turn.log().iter().map(|message| short(message)).collect();
    let not_run = r#"result b {"status":"cancelled","errorCode":"not_run"}"#;
    assert_eq!(transcript[2..], ["result a ok", not_run, "assistant aborted \"\" []"]);
}

/// A session that stores nothing from the n-th append on.
struct Failing {
    left: Mutex<u32>,
    stored: Mutex<Vec<&'static str>>,
}

impl Failing {
    fn after(appends: u32) -> Arc<Self> {
        Arc::new(Self { left: Mutex::new(appends), stored: Mutex::default() })
    }
}

impl Session for Failing {
    async fn append(&self, _: &EntryHead, entries: &[Entry<'_>], _: Durability) -> Result<(), SessionError> {
        let mut left = self.left.lock();
        if *left == 0 {
            return Err(SessionError::new("session.write_failed", "disk full"));
        }
        *left -= 1;
        self.stored.lock().extend(entries.iter().map(|entry| match entry {
            Entry::Message(message) => message.role(),
            Entry::CallStarted { .. } => "started",
            _ => "other",
        }));
        Ok(())
    }

    async fn load(&self) -> Result<Loaded, SessionError> {
        Ok(Loaded::default())
    }
}

/// A session on a disk that does not sync.
struct Unsynced;

impl Session for Unsynced {
    async fn append(&self, _: &EntryHead, _: &[Entry<'_>], asked: Durability) -> Result<(), SessionError> {
        let synced = asked != Durability::Sync;
        synced.then_some(()).ok_or_else(|| SessionError::new("session.sync_failed", "no sync"))
    }

    async fn load(&self) -> Result<Loaded, SessionError> {
        Ok(Loaded::default())
    }
}

#[tokio::test]
async fn a_turn_whose_end_is_not_on_stable_storage_says_so() {
    let mut ports = ports([answer("done")]);
    ports.session = Some(Arc::new(Unsynced));
    let (end, _) = run(&ports, bare()).await;
    assert_eq!((end.answer.as_deref(), end.persist_failed.as_deref()), (Some("done"), Some("no sync")));
}

#[tokio::test]
async fn when_nothing_can_be_stored_pure_tools_go_on_and_no_other_tool_starts() {
    let defs = [ToolDef::new("look", "").with_class(RetryClass::Pure), ToolDef::new("pay", "")];
    let tools = ScriptedTools::new(defs).answering([ToolStep::outcome(ToolOutcome::text("4")).of("look")]);
    let steps = [calls(&[("a", "look"), ("b", "pay")]), answer("done")];
    let mut ports = with_tools(ports(steps), tools.clone());
    let session = Failing::after(1);
    ports.session = Some(session.clone());
    let (end, transcript) = run(&ports, bare()).await;
    assert_eq!(end.answer.as_deref(), Some("done"));
    assert_eq!(end.persist_failed.as_deref(), Some("disk full"));
    assert_eq!(transcript[2..4], ["result a ok", r#"result b {"status":"cancelled","errorCode":"not_run"}"#]);
    let ran: Vec<_> = tools.executions().iter().map(|cx| cx.call.id.to_string()).collect();
    assert_eq!(ran, ["a"]);
    assert_eq!(*session.stored.lock(), ["user"]);
}

#[tokio::test]
async fn a_run_can_be_spawned_and_its_events_are_numbered_without_gaps() {
    let log = EventLog::default();
    let mut ports = ports([answer("done")]);
    ports.hub.fold(log.clone());
    let (end, _) = tokio::spawn(async move { run(&ports, bare()).await }).await.expect("no panic");
    assert_eq!(end.reason().as_str(), "answer_finalized");
    let numbers: Vec<_> = log.events().iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
}

/// Counts how often work was left before its end, and how often it was told to write out.
#[derive(Default)]
struct Left(Vec<&'static str>);

impl Fold for Left {
    fn apply(&mut self, _: &Event) {}

    fn flush(&mut self) {
        self.0.push("flush");
    }

    fn abandoned(&mut self, origin: &Origin) {
        assert_eq!(origin.thread.as_ref().map(ThreadId::as_str), Some("t1"));
        self.0.push("abandoned");
    }
}

#[track_caller]
fn check_left(step: ModelStep, expected: &[&str]) {
    let left = Arc::new(Mutex::new(Left::default()));
    let mut ports = Ports::new(Arc::new(ScriptedModel::new([step])), Arc::new(VirtualClock::still(Time(0))));
    ports.hub.fold(Arc::clone(&left));
    let spec = Arc::new(bare());
    let mut origin = Origin::default();
    origin.thread = Some("t1".into());
    let mut turn = Turn::new(spec, origin, Transcript::default());
    let begin = Start::prompt(Message::user("go"));
    // The future is polled once and dropped.
    let _ = Box::pin(drive(&mut turn, &ports, &Cancel::never(), begin)).now_or_never();
    assert_eq!(left.lock().0, expected);
}

#[test]
fn folds_are_told_of_work_whose_future_was_dropped() {
    check_left(answer("done"), &["flush"]);
    check_left(ModelStep::hang(), &["abandoned"]);
}
