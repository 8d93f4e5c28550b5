//! What a run does before its first turn: it begins with what it was given, or settles what was left open.

use std::sync::Arc;

use harness_core::event::{EventKind, RepairHow};
use harness_core::machine::{Op, Origin, Reply, Start};
use harness_core::message::{AssistantMessage, Message, ToolCall};
use harness_core::port::{Offer, OpenCall, RetryClass};
use harness_core::run::{Run, RunSpec, RunState, StopMode};
use harness_core::testing::{Answer, Outside, ScriptedDriver};
use harness_core::transcript::Transcript;
use harness_core::{Json, OpId, Time};
use serde_json::{Value, json};

use super::super::turn::convert::{Done, at, list, text};

/// Nobody answers but the source of agents: the run stands before its first request.
struct Silent;

impl Outside for Silent {
    #[expect(clippy::wildcard_enum_match_arm, reason = "nothing else is answered")]
    fn perform(&mut self, _: OpId, op: &Op, _: &Transcript) -> Answer {
        match op {
            Op::Prepare { .. } => {
                Answer::now(Reply::Prepared(Ok(Arc::new(Offer::new("main", "", Vec::new())))))
            }
            _ => Answer::Open,
        }
    }
}

pub(super) fn run(input: &Value) -> Done<Value> {
    match input.get("state") {
        Some(state) => dangling(state),
        None => first_run(at(input, "config")),
    }
}

/// A run that begins.
fn first_run(config: &Value) -> Done<Value> {
    let turns = config.get("max_turns").and_then(Value::as_u64).unwrap_or(50);
    let mut spec = RunSpec::default();
    spec.limits.turns = u32::try_from(turns).map_err(|e| e.to_string())?;
    let profile = at(config, "stop_policy_profile");
    if !profile.is_null() {
        spec.mode = serde_json::from_value(profile.clone()).map_err(|e| e.to_string())?;
    }
    let said = config.get("initial_message").and_then(Value::as_str);
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
    Ok(json!({
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
    }))
}

/// A run that finds calls which an earlier process had begun.
fn dangling(state: &Value) -> Done<Value> {
    let left = list(state, "harness.pending_tool_calls");
    let call = |call: &Value| -> Done<ToolCall> {
        let arguments = Json::of(at(call, "args")).map_err(|e| e.to_string())?;
        Ok(ToolCall::new(text(call, "call_id"), text(call, "tool_name"), arguments))
    };
    let calls: Vec<ToolCall> = left.iter().map(call).collect::<Done<_>>()?;
    let open = calls.iter().map(|call| OpenCall::new(call.id.clone(), 1, RetryClass::Unsafe, None)).collect();
    let mut log = vec![Arc::new(Message::user("go"))];
    if !calls.is_empty() {
        log.push(Arc::new(Message::Assistant(AssistantMessage::calls(calls))));
    }
    let start = Start::resume().with_open_calls(open);
    let driver = begin(RunSpec::default(), log.into_iter().collect(), start);
    let mut transcript = list(state, "harness.transcript").to_vec();
    for call in repairs(&driver) {
        let known = left.iter().find(|known| text(known, "call_id") == call.id.as_str());
        let results = driver.machine().log().iter().filter_map(|message| message.as_tool_result());
        let told = results.filter(|result| result.tool_call_id == call.id).count();
        transcript.push(json!({
            "event_type": "repair",
            "data": {
                "kind": "dangling_tool_call",
                "call_id": call.id.as_str(),
                "tool_name": call.name.as_str(),
                "turn_number": known.map(|known| at(known, "turn_number")),
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
pub(super) fn without_owner_mode(wanted: &mut Value) {
    match wanted {
        Value::Object(map) => {
            map.retain(|key, _| !key.ends_with("compaction_owner_mode"));
            map.values_mut().for_each(without_owner_mode);
        }
        Value::Array(list) => list.iter_mut().for_each(without_owner_mode),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
