//! Calls of the work-item tools, one after another in one run.

use std::sync::Arc;

use harness::tools::{Keep, WorkTools};
use harness_control::work::{WorkItem, WorkLedger};
use harness_control::{ControlEvent, ControlSpec, UntilDone, WorkSpec};
use harness_core::driver::{Ports, drive};
use harness_core::event::EventKind;
use harness_core::machine::Start;
use harness_core::message::{AssistantMessage, Message, ToolCall};
use harness_core::port::SingleAgent;
use harness_core::run::{Run, RunSpec};
use harness_core::testing::{EventLog, ModelStep, ScriptedModel, VirtualClock};
use harness_core::tool::ToolOutcome;
use harness_core::transcript::Transcript;
use harness_core::{Cancel, Origin, Time};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::turn::convert::{at, text};
use crate::Done;
use crate::case::{block_on, exact};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    calls: Vec<Call>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    tool: String,
    args: Value,
}

pub(super) fn run(Input { calls }: Input) -> Done<Value> {
    let (run, told) = played(&calls)?;
    let (mut ends, mut ledgers, mut events) = (Vec::new(), vec![WorkLedger::default()], Vec::new());
    for event in told.events() {
        if let EventKind::ToolFinished { outcome, .. } | EventKind::ToolFailed { outcome, .. } = &event.kind {
            ends.push(outcome.clone());
        } else if let EventKind::MessageAppended { message, .. } = &event.kind
            && let Some(result) = message.as_tool_result()
        {
            let mut ledger = ledgers.last().cloned().unwrap_or_default();
            ledger.fold(result);
            ledgers.push(ledger);
        } else if let Some(ControlEvent::WorkItemsChanged { .. }) = ControlEvent::of(&event.kind) {
            let call = ledgers.len().checked_sub(2).and_then(|made| calls.get(made));
            events.extend(call.map(|call| &call.tool));
        }
    }
    if (ends.len(), ledgers.len()) != (calls.len(), calls.len() + 1) {
        return Err("some call has no end".to_owned());
    }
    let played = calls.iter().zip(&ends).zip(ledgers.iter().skip(1));
    let facts: Vec<_> = played.map(|((call, outcome), ledger)| fact(call, outcome, ledger)).collect();
    let outputs: Vec<_> = ends.iter().map(|outcome| said(outcome)).collect();
    let mut result = described(&WorkLedger::of(&run).ok_or("the run keeps no work items")?);
    result.insert("outputs".to_owned(), json!(outputs));
    result.insert("output_facts".to_owned(), json!(facts));
    result.insert("events".to_owned(), json!(events));
    Ok(Value::Object(result))
}

/// A run whose model makes one call after another.
fn played(calls: &[Call]) -> Done<(Run, EventLog)> {
    let step = |(call, number): (&Call, usize)| {
        let call = ToolCall::new(format!("c{number}"), &*call.tool, exact(&call.args)?);
        Ok(ModelStep::answer(AssistantMessage::calls([call])))
    };
    let mut steps = calls.iter().zip(1..).map(step).collect::<Done<Vec<_>>>()?;
    steps.push(ModelStep::answer(AssistantMessage::text("done")));
    let mut spec = RunSpec::default();
    spec.limits.turns = 1;
    let made = u32::try_from(calls.len()).map_err(|e| e.to_string())?;
    (spec.turn.limits.iterations, spec.turn.limits.tool_calls) = (made + 2, made + 1);
    // The same call may be made over and over.
    spec.turn.longest_cycle = 0;
    let clock = Arc::new(VirtualClock::still(Time(0)));
    let mut ports = Ports::new(Arc::new(ScriptedModel::new(steps)), Arc::clone(&clock) as _);
    ports.agents = Arc::new(SingleAgent::new("Do what is asked."));
    ports.tools = Arc::new(WorkTools::new(Keep::Run, clock).into_set());
    let events = EventLog::default();
    ports.hub.fold(events.clone());
    let control = Arc::new(ControlSpec::default().with_work(WorkSpec::default()));
    let mut origin = Origin::default();
    origin.run = Some("run".into());
    let mut run = Run::new(Arc::new(spec), origin, Transcript::default())
        .with_control(Box::new(UntilDone::new(control)));
    block_on(drive(&mut run, &ports, &Cancel::never(), Start::prompt(Message::user("continue"))))?;
    Ok((run, events))
}

