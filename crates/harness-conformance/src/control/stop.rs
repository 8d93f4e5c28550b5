//! Stop decisions over a state and a transcript of the source's form, one evaluation after another.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use harness_control::contract::TaskContract;
use harness_control::work::WorkLedger;
use harness_control::{
    ControlSpec, ControlState, Deciding, GateJudgement, GateReport, Refusal, SignalSpec, StallSpec, StopCode,
    TurnOutcome, WorkSpec,
};
use harness_core::decide::DecideCx;
use harness_core::driver::Ports;
use harness_core::hooks::Hooks;
use harness_core::message::{AssistantMessage, Message, ToolCall};
use harness_core::port::{AgentStop, AgentStopAsk, AgentStopHook, Judgement, StopStanding, ToolOutcome};
use harness_core::run::{RunSpec, StopMode};
use harness_core::testing::{ScriptedModel, VirtualClock};
use harness_core::transcript::Transcript;
use harness_core::{Cancel, End, Fault, FaultSource, GateName, Json, Time};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::super::turn::convert::{at, text};
use super::{Contract, Told, What, decision};
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

/// What is not said is the product's default.
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

/// What a hook does.
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

/// What no vector gives: the product's coverage begins with its contract.
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
    name: GateName,
    number: usize,
    does: Does,
    calls: Arc<Mutex<Vec<Value>>>,
}

impl AgentStopHook for Scripted {
    fn name(&self) -> GateName {
        self.name.clone()
    }

    async fn stopping(&self, ask: &AgentStopAsk) -> Result<AgentStop, Fault> {
        let standing = &ask.standing;
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(json!({
            "hook": self.number,
            "turn_count": standing.turn_count,
            "tool_usage": standing.tool_usage,
            "called_work_complete": standing.called_work_complete,
        }));
        if let Some(why) = &self.does.raises {
            return Err(Fault::new(FaultSource::Hook, "raised", &**why));
        }
        Ok(match &self.does.returns {
            Some(Said { decision: Decision::Block, reason }) => AgentStop::Block { reason: reason.clone() },
            Some(Said { decision: Decision::Allow, .. }) | None => AgentStop::Allow,
        })
    }
}

/// What is evaluated.
struct Case {
    spec: ControlSpec,
    mode: StopMode,
    ports: Ports,
    state: ControlState,
    turn: u32,
    max_turns: u32,
    seq: u64,
}

pub(super) fn run(input: Input) -> Done<Value> {
    let calls = Arc::default();
    let Input { config, state, steps: asked } = input;
    let mut case = Case::of(config, state, &calls)?;
    let mut steps = Vec::new();
    for step in asked {
        let decided = block_on(case.step(step))??;
        let is_over = text(&decided, "decision") == "stop";
        steps.push(decided);
        if is_over {
            break;
        }
    }
    let mut result = json!({ "steps": steps });
    if let Some(hooks) = result.as_object_mut().filter(|_| case.has_hooks()) {
        let calls = calls.lock().unwrap_or_else(PoisonError::into_inner).clone();
        hooks.insert("hook_calls".to_owned(), json!(calls));
    }
    Ok(result)
}

