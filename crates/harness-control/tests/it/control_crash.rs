//! A controlled run, with work items and a contract, dies after any effect and is taken up.

use std::collections::BTreeMap;
use std::sync::Arc;

use harness_control::contract::TaskContract;
use harness_control::work::{ItemRole, ItemStatus, NewItem, WorkLedger, WorkLimits};
use harness_control::{ControlReport, ControlSpec, SignalSpec, UntilDone, WorkSpec};
use harness_core::event::Event;
use harness_core::machine::{Effect, Op, PortSet, Reply, Start};
use harness_core::message::{AssistantMessage, Message, ToolCall, Usage};
use harness_core::outcome::StopMode;
use harness_core::port::PreparedAgent;
use harness_core::run::{Run, RunResume, RunSpec, RunState};
use harness_core::testing::{Answer, Ran, ScriptedDriver, ScriptedWorld, event_line, replay};
use harness_core::tool::{RetryClass, ToolDef, ToolOutcome};
use harness_core::transcript::Transcript;
use harness_core::{CallId, End, Json, OpId, Origin, Time};

const TURNS: u32 = 6;

/// Tools, and a model that goes by what it sees: one step of the job in each turn, then a word about it.
#[derive(Clone, Default)]
struct Desk {
    runs: BTreeMap<CallId, u32>,
}

const STEPS: [&str; 6] =
    ["work_item_add", "pay", "work_item_set_artifact", "check", "work_item_update", "work_complete"];

fn tools() -> Vec<ToolDef> {
    let def = |name: &&str| {
        let class = match *name {
            "pay" => RetryClass::Unsafe,
            "check" | "work_complete" => RetryClass::Pure,
            _ => RetryClass::Idempotent,
        };
        let mut def = ToolDef::new(*name, "").with_class(class);
        def.terminal = *name == "work_complete";
        def
    };
    STEPS.iter().map(def).collect()
}

fn answer(log: &Transcript) -> AssistantMessage {
    let said = log.iter().filter(|message| message.as_assistant().is_some()).count();
    let message = match STEPS.get(said / 2) {
        Some(step) if said % 2 == 0 => {
            let arguments = Json::parse(r#"{"summary":"it is done","confidence":0.9}"#).expect("JSON");
            AssistantMessage::calls([ToolCall::new(format!("{step}-{said}"), *step, arguments)])
        }
        Some(_) | None => AssistantMessage::text(format!("MAGIC word {said}")),
    };
    message.with_usage(Usage::tokens(10, 1))
}

/// The result of a tool over the work items that the transcript tells.
fn run_tool(name: &str, log: &Transcript) -> ToolOutcome {
    let mut ledger = WorkLedger::default();
    for result in log.iter().filter_map(|message| message.as_tool_result()) {
        ledger.fold(result);
    }
    let (before, limits, now) = (ledger.clone(), WorkLimits::default(), Time(0));
    let id = ledger.items().first().map(|item| item.id.clone());
    match (name, id) {
        ("work_item_add", _) => {
            let (title, role) = ("the report".to_owned(), ItemRole::Deliverable);
            let item = NewItem { title, role, ..NewItem::default() };
            ledger.add(item, now, &limits).expect("room");
        }
        ("work_item_set_artifact", Some(id)) => {
            ledger.store(&id, "All is well.", Some(ItemRole::Deliverable), now, &limits).expect("room");
        }
        ("work_item_update", Some(id)) => {
            ledger.update(&id, ItemStatus::Done, "", now, &limits).expect("known");
        }
        _ => return ToolOutcome::text(format!("{name}: fine")),
    }
    let delta = Json::of(&BTreeMap::from([("ledger", ledger.delta_since(&before))])).expect("JSON");
    ToolOutcome::structured(delta)
}

impl ScriptedWorld for Desk {
    fn perform(&mut self, _: OpId, op: &Op, log: &Transcript) -> Answer {
        Answer::now(match op {
            Op::Prepare { .. } => Reply::Prepared(Ok(Arc::new(PreparedAgent::new("main", "", tools())))),
            Op::Model { .. } => Reply::Model(Ok(Arc::new(Message::Assistant(answer(log))))),
            Op::Tool { call, .. } => {
                *self.runs.entry(call.id.clone()).or_default() += 1;
                Reply::Tool(Ok(Arc::new(run_tool(call.name.as_str(), log))))
            }
            Op::Facts { .. } => Reply::Facts(Ok(Json::empty_object())),
            other => panic!("{other:?}"),
        })
    }
}

fn run_over(log: Transcript) -> Run {
    let contract = r#"{"id": "c", "goal": "a report", "required_outputs": [
        {"id": "R1", "description": "it is checked",
         "predicate": {"type": "tool_result_success", "args": {"tool_name": "check"}}},
        {"id": "R2", "description": "the word is said",
         "predicate": {"type": "contains_text", "args": {"pattern": "MAGIC", "field": "any_response"}}}]}"#;
    let contract: TaskContract = Json::parse(contract).expect("JSON").to().expect("a contract");
    let mut control = ControlSpec::default().with_signal(SignalSpec::default());
    (control.contract, control.work) = (Some(contract), Some(WorkSpec::default()));
    let mut spec = RunSpec::default();
    (spec.mode, spec.limits.turns) = (StopMode::StrictAutomation, TURNS);
    Run::new(Arc::new(spec), origin(), log).with_control(Box::new(UntilDone::new(control)))
}

