//! Stop decisions over a state and a transcript of the source's form, one evaluation after another.

use std::sync::{Arc, Mutex, PoisonError};

use harness_core::contract::TaskContract;
use harness_core::control::{
    ControlSpec, ControlState, Deciding, GateJudgement, GateReport, Refusal, SignalSpec, StallSpec, StopCode,
    TurnOutcome, WorkSpec,
};
use harness_core::driver::Ports;
use harness_core::hooks::Hooks;
use harness_core::message::{AssistantMessage, Message, ToolCall};
use harness_core::port::{
    AgentStop, AgentStopAsk, AgentStopHook, GateCx, Judgement, StopStanding, ToolOutcome,
};
use harness_core::run::StopMode;
use harness_core::testing::{ScriptedModel, VirtualClock};
use harness_core::transcript::Transcript;
use harness_core::work::WorkLedger;
use harness_core::{Cancel, End, Fault, FaultSource, GateName, Json, Time};
use serde_json::{Map, Value, json};

use super::super::turn::convert::{Done, at, list, text};
use super::decision;

/// A hook as a case describes it.
struct Scripted {
    name: GateName,
    number: usize,
    does: Value,
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
        if let Some(why) = self.does.get("raises").and_then(Value::as_str) {
            return Err(Fault::new(FaultSource::Hook, "raised", why));
        }
        let said = at(&self.does, "returns");
        match text(said, "decision") {
            "block" => Ok(AgentStop::Block { reason: text(said, "reason").to_owned() }),
            _ => Ok(AgentStop::Allow),
        }
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

pub(super) fn run(input: &Value) -> Done<Value> {
    let calls = Arc::default();
    let mut case = Case::read(input, &calls)?;
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(|e| e.to_string())?;
    let mut steps = Vec::new();
    for step in list(input, "steps") {
        let decided = runtime.block_on(case.step(step))?;
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
    fn read(input: &Value, calls: &Arc<Mutex<Vec<Value>>>) -> Done<Self> {
        let (config, state) = (at(input, "config"), at(input, "state"));
        let is_on = |key: &str, default| config.get(key).and_then(Value::as_bool).unwrap_or(default);
        let number = |of: &Value, key: &str, default| {
            let number = of.get(key).and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok());
            number.unwrap_or(default)
        };
        let mut spec = ControlSpec::default();
        if is_on("require_work_complete", true) {
            let retries = number(config, "work_complete_max_retries", 3);
            spec.signal = Some(SignalSpec::default().patience(0, retries));
        }
        if is_on("enable_stall_detection", false) {
            spec.stall = Some(StallSpec::after(number(config, "stall_threshold", 3)));
        }
        if is_on("enable_work_item_verification", false) {
            spec.work = Some(WorkSpec::default());
        }
        if is_on("enable_contract_verification", false)
            && let Some(contract) = state.get("task_contract")
        {
            let contract: TaskContract =
                serde_json::from_value(contract.clone()).map_err(|e| e.to_string())?;
            spec.contract = Some(contract);
        }
        let clock = Arc::new(VirtualClock::still(Time(0)));
        let mut ports = Ports::new(Arc::new(ScriptedModel::default()), clock);
        let mut hooks = Hooks::new();
        for (number, does) in list(config, "agent_stop_hooks").iter().enumerate() {
            let (name, calls) = (format!("hook{number}").into(), Arc::clone(calls));
            hooks = hooks.agent_stop(Scripted { name, number, does: does.clone(), calls });
        }
        hooks.install(&mut ports);
        let accepts = is_on("accept_done_after_retries_exhausted", true);
        let known = ControlState::new(&spec)
            .with_ledger(ledger(at(state, "work_item_ledger"))?)
            .with_retries(number(state, "work_complete_retry_count", 0));
        let mut case = Self {
            state: known,
            spec,
            mode: if accepts { StopMode::Interactive } else { StopMode::StrictAutomation },
            ports,
            turn: number(state, "turn_count", 0),
            max_turns: number(state, "max_turns", 50),
            seq: 0,
        };
        case.note(list(state, "transcript"))?;
        Ok(case)
    }

    fn has_hooks(&self) -> bool {
        !self.ports.stop_gates.is_empty()
    }

    /// Takes note of events of the source, as the messages that they tell of.
    fn note(&mut self, events: &[Value]) -> Done<()> {
        for event in events {
            let data = at(event, "data");
            let args = data.get("args").map_or_else(|| Ok(Json::empty_object()), Json::of);
            let call = ToolCall::new(
                text(data, "call_id"),
                text(data, "tool_name"),
                args.map_err(|e| e.to_string())?,
            );
            let message = match text(event, "event_type") {
                "tool_call" => Message::Assistant(AssistantMessage::calls([call])),
                "tool_result" => {
                    let error = data.get("error").filter(|error| !error.is_null() && **error != json!(""));
                    let outcome = match error {
                        Some(error) => ToolOutcome::error("raised", error.to_string()),
                        None => ToolOutcome::text(text(data, "preview")),
                    };
                    Message::ToolResult(outcome.to_message(&call, None, Time(0)))
                }
                "agent_response" if data.get("message").is_some() => {
                    Message::Assistant(AssistantMessage::text(text(data, "message")))
                }
                _ => continue,
            };
            self.seq += 1;
            self.state.note_message(&self.spec, self.seq, &message);
        }
        Ok(())
    }

    async fn step(&mut self, step: &Value) -> Done<Value> {
        self.note(list(step, "append_transcript"))?;
        if let Some(given) = step.get("work_item_ledger") {
            self.state = std::mem::take(&mut self.state).with_ledger(ledger(given)?);
        }
        self.turn += 1;
        let turn = at(step, "turn");
        let is = |key: &str| turn.get(key).and_then(Value::as_bool).unwrap_or(false);
        let (signal, error) = (is("called_work_complete"), text(turn, "error"));
        if signal {
            self.signal();
        }
        let over = self.state.turn_over(&self.spec);
        let outcome = if !error.is_empty() {
            TurnOutcome::Ended(StopCode::Failed)
        } else if !is("agent_done") {
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
        for message in messages {
            self.seq += 1;
            self.state.note_message(&self.spec, self.seq, &message);
        }
    }

    /// Asks the gates of the control, then the hooks.
    async fn judge(&mut self, outcome: TurnOutcome, is_last: bool) -> Done<Option<Refusal>> {
        let claims = matches!(outcome, TurnOutcome::Done { .. });
        if matches!(outcome, TurnOutcome::Ended(_)) || !(claims || is_last) {
            return Ok(None);
        }
        let asked = self.state.asks(&self.spec);
        let cx = GateCx::new(Transcript::default().prefix(), Arc::default(), Cancel::never(), Time(0));
        let facts = harness_core::control::StandardFacts::default();
        let found =
            harness_core::port::FactSource::gather(&facts, &asked, &cx).await.map_err(|e| e.to_string())?;
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

    fn shown(&self, decided: &harness_core::control::StopDecision, error: &str) -> Value {
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

/// A ledger in the source's form: an object of items by their names.
fn ledger(value: &Value) -> Done<WorkLedger> {
    let items: Vec<&Value> = at(value, "items").as_object().into_iter().flat_map(Map::values).collect();
    serde_json::from_value(json!({ "items": items })).map_err(|e| e.to_string())
}

/// Leaves out the deliverables of evaluations that do not stop the run, which hand nothing over.
pub(super) fn without_early_deliverables(wanted: &mut Value) {
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