impl Case {
    fn of(config: Config, before: Before, calls: &Arc<Mutex<Vec<Value>>>) -> Done<Self> {
        let mut spec = ControlSpec::default();
        if config.require_work_complete.unwrap_or(true) {
            let usual = SignalSpec::default();
            let retries = config.work_complete_max_retries.unwrap_or(usual.retries);
            spec.signal = Some(usual.patience(0, retries));
        }
        if config.enable_stall_detection {
            spec.stall = Some(config.stall_threshold.map_or_else(StallSpec::default, StallSpec::after));
        }
        if config.enable_work_item_verification {
            spec.work = Some(WorkSpec::default());
        }
        if config.enable_contract_verification {
            let given = before.task_contract.map(|contract| contract.0);
            spec.contract = Some(given.unwrap_or_else(|| TaskContract::new("none", "")));
        }
        let clock = Arc::new(VirtualClock::still(Time(0)));
        let mut ports = Ports::new(Arc::new(ScriptedModel::default()), clock);
        let mut hooks = Hooks::new();
        for (number, does) in config.agent_stop_hooks.into_iter().enumerate() {
            let (name, calls) = (format!("hook{number}").into(), Arc::clone(calls));
            hooks = hooks.agent_stop(Scripted { name, number, does, calls });
        }
        hooks.install(&mut ports);
        let accepts = config.accept_done_after_retries_exhausted.unwrap_or(true);
        let known = ControlState::new(&spec)
            .with_ledger(before.work_item_ledger.map(Ledger::read).transpose()?.unwrap_or_default())
            .with_retries(before.work_complete_retry_count);
        let mut case = Self {
            state: known,
            spec,
            mode: if accepts { StopMode::Interactive } else { StopMode::StrictAutomation },
            ports,
            turn: before.turn_count,
            max_turns: before.max_turns.unwrap_or_else(|| RunSpec::default().limits.turns),
            seq: 0,
        };
        case.note(before.transcript)?;
        Ok(case)
    }

    fn has_hooks(&self) -> bool {
        !self.ports.stop_gates.is_empty()
    }

    /// Takes note of events of the source, as the messages that they tell of.
    fn note(&mut self, events: Vec<Told>) -> Done<()> {
        for event in events {
            let message = match event.what {
                What::Call(data) => {
                    let args = data.args.as_ref().map_or_else(|| Ok(Json::empty_object()), exact)?;
                    let call = ToolCall::new(data.call_id, data.tool_name, args);
                    Message::Assistant(AssistantMessage::calls([call]))
                }
                What::Result(data) => {
                    let call =
                        ToolCall::new(data.call_id.unwrap_or_default(), data.tool_name, Json::empty_object());
                    let outcome = match data.error.filter(|error| !error.is_empty()) {
                        Some(error) => ToolOutcome::error("raised", error),
                        None => ToolOutcome::text(data.preview.unwrap_or_default()),
                    };
                    Message::ToolResult(outcome.to_message(&call, None, Time(0)))
                }
                What::Response(data) => match data.message {
                    Some(said) => Message::Assistant(AssistantMessage::text(said)),
                    None => continue,
                },
                What::Start => continue,
            };
            self.take(&message);
        }
        Ok(())
    }

    fn take(&mut self, message: &Message) {
        self.seq += 1;
        self.state.note_message(&self.spec, self.seq, message);
    }

    /// The tools of a turn changed the ledger: what they did is in their result.
    fn change(&mut self, ledger: &WorkLedger) -> Done<()> {
        let delta = ledger.delta_since(self.state.ledger());
        let call = ToolCall::new("work", "work_item_update", Json::empty_object());
        let mut outcome = ToolOutcome::text("changed");
        outcome.structured = Some(Json::of(&json!({ "ledger": delta })).map_err(|e| e.to_string())?);
        self.take(&Message::Assistant(AssistantMessage::calls([call.clone()])));
        self.take(&Message::ToolResult(outcome.to_message(&call, None, Time(0))));
        Ok(())
    }

    async fn step(&mut self, step: Step) -> Done<Value> {
        self.note(step.append_transcript)?;
        if let Some(given) = step.work_item_ledger {
            self.change(&given.read()?)?;
        }
        self.turn += 1;
        let signal = step.turn.called_work_complete;
        let error = step.turn.error.as_deref().unwrap_or_default();
        if signal {
            self.signal();
        }
        let over = self.state.turn_over(&self.spec);
        let outcome = if !error.is_empty() {
            TurnOutcome::Ended(StopCode::Failed)
        } else if !step.turn.agent_done {
            TurnOutcome::Working { productive: true }
        } else if self.spec.signal.is_some() {
            TurnOutcome::Done { signal }
        } else {
            over
        };
        let limit = (self.turn >= self.max_turns).then_some(StopCode::MaxTurns);
        let refusal = self.judge(outcome, limit.is_some()).await?;
        let (asked, found) = Default::default();
        let at = Deciding {
            spec: &self.spec,
            mode: self.mode,
            turn: self.turn,
            max_turns: self.max_turns,
            asked: &asked,
            found: &found,
            now: Time(0),
        };
        let decided = self.state.decide(&at, outcome, refusal, limit);
        Ok(self.shown(&decided, error))
    }

