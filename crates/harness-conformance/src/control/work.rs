//! Calls of the work-item tools, one after another.

use std::sync::Arc;

use harness::tools::{Keep, WorkTools};
use harness_control::work::{WorkItem, WorkLedger};
use harness_control::{ControlSpec, ControlState, WorkSpec};
use harness_core::Time;
use harness_core::message::{Message, ToolCall};
use harness_core::port::{DynTool, ToolCx, ToolOutcome};
use harness_core::testing::VirtualClock;
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

pub(super) fn run(input: Input) -> Done<Value> {
    let tools = WorkTools::new(Keep::Run, Arc::new(VirtualClock::still(Time(0))));
    let set = tools.into_set();
    let spec = ControlSpec::default().with_work(WorkSpec::default());
    let mut state = ControlState::new(&spec);
    let (mut outputs, mut facts, mut events) = (Vec::new(), Vec::new(), Vec::new());
    for (call, seq) in input.calls.iter().zip(1..) {
        let found = set.tools().iter().find(|tool| tool.tool_def().name == *call.tool);
        let tool: &Arc<dyn DynTool> = found.ok_or_else(|| format!("`{}` is no work tool", call.tool))?;
        let made = ToolCall::new("c", &*call.tool, exact(&call.args)?);
        let outcome = block_on(tool.call_boxed(ToolCx::for_call(Arc::new(made.clone()))))?;
        // The control of a run follows its ledger from the results of the tools.
        let result = Message::ToolResult(outcome.to_message(&made, None, Time(0)));
        if !state.note_message(&spec, seq, &result).is_empty() {
            events.push(json!(call.tool));
        }
        facts.push(fact(call, &outcome, state.ledger()));
        outputs.push(json!(said(&outcome)));
    }
    let mut result = described(state.ledger());
    result.insert("outputs".to_owned(), json!(outputs));
    result.insert("output_facts".to_owned(), json!(facts));
    result.insert("events".to_owned(), json!(events));
    Ok(Value::Object(result))
}

fn said(outcome: &ToolOutcome) -> String {
    match &outcome.error {
        Some(error) => error.message.clone(),
        None => outcome.content.iter().filter_map(|block| block.as_text()).collect(),
    }
}

/// What an answer says, in facts.
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
