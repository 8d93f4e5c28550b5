//! Modes: what may be called in them, and how the model learns of them.

use std::sync::Arc;

use harness_core::decide::{DecideCx, GateVerdict};
use harness_core::driver::{Ports, drive};
use harness_core::machine::Start;
use harness_core::message::{AssistantMessage, Message, ToolCall};
use harness_core::outcome::StopMode;
use harness_core::port::{
    ApprovalAsk, Approver, Decision, DrainPoint, ProposedCall, RunBeginning, Stateful, Steering,
};
use harness_core::testing::{ModelStep, ScriptedModel, VirtualClock};
use harness_core::tool::{DynTool, RetryClass, ToolDef, Toolbox, tool_fn};
use harness_core::transcript::Transcript;
use harness_core::turn::{Turn, TurnSpec};
use harness_core::{Cancel, EntryId, Json, Origin, ParentCall, Time};
use harness_tools::{Keep, Mode, Modes, ToolsError, WorkTools};
use parking_lot::Mutex;

use crate::support::{ask, ask_of, block_on};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// A conversation with modes, whose model says these things in one turn each.
struct Conversation {
    modes: Modes,
    model: ScriptedModel,
    ports: Ports,
    log: Transcript,
}

/// Approves of everything and notes what it was.
#[derive(Clone, Default)]
struct Yes(Arc<Mutex<Vec<String>>>);

impl Approver for Yes {
    async fn decide(&self, ask: ApprovalAsk) -> Decision {
        self.0.lock().push(format!("{} {}", ask.proposed.call.name, ask.proposed.call.arguments));
        Decision::Granted
    }
}

impl Conversation {
    fn new(modes: Modes, says: Vec<AssistantMessage>, approver: &Yes) -> Self {
        let scripted = ScriptedModel::new(says.into_iter().map(ModelStep::answer));
        let mut ports = Ports::new(Arc::new(scripted.clone()), Arc::new(VirtualClock::frozen(Time(0))));
        let pay = tool_fn("pay", "Pays", |_: Nothing, _| async { "paid" });
        let mut tools: Vec<Arc<dyn DynTool>> = vec![Arc::new(pay)];
        tools.extend(modes.tools().tools().iter().cloned());
        ports.tools = Arc::new(Toolbox::new(tools));
        ports.gates.push(modes.gate());
        ports.steering = Some(Arc::new(modes.of(None).notes(None)));
        ports.approver = Some(Arc::new(approver.clone()));
        Self { modes, model: scripted, ports, log: Transcript::default() }
    }

    fn prompt(&mut self, text: &str) {
        let spec = Arc::new(TurnSpec::default());
        let mut turn = Turn::new(spec, Origin::default(), std::mem::take(&mut self.log));
        let start = Start::prompt(Message::user(text));
        block_on(drive(&mut turn, &self.ports, &Cancel::never(), start));
        self.log = turn.into_log();
    }

    /// What the transcript says, one line each.
    fn said(&self) -> Vec<String> {
        let text = |message: &Arc<Message>| format!("{}: {}", message.role(), message.joined_text());
        self.log.prefix().iter().map(text).collect()
    }
}

fn call(name: &str, arguments: &str) -> AssistantMessage {
    AssistantMessage::calls([ToolCall::new("c", name, Json::parse(arguments).unwrap())])
}

const DENIED: &str = "toolResult: `pay` may change something, which the mode `plan` does not allow. Look around and \
     ask the user what is unclear, change nothing, and propose a plan. When the user approves of it, ask for the \
     mode `execute`. Another mode is asked for with `mode_set`.";

const PLANNING: &str = "user: The mode is `plan` from now on. Look around and ask the user what is unclear, change \
     nothing, and propose a plan. When the user approves of it, ask for the mode `execute`.";

