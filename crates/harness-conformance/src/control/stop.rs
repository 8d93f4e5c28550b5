//! Stop decisions of a real run, which is resumed from a state of the source's form and plays one turn for each step.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use harness::tools::work_complete;
use harness_control::contract::TaskContract;
use harness_control::work::WorkLedger;
use harness_control::{ControlSpec, ControlState, SignalSpec, StallSpec, StandardFacts, UntilDone, WorkSpec};
use harness_core::decide::{Check, CheckDecision, CheckVerdict, DecideCx, OnError, Points, Subject, check};
use harness_core::driver::{Ports, drive};
use harness_core::machine::{self, Effect, Op, Start};
use harness_core::message::{AssistantMessage, Block, Message, ToolCall};
use harness_core::outcome::StopMode;
use harness_core::port::{
    Checked, Checkpoint, Control, Deltas, Model, ModelFault, ModelFaultCode, ModelRequest, Review, RunNext,
    RunProgress, SingleAgent, TurnEnd,
};
use harness_core::run::{Run, RunResume, RunSpec, SNAPSHOT_VERSION};
use harness_core::testing::VirtualClock;
use harness_core::tool::{DynTool, FnTool, ToolOutcome, Toolbox};
use harness_core::transcript::Transcript;
use harness_core::{CallId, Cancel, Fault, FaultSource, Json, Origin, Time, ToolName};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::super::turn::convert::at;
use super::{CallData, Contract, ResultData, Told, What, decision};
use crate::Done;
use crate::case::{block_on, exact};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    #[serde(default)]
    config: Config,
    #[serde(default)]
    state: Before,
    steps: Vec<Step>,
}

/// Missing values are the product's defaults.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    require_work_complete: Option<bool>,
    work_complete_max_retries: Option<u32>,
    accept_done_after_retries_exhausted: Option<bool>,
    #[serde(default)]
    enable_stall_detection: bool,
    stall_threshold: Option<u32>,
    #[serde(default)]
    enable_work_item_verification: bool,
    #[serde(default)]
    enable_contract_verification: bool,
    #[serde(default)]
    agent_stop_hooks: Vec<Does>,
}

