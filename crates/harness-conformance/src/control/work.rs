//! Calls of the work-item tools, one after another.

use std::sync::Arc;

use harness::tools::{Keep, WorkTools};
use harness_core::Json;
use harness_core::message::ToolCall;
use harness_core::port::{DynTool, ToolCx, ToolOutcome};
use harness_core::testing::VirtualClock;
use harness_core::work::{WorkItem, WorkLedger};
use serde_json::{Map, Value, json};

use super::super::turn::convert::{Done, at, list, text};

pub(super) fn run(input: &Value) -> Done<Value> {
    let tools = WorkTools::new(Keep::Run, Arc::new(VirtualClock::still(harness_core::Time(0))));
    let set = tools.clone().into_set();
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(|e| e.to_string())?;
    let (mut outputs, mut facts, mut events) = (Vec::new(), Vec::new(), Vec::new());
    for call in list(input, "calls") {
        let name = text(call, "tool");
        let tool: &Arc<dyn DynTool> =
            set.tools().iter().find(|tool| tool.tool_def().name == name).ok_or("an unknown tool")?;
        let arguments = Json::of(at(call, "args")).map_err(|e| e.to_string())?;
        let cx = ToolCx::for_call(Arc::new(ToolCall::new("c", name, arguments)));
        let outcome = runtime.block_on(tool.call_boxed(cx));
        facts.push(fact(
            name,
            &outcome,
            at(call, "args"),
            &tools.ledger(&harness_core::machine::Origin::default()),
        ));
        outputs.push(json!(said(&outcome)));
        if !matches!(name, "work_item_list" | "work_item_get") {
            events.push(json!(name));
        }
    }
    let ledger = tools.ledger(&harness_core::machine::Origin::default());
    let mut result = described(&ledger);
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
fn fact(name: &str, outcome: &ToolOutcome, arguments: &Value, ledger: &WorkLedger) -> Value {
    let mut fact = Map::new();
    fact.insert("error".to_owned(), json!(outcome.is_error()));
    let told = said(outcome);
    let data: Value = outcome.structured.as_ref().and_then(|json| json.to().ok()).unwrap_or(Value::Null);
    let items = data.get("changed").or_else(|| data.get("items"));
    let ids: Vec<&str> =
        items.and_then(Value::as_array).into_iter().flatten().map(|item| text(item, "id")).collect();
    let named = text(arguments, "item_id");
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
    if name == "work_item_list" {
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