fn said(outcome: &ToolOutcome) -> String {
    match &outcome.error {
        Some(error) => error.message.clone(),
        None => outcome.content.iter().filter_map(|block| block.as_text()).collect(),
    }
}

/// Facts of an answer.
fn fact(call: &Call, outcome: &ToolOutcome, ledger: &WorkLedger) -> Value {
    let mut fact = Map::new();
    fact.insert("error".to_owned(), json!(outcome.is_error()));
    let told = said(outcome);
    let data: Value = outcome.structured.as_ref().and_then(|json| json.to().ok()).unwrap_or(Value::Null);
    let items = data.get("changed").or_else(|| data.get("items"));
    let ids: Vec<&str> =
        items.and_then(Value::as_array).into_iter().flatten().map(|item| text(item, "id")).collect();
    let named = text(&call.args, "item_id");
    let ids = if outcome.is_error() && !named.is_empty() && told.contains(named) { vec![named] } else { ids };
    fact.insert("ids".to_owned(), json!(ids));
    if outcome.is_error() {
        return Value::Object(fact);
    }
    if let Some(percent) = data.get("percent").and_then(Value::as_f64) {
        let left = at(&data, "remaining");
        fact.insert("remaining".to_owned(), left.clone());
        fact.insert("percent".to_owned(), json!(format!("{percent:.0}").parse::<u64>().unwrap_or_default()));
        fact.insert("suggests_completion".to_owned(), json!(*left == json!(0)));
    }
    if call.tool == "work_item_list" {
        let shown = ledger.items().iter().filter(|item| ids.contains(&item.id.as_str()));
        let list: Vec<_> = shown
            .map(|item| {
                json!({ "id": item.id, "mark": item.status.mark(), "needs_revision": item.requires_revision })
            })
            .collect();
        fact.insert("list".to_owned(), json!(list));
    }
    if let Some(removed) = told.lines().last().and_then(|line| line.split_once(" line(s) of talk")) {
        fact.insert("cleaned_lines".to_owned(), json!(removed.0.parse::<u64>().unwrap_or_default()));
    }
    Value::Object(fact)
}

/// A ledger in the source's form, with what follows from it.
pub(crate) fn described(ledger: &WorkLedger) -> Map<String, Value> {
    let item = |item: &WorkItem| {
        json!({
            "id": item.id, "title": item.title, "status": item.status, "priority": item.priority,
            "notes": item.notes, "artifact": item.artifact, "artifact_role": item.artifact_role,
            "requires_revision": item.requires_revision, "revision_of": item.revision_of,
        })
    };
    let items: Map<String, Value> =
        ledger.items().iter().map(|known| (known.id.to_string(), item(known))).collect();
    let ids = |items: &mut dyn Iterator<Item = &WorkItem>| {
        items.map(|item| item.id.to_string()).collect::<Vec<_>>()
    };
    let (revise, open) =
        (ids(&mut ledger.to_revise()), ids(&mut ledger.incomplete().filter(|item| !item.status.is_closed())));
    let failed: Vec<String> =
        ledger.failed_audits().into_iter().flat_map(|audit| audit.failed_checks).collect();
    let audit = (!failed.is_empty()).then(|| json!({ "failed_checks": failed }));
    let described = json!({
        "ledger": { "items": items },
        "incomplete_ids": ids(&mut ledger.incomplete()),
        "all_complete": ledger.is_complete(),
        "completion_percentage": ledger.percent_complete(),
        "status_summary": ledger.counts(),
        "deliverables": ledger.deliverables(),
        "reminder_facts": { "needed": !ledger.is_complete(), "revision_ids": revise, "open_ids": open },
        "control_invariant_facts": audit,
    });
    described.as_object().cloned().unwrap_or_default()
}
