//! Start of a run before its first turn: with the given messages, or with open calls that it settles.

use std::sync::Arc;

use harness_core::event::{EventKind, RepairHow};
use harness_core::machine::{Op, Reply, Start};
use harness_core::message::{AssistantMessage, Message, ToolCall};
use harness_core::outcome::StopMode;
use harness_core::port::{OpenCall, PreparedAgent};
use harness_core::run::{Run, RunSpec, RunState};
use harness_core::testing::{Answer, ScriptedDriver, ScriptedWorld};
use harness_core::tool::RetryClass;
use harness_core::transcript::Transcript;
use harness_core::{OpId, Origin, Time};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::Done;
use crate::case::exact;

/// Only the source of agents responds: the run is before its first request.
struct Silent;

impl ScriptedWorld for Silent {
    #[expect(clippy::wildcard_enum_match_arm, reason = "nothing else is answered")]
    fn perform(&mut self, _: OpId, op: &Op, _: &Transcript) -> Answer {
        match op {
            Op::Prepare { .. } => {
                Answer::now(Reply::Prepared(Ok(Arc::new(PreparedAgent::new("main", "", Vec::new())))))
            }
            _ => Answer::Open,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    config: Option<Config>,
    state: Option<State>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    max_turns: Option<u32>,
    initial_message: Option<String>,
    stop_policy_profile: Option<String>,
    /// The product has one owner of compactions.
    #[serde(rename = "compaction")]
    _compaction: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    #[serde(rename = "harness.status")]
    _status: Running,
    #[serde(rename = "harness.transcript")]
    transcript: Vec<Value>,
    #[serde(rename = "harness.pending_tool_calls")]
    pending: Vec<Pending>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Running {
    Running,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pending {
    call_id: String,
    tool_name: String,
    args: Value,
    turn_number: u64,
}

pub(super) fn run(input: Input) -> Done<Value> {
    match (input.state, input.config) {
        (Some(state), None) => dangling(&state),
        (None, Some(config)) => Ok(first_run(&config)),
        (Some(_), Some(_)) | (None, None) => Err("either `config` or `state`".to_owned()),
    }
}

/// A run that begins.
fn first_run(config: &Config) -> Value {
    let mut spec = RunSpec::default();
    spec.limits.turns = config.max_turns.unwrap_or(spec.limits.turns);
    if let Some(profile) = &config.stop_policy_profile {
        match serde_json::from_value(json!(profile)) {
            Ok(mode) => spec.mode = mode,
            Err(fault) => return json!({ "error": fault.to_string() }),
        }
    }
    let said = config.initial_message.as_deref();
    let start = said.map_or_else(Start::resume, |said| Start::prompt(Message::user(said)));
    let (mode, most) = (spec.mode, spec.limits.turns);
    let driver = begin(spec, Transcript::default(), start);
    let started = driver.events().iter().filter(|event| matches!(event.kind, EventKind::RunStarted { .. }));
    let profile = match mode {
        StopMode::Interactive => "interactive",
        StopMode::StrictAutomation => "strict_automation",
    };
    let preview: Option<String> = said.map(|said| said.chars().take(100).collect());
    let lifecycle: Vec<_> = started
        .map(|_| {
            json!({
                "event_type": "harness_started", "turn_number": 0, "max_turns": most,
                "data": { "initial_message_preview": preview, "stop_policy_profile": profile },
            })
        })
        .collect();
    let initial = driver.machine().log().get(0).map(|message| message.joined_text());
    json!({
        "repairs_made": repairs(&driver).count(),
        "lifecycle_events": lifecycle,
        "state": {
            "harness.transcript": [],
            "harness.turn_count": driver.machine().turn() - 1,
            "harness.max_turns": most,
            "harness.status": status(&driver),
            "harness.stop_reason": driver.machine().end().map(|end| end.reason().as_str()),
            "harness.pending_tool_calls": pending(&driver),
            "harness.initial_message": initial,
            "harness.stop_policy_profile": profile,
        },
    })
}

/// Run that finds calls which an earlier process started.
fn dangling(state: &State) -> Done<Value> {
    let left = &state.pending;
    let call = |call: &Pending| Ok(ToolCall::new(&*call.call_id, &*call.tool_name, exact(&call.args)?));
    let calls: Vec<ToolCall> = left.iter().map(call).collect::<Done<_>>()?;
    let open = calls.iter().map(|call| OpenCall::new(call.id.clone(), 1, RetryClass::Unsafe, None)).collect();
    let mut log = vec![Arc::new(Message::user("go"))];
    if !calls.is_empty() {
        log.push(Arc::new(Message::Assistant(AssistantMessage::calls(calls))));
    }
    let start = Start::resume().with_open_calls(open);
    let driver = begin(RunSpec::default(), log.into_iter().collect(), start);
    let mut transcript = state.transcript.clone();
    for call in repairs(&driver) {
        let known = left.iter().find(|known| known.call_id == call.id.as_str());
        let results = driver.machine().log().iter().filter_map(|message| message.as_tool_result());
        let told = results.filter(|result| result.tool_call_id == call.id).count();
        transcript.push(json!({
            "event_type": "repair",
            "data": {
                "kind": "dangling_tool_call",
                "call_id": call.id.as_str(),
                "tool_name": call.name.as_str(),
                "turn_number": known.map(|known| known.turn_number),
                // The model is told once of each.
                "message": if told == 1 { "interrupted" } else { "" },
            },
        }));
    }
    Ok(json!({
        "repairs_made": repairs(&driver).count(),
        "lifecycle_events": [],
        "state": {
            "harness.status": status(&driver),
            "harness.transcript": transcript,
            "harness.pending_tool_calls": pending(&driver),
        },
    }))
}

type Driver = ScriptedDriver<RunState, Silent>;

fn begin(spec: RunSpec, log: Transcript, start: Start) -> Driver {
    let mut driver = ScriptedDriver::new(Run::new(Arc::new(spec), Origin::default(), log), Silent, Time(0));
    driver.input(harness_core::machine::Input::Start(Box::new(start)));
    driver.settle();
    driver
}

fn repairs(driver: &Driver) -> impl Iterator<Item = &ToolCall> {
    driver.events().iter().filter_map(|event| {
        let EventKind::CallRepaired { call, how: RepairHow::Interrupted } = &event.kind else { return None };
        Some(&**call)
    })
}

fn status(driver: &Driver) -> &'static str {
    if driver.machine().end().is_some() { "done" } else { "running" }
}

fn pending(driver: &Driver) -> Vec<String> {
    driver.machine().open_calls().iter().map(|open| open.call.to_string()).collect()
}

/// The product has one owner of compactions: there is no mode to tell.
pub(super) fn without_owner_mode(wanted: &mut Value, _: &mut Value) {
    leave_out_owner_mode(wanted);
}

fn leave_out_owner_mode(wanted: &mut Value) {
    match wanted {
        Value::Object(map) => {
            map.retain(|key, _| !key.ends_with("compaction_owner_mode"));
            map.values_mut().for_each(leave_out_owner_mode);
        }
        Value::Array(list) => list.iter_mut().for_each(leave_out_owner_mode),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