#[test]
fn a_plan_is_made_before_anything_is_changed() {
    let steps = vec![
        call("pay", "{}"),
        call("mode_set", r#"{"mode":"execute"}"#),
        call("pay", "{}"),
        AssistantMessage::text("Done."),
    ];
    let asked = Yes::default();
    let mut conversation = Conversation::new(Modes::plan_and_execute(), steps, &asked);
    conversation.prompt("Pay.");
    let said = conversation.said();
    assert_eq!(said[..2], ["user: Pay.", PLANNING]);
    assert_eq!(said[3], DENIED);
    assert!(said[5].starts_with(r#"toolResult: {"mode":"execute","meaning":"Work on your own"#), "{said:?}");
    assert_eq!(said[7..], ["toolResult: paid", "assistant: Done."], "and no note of what it did itself");
    assert_eq!(*asked.0.lock(), [r#"mode_set {"mode":"execute"}"#], "that alone needed approval");
}

#[test]
fn a_change_by_the_host_is_told_once() {
    let answers = ["one", "two", "three", "four"].map(AssistantMessage::text).to_vec();
    let modes = Modes::new(Mode::execute(), [Mode::plan()]);
    let mut conversation = Conversation::new(modes, answers, &Yes::default());
    conversation.prompt("a");
    conversation.modes.of(None).set("plan").unwrap();
    conversation.prompt("b");
    conversation.prompt("c");
    conversation.modes.of(None).set("execute").unwrap();
    conversation.modes.of(None).set("plan").unwrap();
    conversation.prompt("d");
    assert_eq!(
        conversation.said(),
        [
            "user: a",
            "assistant: one",
            "user: b",
            PLANNING,
            "assistant: two",
            "user: c",
            "assistant: three",
            "user: d",
            "assistant: four"
        ]
    );
    assert_eq!(conversation.model.requests().len(), 4);
}

#[test]
fn the_model_may_be_trusted_with_modes() {
    let needs = |modes: &Modes| modes.tools().tools().iter().any(|tool| tool.tool_def().requires_approval);
    assert!(needs(&Modes::plan_and_execute()));
    assert!(!needs(&Modes::plan_and_execute().model_may_set()));
}

#[test]
fn the_tools_tell_which_modes_there_are() {
    let modes = Modes::new(
        Mode::new("quick", "Be quick."),
        [Mode::new("slow", "Take your time."), Mode::new("slow", "")],
    );
    let tools = modes.tools();
    let told = r#"{"mode":"quick","modes":[{"mode":"quick","meaning":"Be quick."},{"mode":"slow","meaning":"Take your time."}]}"#;
    assert_eq!(ask(&tools, "mode_get", "{}"), format!("success\n{told}"));
    assert_eq!(
        ask(&tools, "mode_set", r#"{"mode":"slow"}"#),
        "success\n{\"mode\":\"slow\",\"meaning\":\"Take your time.\"}"
    );
    let mode = modes.of(None);
    assert_eq!(&*mode.current().name, "slow");
    assert_eq!(mode.notes(None).waiting(), [], "the model that has set it knows it");
    let unknown = "failed unknown_mode\nunknown mode `fast`; available: `quick` and `slow`";
    assert_eq!(ask(&tools, "mode_set", r#"{"mode":"fast"}"#), unknown);
    let error: ToolsError = mode.set("fast").unwrap_err();
    assert_eq!((error.kind(), &*mode.current().name), ("tools.mode_unknown", "slow"));
}

#[test]
fn a_new_conversation_is_notified_of_the_mode_unless_it_is_the_first_and_allows_all() {
    let modes = Modes::new(Mode::new("quick", "Be quick."), [Mode::new("slow", "Take your time.")]);
    let notes = |modes: &Modes, mode: &str| {
        let new = modes.of(None);
        new.set(mode).unwrap();
        new.notes(None).waiting().len()
    };
    assert_eq!((notes(&modes, "slow"), notes(&modes, "quick")), (1, 0));
    assert_eq!(notes(&Modes::plan_and_execute(), "plan"), 1);
}

#[test]
fn each_thread_has_its_mode_which_its_sub_agents_share() {
    let modes = Modes::new(Mode::execute(), [Mode::plan()]).model_may_set();
    let origin = |thread: &str| {
        let mut origin = Origin::default();
        origin.thread = Some(thread.into());
        origin
    };
    let (first, second) = (origin("first"), origin("second"));
    let child = first.child(ParentCall::new("c1", "main", &first));
    assert!(!ask_of(first.clone(), &modes.tools(), "mode_set", r#"{"mode":"plan"}"#).is_error());
    let pays = |origin: Origin| {
        let call = Arc::new(ToolCall::new("c", "pay", Json::empty_object()));
        let call = ProposedCall::new(call, ToolDef::new("pay", ""), "main".into(), 1);
        let cx = DecideCx::new(Transcript::default().prefix(), Arc::new(origin), Cancel::never(), Time(0));
        let clock = VirtualClock::frozen(Time(0));
        let decision = block_on(modes.gate().decide(&call, &cx, &clock)).answer.unwrap();
        decision.verdict == GateVerdict::Allow
    };
    assert_eq!([pays(first), pays(child), pays(second.clone())], [false, false, true]);
    assert_eq!(&*modes.of(second.thread.as_ref()).current().name, "execute");
}

#[test]
fn a_thread_has_its_mode_in_another_process() {
    let mut origin = Origin::default();
    origin.thread = Some("a".into());
    let modes = || Modes::new(Mode::execute(), [Mode::plan()]);
    let (first, second) = (modes(), modes());
    assert_eq!(&*first.of(origin.thread.as_ref()).current().name, "execute");
    assert_eq!(first.save_state(&origin), None, "nothing happened yet");
    first.of(origin.thread.as_ref()).set("execute").unwrap();
    assert!(first.save_state(&origin).is_some(), "the host has set it");
    first.of(origin.thread.as_ref()).set("plan").unwrap();
    let saved = first.save_state(&origin).expect("a state");
    second.restore_state(&origin, Some(&saved));
    let mut run = RunBeginning::new(StopMode::StrictAutomation);
    second.begin_run(&origin, &mut run);
    let notes: Vec<_> = run.notes.iter().map(Message::joined_text).collect();
    assert_eq!((run.mode, notes.len()), (StopMode::Interactive, 1));
    assert!(notes[0].starts_with("The mode is `plan` from now on."), "{notes:?}");
    let mut next = RunBeginning::new(StopMode::StrictAutomation);
    second.begin_run(&origin, &mut next);
    assert_eq!(next.notes.len(), 0, "the model knows it");
    // A mode that this process does not have, and no state: it begins anew.
    for none in [Some(&Json::parse(r#"{"mode":"night","change":1}"#).unwrap()), None] {
        second.restore_state(&origin, none);
        assert_eq!(&*second.of(origin.thread.as_ref()).current().name, "execute");
    }
}

#[test]
fn a_mode_of_planning_is_interactive() {
    let mode = Modes::plan_and_execute().of(None);
    let strict = StopMode::StrictAutomation;
    assert_eq!(mode.stop_mode(strict), StopMode::Interactive);
    mode.set("execute").unwrap();
    assert_eq!(mode.stop_mode(strict), strict);
}

/// Whether a tool may be called while a plan is made.
#[track_caller]
fn check(def: &ToolDef, expected: bool) {
    assert_eq!(Mode::plan().allows(def), expected, "{}", def.name);
}

#[test]
fn only_what_changes_nothing_outside_is_allowed_in_a_plan() {
    check(&ToolDef::new("look", "").with_class(RetryClass::Pure), true);
    check(&ToolDef::new("put", "").with_class(RetryClass::Idempotent), false);
    check(&ToolDef::new("pay", ""), false);
    check(&ToolDef::handoff("to_b", "", "b".into()), true);
    for set in [
        WorkTools::new(Keep::Run, Arc::new(VirtualClock::frozen(Time(0)))).into_set(),
        Modes::plan_and_execute().tools(),
    ] {
        set.tools().iter().for_each(|tool| check(tool.tool_def(), true));
    }
    let mut mode = Mode::plan();
    mode.also = vec!["pay".into()];
    assert!(mode.allows(&ToolDef::new("pay", "")));
    assert_eq!(Modes::plan_and_execute().gate().guard().name.as_str(), "mode");
}

/// One message that waits.
#[derive(Default)]
struct Queue(Mutex<Vec<EntryId>>);

impl Steering for Queue {
    fn waiting(&self) -> Vec<(EntryId, Arc<Message>)> {
        vec![("q1".into(), Arc::new(Message::user("hurry")))]
    }

    fn injected(&self, entries: &[EntryId]) {
        self.0.lock().extend_from_slice(entries);
    }
}

#[test]
fn a_note_comes_before_what_waits_and_extends_no_answer() {
    let (modes, queue) = (Modes::plan_and_execute(), Arc::new(Queue::default()));
    let notes = modes.of(None).notes(Some(queue.clone()));
    let ids = |point| notes.waiting_at(point).into_iter().map(|(id, _)| id).collect::<Vec<_>>();
    assert_eq!(ids(DrainPoint::Answer), ["q1"]);
    assert_eq!(ids(DrainPoint::Begin), ["mode-note-0", "q1"]);
    notes.injected(&ids(DrainPoint::Begin));
    assert_eq!(ids(DrainPoint::Round), ["q1"]);
    assert_eq!(*queue.0.lock(), ["q1"]);
}