type Driver = ScriptedDriver<RunState, Desk>;

fn origin() -> Origin {
    let mut origin = Origin::default();
    origin.run = Some("r".into());
    origin
}

fn first() -> Driver {
    let run = run_over(Transcript::default());
    ScriptedDriver::new(run, Desk::default(), Time(1_000)).saving_checkpoints()
}

/// The run that the next process has, and how it begins.
fn left_by(dead: &Driver) -> (Run, Start) {
    let durable = dead.journal().reopen();
    if durable.messages.is_empty() && dead.checkpoint().is_none() {
        return (run_over(Transcript::default()), Start::prompt(Message::user("go")));
    }
    let log: Transcript = durable.messages.into_iter().collect();
    let run = match dead.checkpoint() {
        Some(saved) => RunResume::read(saved).expect("its own form").onto(run_over(log)).expect("it fits"),
        None => run_over(log),
    };
    (run, Start::resume().with_open_calls(durable.open_calls))
}

fn ended(ran: Ran) -> Option<Arc<End>> {
    match ran {
        Ran::Ended(end) => Some(end),
        Ran::Crashed => None,
        other => panic!("{other:?}"),
    }
}

/// Law 7: the inputs alone give every event, and with that every decision, again.
fn check_replay(mut again: Run, driver: &Driver, context: &str) {
    let told = |effect: Effect| if let Effect::Event(event) = effect { Some(event) } else { None };
    let events: Vec<Event> = replay(&mut again, driver.inputs()).into_iter().filter_map(told).collect();
    assert_eq!(events, driver.events(), "{context}");
}

#[test]
fn a_controlled_run_that_dies_after_any_effect_ends_with_the_same_deliverables() {
    let mut whole = first();
    let expected = ended(whole.run(Start::prompt(Message::user("go")))).expect("an end");
    let report = ControlReport::of(&expected).expect("a report");
    assert_eq!((expected.reason().as_str(), expected.turns), ("answer_finalized", TURNS));
    assert_eq!(report.deliverables.len(), 1);
    let mut ports = PortSet::default();
    ports.checkpoints = true;
    check_replay(run_over(Transcript::default()).with_ports(ports), &whole, "the whole run");
    let mut crashes = 0;
    for n in 1.. {
        let mut dead = first().crash_after(n);
        if ended(dead.run(Start::prompt(Message::user("go")))).is_some() {
            break;
        }
        crashes += 1;
        let (run, start) = left_by(&dead);
        let mut driver = ScriptedDriver::new(run, dead.outside().clone(), dead.now());
        let end = ended(driver.run(start)).expect("an end");
        let lines: Vec<_> = driver.events().iter().map(|event| event_line(&event.kind)).collect();
        let context = format!("crash after effect {n}\n{}", lines.join("\n"));
        assert_eq!((end.reason(), end.turns), (expected.reason(), TURNS), "{context}");
        let made = ControlReport::of(&end).expect("a report");
        assert_eq!((&made.deliverables, &made.unmet), (&report.deliverables, &None), "{context}");
        assert_eq!(end.usage, expected.usage, "{context}");
        let pay = driver.outside().runs.iter().filter(|(call, _)| call.as_str().starts_with("pay"));
        assert!(pay.into_iter().all(|(_, runs)| *runs <= 1), "{context}");
        check_replay(left_by(&dead).0, &driver, &context);
    }
    assert!(crashes > 100, "{crashes} crash points");
}