    /// The signal, as the call and the result that it is.
    fn signal(&mut self) {
        let arguments = Json::of(&json!({ "summary": "finished" })).unwrap_or_default();
        let call = ToolCall::new("signal", "work_complete", arguments);
        let result = ToolOutcome::text("").to_message(&call, None, Time(0));
        let messages = [Message::Assistant(AssistantMessage::calls([call])), Message::ToolResult(result)];
        for message in &messages {
            self.take(message);
        }
    }

    /// Asks the gates of the control, then the hooks.
    async fn judge(&mut self, outcome: TurnOutcome, is_last: bool) -> Done<Option<Refusal>> {
        let claims = matches!(outcome, TurnOutcome::Done { .. });
        if matches!(outcome, TurnOutcome::Ended(_)) || !(claims || is_last) {
            return Ok(None);
        }
        let asked = self.state.asks(&self.spec);
        let cx = DecideCx::new(Transcript::default().prefix(), Arc::default(), Cancel::never(), Time(0));
        let facts = harness_control::StandardFacts::default();
        let ask = Json::of(&asked).map_err(|e| e.to_string())?;
        let found =
            harness_core::port::FactSource::gather(&facts, &ask, &cx).await.map_err(|e| e.to_string())?;
        let found = found.to().map_err(|e| e.to_string())?;
        let at = Deciding {
            spec: &self.spec,
            mode: self.mode,
            turn: self.turn,
            max_turns: self.max_turns,
            asked: &asked,
            found: &found,
            now: Time(0),
        };
        let refusal = self.state.judge(&at, outcome);
        if refusal.is_some() || !claims {
            return Ok(refusal);
        }
        let mut standing = StopStanding::default();
        standing.turn_count = self.turn;
        standing.tool_usage.clone_from(self.state.usage());
        standing.tool_usage.remove(&"work_complete".into());
        standing.called_work_complete = outcome == TurnOutcome::Done { signal: true };
        standing.mode = self.mode;
        let cx = cx.standing_at(Arc::new(standing));
        for gate in &self.ports.stop_gates {
            let judged = gate.weigh_boxed(&end()?, &cx).await;
            if let Judgement::Continue { guidance } = judged.judgement {
                return Ok(Some(Refusal::by_gate(gate.gate_name().as_str(), guidance)));
            }
            self.state.note_gate(GateReport::new(gate.gate_name(), GateJudgement::Accepted));
        }
        Ok(None)
    }

    fn shown(&self, decided: &harness_control::StopDecision, error: &str) -> Value {
        let strict = self.mode == StopMode::StrictAutomation;
        let event = |kind: &str, data: Value| {
            json!({
                "event_type": kind, "turn_number": self.turn, "max_turns": self.max_turns, "data": data,
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
            ("turn", json!(self.turn)),
            ("decision", json!(if decided.stops { "stop" } else { "continue" })),
            ("transcript_events", json!(decision::events(decided, strict, error))),
            ("lifecycle_events", json!(lifecycle)),
            ("work_complete_retry_count", json!(self.state.retries())),
            ("status", json!(decision::status(decided))),
            ("stop_reason", json!(reason)),
            ("feedback", decision::feedback(decided)),
        ] {
            shown.insert(key.to_owned(), value);
        }
        if decided.stops {
            shown.insert("deliverables".to_owned(), decision::deliverables(&self.state));
        }
        Value::Object(shown)
    }
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

/// An end that claims to be complete.
fn end() -> Done<End> {
    let end = json!({
        "stop": { "reason": "answer_finalized" }, "iterations": 1, "turns": 1, "usage": {}, "elapsed": 0,
    });
    serde_json::from_value(end).map_err(|e| e.to_string())
}