/// Behavior of a hook.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Does {
    returns: Option<Said>,
    raises: Option<String>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    decision: Decision,
    reason: String,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Decision {
    Allow,
    Block,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Before {
    #[serde(default)]
    turn_count: u32,
    max_turns: Option<u32>,
    #[serde(default)]
    transcript: Vec<Told>,
    work_item_ledger: Option<Ledger>,
    task_contract: Option<Contract>,
    #[serde(rename = "coverage_ledger")]
    _coverage: Option<Never>,
    #[serde(default)]
    work_complete_retry_count: u32,
}

/// Values that no vector gives: the product's coverage starts with its contract.
#[derive(Deserialize)]
enum Never {}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ledger {
    items: BTreeMap<String, Item>,
}

#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Item {
    id: String,
    title: String,
    status: Value,
    priority: Value,
    notes: String,
    artifact: String,
    artifact_role: Value,
    requires_revision: bool,
    revision_of: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    turn: Claims,
    #[serde(default)]
    append_transcript: Vec<Told>,
    work_item_ledger: Option<Ledger>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Claims {
    #[serde(default)]
    agent_done: bool,
    #[serde(default)]
    called_work_complete: bool,
    error: Option<String>,
}

/// A hook as a case describes it.
struct Scripted {
    number: usize,
    does: Does,
    calls: Arc<Mutex<Vec<Value>>>,
}

impl Check for Scripted {
    async fn judge(&self, subject: &Subject, _: &DecideCx) -> Result<CheckDecision, Fault> {
        let Subject::End { progress, .. } = subject else { return Ok(CheckVerdict::Accept.into()) };
        // The source counts no signal, and knows no calls of a turn that only say that it is not done.
        let of_source = |tool: &ToolName| *tool != SIGNAL && *tool != WORKS;
        let usage: BTreeMap<_, _> = progress.tool_calls.iter().filter(|(tool, _)| of_source(tool)).collect();
        self.calls.lock().push(json!({
            "hook": self.number,
            "turn_count": progress.turn,
            "tool_usage": usage,
            "called_work_complete": progress.signalled,
        }));
        if let Some(why) = &self.does.raises {
            return Err(Fault::new(FaultSource::Gate, "raised", &**why));
        }
        let verdict = match &self.does.returns {
            Some(Said { decision: Decision::Block, reason }) => {
                CheckVerdict::Continue { guidance: reason.clone() }
            }
            Some(Said { decision: Decision::Allow, .. }) | None => CheckVerdict::Accept,
        };
        Ok(verdict.into())
    }
}

/// The control of the product, and what it knew after each decision.
#[derive(Debug)]
struct Watched {
    control: UntilDone,
    decided: Decided,
}

type Decided = Arc<Mutex<Vec<ControlState>>>;

impl Control for Watched {
    fn observe(&mut self, event: u64, message: &Message) {
        self.control.observe(event, message);
    }

    fn guide(&mut self, at: &RunProgress) -> Option<Arc<Message>> {
        self.control.guide(at)
    }

    fn review(&mut self, turn: &TurnEnd<'_>, facts: Option<&Json>) -> Review {
        self.control.review(turn, facts)
    }

    fn decide(&mut self, turn: &TurnEnd<'_>, checks: &[Checked]) -> RunNext {
        let next = self.control.decide(turn, checks);
        self.decided.lock().push(self.control.state().clone());
        next
    }

    fn take_events(&mut self) -> Vec<Json> {
        self.control.take_events()
    }

    fn save(&self) -> Json {
        self.control.save()
    }

    fn restore(&mut self, saved: &Json) -> Result<(), serde_json::Error> {
        self.control.restore(saved)
    }
}

/// A turn as its model plays it.
struct Played {
    /// First call.
    calls: Vec<ToolCall>,
    ends: Ends,
}

/// How a turn ends.
enum Ends {
    Failed(String),
    Answered(Box<AssistantMessage>),
    /// It does not: the model calls tools until the product cuts the turn off.
    Never,
}

/// Plays one turn after another; the next begins when the one before it is decided.
struct Turns {
    played: Vec<Played>,
    decided: Decided,
    /// Number of model calls, by turn.
    asked: Mutex<BTreeMap<usize, usize>>,
}

impl Model for Turns {
    async fn step(&self, _: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        let turn = self.decided.lock().len();
        let mut asked = self.asked.lock();
        let times = asked.entry(turn).or_default();
        *times += 1;
        let unknown = |why: &str| ModelFault::new(ModelFaultCode::Unknown, why);
        let played = self.played.get(turn).ok_or_else(|| unknown("there is no further turn"))?;
        if *times == 1 && !played.calls.is_empty() {
            return Ok(AssistantMessage::calls(played.calls.clone()));
        }
        match &played.ends {
            Ends::Failed(why) => Err(unknown(why)),
            Ends::Answered(answer) => Ok(AssistantMessage::clone(answer)),
            Ends::Never => {
                let call = ToolCall::new(&*format!("works{turn}-{times}"), WORKS, Json::empty_object());
                Ok(AssistantMessage::calls([call]))
            }
        }
    }
}

const SIGNAL: &str = "work_complete";
/// Call of an unfinished turn.
const WORKS: &str = "works";
const CHANGES: &str = "work_item_update";

/// Results of the calls of all turns, with their tools.
#[derive(Default)]
struct Outcomes(BTreeMap<CallId, (ToolName, ToolOutcome)>);

impl Outcomes {
    fn add(&mut self, (call, outcome): &(ToolCall, ToolOutcome)) {
        self.0.insert(call.id.clone(), (call.name.clone(), outcome.clone()));
    }

    fn tools(self) -> Toolbox {
        let mut names: BTreeSet<_> = self.0.values().map(|(tool, _)| tool.clone()).collect();
        names.insert(WORKS.into());
        let mut tools: Vec<Arc<dyn DynTool>> = vec![work_complete()];
        let all = Arc::new(self.0);
        for name in names {
            let all = Arc::clone(&all);
            tools.push(Arc::new(FnTool::with_schema(
                name.as_str(),
                "",
                Json::empty_object(),
                move |_: Json, cx| {
                    let outcome = all.get(&cx.call.id).map(|(_, outcome)| outcome.clone());
                    async move { outcome.unwrap_or_else(|| ToolOutcome::text("")) }
                },
            )));
        }
        Toolbox::new(tools)
    }
}

pub(super) fn run(input: Input) -> Done<Value> {
    let Input { config, state: before, steps } = input;
    let calls: Arc<Mutex<Vec<Value>>> = Arc::default();
    let decided = Decided::default();
    let mode = config.mode();
    let known = before.work_item_ledger.map(Ledger::read).transpose()?.unwrap_or_default();
    let mut outcomes = Outcomes::default();
    let mut items = known.clone();
    let play = |(number, step)| played(number, step, &mut items, &mut outcomes);
    let turns = steps.into_iter().enumerate().map(play).collect::<Done<Vec<_>>>()?;
    let most = turns.len();

    let mut spec = RunSpec { mode, ..RunSpec::default() };
    spec.limits.turns = before.max_turns.unwrap_or(spec.limits.turns);
    let control = Arc::new(config.control(before.task_contract));
    let since = messages(before.transcript)?;
    // What is called first, what follows, and the closing step; the transcript is a part of the turn that goes on.
    let answers = since.iter().filter(|message| message.as_assistant().is_some()).count();
    spec.turn.limits.iterations = u32::try_from(answers + 3).map_err(|e| e.to_string())?;
    let spec = Arc::new(spec);
    let begun = |log| {
        let state = ControlState::new(&control)
            .with_ledger(known.clone())
            .with_retries(before.work_complete_retry_count);
        let control = UntilDone::new(Arc::clone(&control)).with_state(state);
        let mut origin = Origin::default();
        origin.run = Some("run".into());
        Run::new(Arc::clone(&spec), origin, log)
            .with_control(Box::new(Watched { control, decided: Arc::clone(&decided) }))
    };
    let (saved, log) = saved(begun(Transcript::default()), before.turn_count)?;
    let log = log.iter().cloned().chain(since.into_iter().map(Arc::new)).collect();
    let mut run =
        RunResume::read(&saved).and_then(|saved| saved.onto(begun(log))).map_err(|e| e.to_string())?;

    let model = Turns { played: turns, decided: Arc::clone(&decided), asked: Mutex::default() };
    let mut ports = Ports::new(Arc::new(model), Arc::new(VirtualClock::still(Time(0))));
    ports.agents = Arc::new(SingleAgent::new("Do what is asked."));
    ports.tools = Arc::new(outcomes.tools());
    ports.facts = Some(Arc::new(StandardFacts::default()));
    let has_hooks = config.install(&calls, &mut ports);
    let end = block_on(drive(&mut run, &ports, &Cancel::never(), Start::prompt(Message::user("continue"))))?;

    let error = decision::error_of(&end);
    let steps: Vec<_> =
        decided.lock().iter().take(most).filter_map(|state| shown(state, mode, &error)).collect();
    let mut result = json!({ "steps": steps });
    if let Some(hooks) = result.as_object_mut().filter(|_| has_hooks) {
        hooks.insert("hook_calls".to_owned(), json!(*calls.lock()));
    }
    Ok(result)
}

/// Stored state of a run after this number of turns, with the next one started.
fn saved(run: Run, turns: u32) -> Done<(Checkpoint, Transcript)> {
    let begin = Message::user("begin");
    let mut effects = Vec::new();
    let start = machine::Input::Start(Box::new(Start::prompt(begin.clone())));
    let mut ports = machine::PortSet::default();
    ports.checkpoints = true;
    run.with_ports(ports).advance(start, Time(0), &mut effects);
    let saved = effects.drain(..).find_map(|effect| {
        if let Effect::Perform(_, Op::Save { messages, state }) = effect {
            Some((messages, state))
        } else {
            None
        }
    });
    let (messages, state) = saved.ok_or("a run that begins saves no state")?;
    let mut state: Value = state.to().map_err(|e| e.to_string())?;
    let turn = state.pointer_mut("/shared/turn").ok_or("a saved run has no turn")?;
    *turn = json!(turns.saturating_add(1));
    let state = Json::of(&state).map_err(|e| e.to_string())?;
    let saved = Checkpoint::new("run".into(), Time(0), SNAPSHOT_VERSION, messages, Arc::new(state));
    Ok((saved, [Arc::new(begin)].into_iter().collect()))
}

/// The turn of a step. The work items that it gives are what its tools made of those that are `known`.
fn played(number: usize, step: Step, known: &mut WorkLedger, outcomes: &mut Outcomes) -> Done<Played> {
    let (mut calls, mut said) = (Vec::new(), String::new());
    for event in step.append_transcript {
        match event.what {
            What::Call(data) => calls.push(call_of(data)?),
            What::Result(data) => outcomes.add(&result_of(data)),
            What::Response(data) => said.extend(data.message),
            What::Start => {}
        }
    }
    if let Some(given) = step.work_item_ledger {
        let given = given.read()?;
        let call = ToolCall::new(&*format!("change{number}"), CHANGES, Json::empty_object());
        let mut outcome = ToolOutcome::text("changed");
        let change = json!({ "ledger": given.delta_since(known) });
        outcome.structured = Some(Json::of(&change).map_err(|e| e.to_string())?);
        outcomes.add(&(call.clone(), outcome));
        calls.push(call);
        *known = given;
    }
    let claims = step.turn;
    // The tool of the signal takes none that says nothing.
    let summary = if claims.agent_done { "finished" } else { "" };
    let arguments = Json::of(&json!({ "summary": summary })).map_err(|e| e.to_string())?;
    let signal =
        claims.called_work_complete.then(|| ToolCall::new(&*format!("signal{number}"), SIGNAL, arguments));
    let ends = match (claims.error.filter(|error| !error.is_empty()), signal) {
        (Some(error), _) => Ends::Failed(error),
        (None, signal) if !claims.agent_done => {
            calls.extend(signal);
            Ends::Never
        }
        (None, Some(signal)) => {
            let mut answer = AssistantMessage::calls([signal]);
            answer.content.insert(0, Block::text(said));
            Ends::Answered(Box::new(answer))
        }
        (None, None) => Ends::Answered(Box::new(AssistantMessage::text(said))),
    };
    Ok(Played { calls, ends })
}

/// Converts the events of the source's transcript to messages.
fn messages(events: Vec<Told>) -> Done<Vec<Message>> {
    let mut messages = Vec::new();
    for event in events {
        match event.what {
            What::Call(data) => messages.push(Message::Assistant(AssistantMessage::calls([call_of(data)?]))),
            What::Result(data) => {
                let (call, outcome) = result_of(data);
                messages.push(Message::ToolResult(outcome.to_message(&call, None, Time(0))));
            }
            What::Response(data) => {
                messages.extend(data.message.map(AssistantMessage::text).map(Message::Assistant));
            }
            What::Start => {}
        }
    }
    Ok(messages)
}

fn call_of(data: CallData) -> Done<ToolCall> {
    let args = data.args.as_ref().map_or_else(|| Ok(Json::empty_object()), exact)?;
    Ok(ToolCall::new(data.call_id, data.tool_name, args))
}

/// Result of a call; the call without its arguments.
fn result_of(data: ResultData) -> (ToolCall, ToolOutcome) {
    let call = ToolCall::new(data.call_id.unwrap_or_default(), data.tool_name, Json::empty_object());
    let outcome = match data.error.filter(|error| !error.is_empty()) {
        Some(error) => ToolOutcome::error("raised", error),
        None => ToolOutcome::text(data.preview.unwrap_or_default()),
    };
    (call, outcome)
}

impl Config {
    fn mode(&self) -> StopMode {
        let accepts = self.accept_done_after_retries_exhausted.unwrap_or(true);
        if accepts { StopMode::Interactive } else { StopMode::StrictAutomation }
    }

    fn control(&self, contract: Option<Contract>) -> ControlSpec {
        let mut spec = ControlSpec::default();
        if self.require_work_complete.unwrap_or(true) {
            let usual = SignalSpec::default();
            let retries = self.work_complete_max_retries.unwrap_or(usual.retries);
            spec.signal = Some(usual.patience(0, retries));
        }
        if self.enable_stall_detection {
            spec.stall = Some(self.stall_threshold.map_or_else(StallSpec::default, StallSpec::after));
        }
        if self.enable_work_item_verification {
            spec.work = Some(WorkSpec::default());
        }
        if self.enable_contract_verification {
            let given = contract.map(|contract| contract.0);
            spec.contract = Some(given.unwrap_or_else(|| TaskContract::new("none", "")));
        }
        spec
    }

    /// Installs the hooks; whether there are any.
    fn install(self, calls: &Arc<Mutex<Vec<Value>>>, ports: &mut Ports) -> bool {
        for (number, does) in self.agent_stop_hooks.into_iter().enumerate() {
            let scripted = Scripted { number, does, calls: Arc::clone(calls) };
            let hook = check::new(format!("hook{number}").as_str(), Points::END, scripted);
            ports.checks.push(hook.on_error(OnError::LenientIfInteractive));
        }
        !ports.checks.is_empty()
    }
}

/// A decision with what the control knew after it.
fn shown(state: &ControlState, mode: StopMode, error: &str) -> Option<Value> {
    let decided = state.last_decision()?;
    let strict = mode == StopMode::StrictAutomation;
    let event = |kind: &str, data: Value| {
        json!({
            "event_type": kind, "turn_number": decided.turn, "max_turns": decided.max_turns, "data": data,
        })
    };
    let mut lifecycle = Vec::new();
    if let Some(turns) = decided.stall_turns {
        lifecycle.push(event("stall_detected", json!({ "stall_turns": turns })));
    }
    let reason = decided.stops.then(|| decision::reason(decided, strict, error));
    if let Some(reason) = &reason {
        let data = json!({
            "status": decision::status(decided), "reason_kind": at(reason, "kind"),
            "reason_message": at(reason, "message"),
        });
        lifecycle.push(event("harness_completed", data));
    }
    let mut shown = Map::new();
    for (key, value) in [
        ("turn", json!(decided.turn)),
        ("decision", json!(if decided.stops { "stop" } else { "continue" })),
        ("transcript_events", json!(decision::events(decided, strict, error))),
        ("lifecycle_events", json!(lifecycle)),
        ("work_complete_retry_count", json!(state.retries())),
        ("status", json!(decision::status(decided))),
        ("stop_reason", json!(reason)),
        ("feedback", decision::feedback(decided)),
    ] {
        shown.insert(key.to_owned(), value);
    }
    if decided.stops {
        shown.insert("deliverables".to_owned(), decision::deliverables(state));
    }
    Some(Value::Object(shown))
}

impl Ledger {
    fn read(self) -> Done<WorkLedger> {
        let items: Vec<Item> = self.items.into_values().collect();
        serde_json::from_value(json!({ "items": items })).map_err(|e| e.to_string())
    }
}

/// Leaves out the deliverables of evaluations that do not stop the run, which hand nothing over.
pub(super) fn without_early_deliverables(wanted: &mut Value, _: &mut Value) {
    for step in wanted.get_mut("steps").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(step) =
            step.as_object_mut().filter(|step| step.get("decision") == Some(&json!("continue")))
        {
            step.remove("deliverables");
        }
    }
}
