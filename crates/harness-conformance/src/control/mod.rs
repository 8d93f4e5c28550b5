//! Vectors of the control plane: work items, artifacts and contracts.

mod contract;
mod decision;
mod hooks;
mod repair;
mod steering;
mod stop;
mod whole;
mod work;

use harness_control::contract::TaskContract;
use harness_control::work::{AuditReport, clean_artifact};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::turn::compare::same;
use crate::Done;
use crate::case::Case;
use crate::known::Known;
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Texts for users and models: only their presence is compared.
const FREE: [&str; 8] = [
    "message",
    "reason_message",
    "value",
    "suggestions",
    "error",
    "outputs",
    "reminder",
    "control_invariant",
];

/// Runs the one vector of the file.
pub(crate) fn run(vector: &Vector) -> Verdict {
    let as_wanted = |_: &mut Value, _: &mut Value| {};
    match vector.kind() {
        "artifact-cleaning" => check(vector, |input| Ok(cleaning(&input)), as_wanted),
        "control-artifact" => check(vector, |input| Ok(audit(&input)), as_wanted),
        "contract" => check(vector, contract::run, as_wanted),
        "hooks" => check(vector, hooks::run, hooks::as_reasons),
        "jit" => check(vector, steering::jit, as_wanted),
        "repair" => check(vector, repair::run, repair::without_owner_mode),
        "run" => check(vector, whole::run, whole::only_wanted),
        "stall" => check(vector, steering::stall, steering::without_values),
        "stop-decision" => check(vector, stop::run, stop::without_early_deliverables),
        "work-items" => check(vector, work::run, as_wanted),
        other => Err(format!("unknown kind of the control plane `{other}`")),
    }
    .into()
}

/// Compares the result of `play` with the expected one; `settle` removes what is not compared.
fn check<I: DeserializeOwned>(
    vector: &Vector,
    play: fn(I) -> Done<Value>,
    settle: fn(&mut Value, &mut Value),
) -> Done<()> {
    let Case { input, expect: mut wanted, compare, .. } = Case::of(vector)?;
    let mut got = play(input)?;
    if let Some(keys) = compare {
        for value in [&mut wanted, &mut got] {
            if let Some(map) = value.as_object_mut() {
                map.retain(|key, _| keys.contains(key));
            }
        }
    }
    settle(&mut wanted, &mut got);
    unword(&mut wanted);
    unword(&mut got);
    same("wanted", &wanted, &got)
}

/// One text.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Artifact {
    artifact: String,
}

/// A contract as the product writes it.
type Contract = Known<TaskContract>;

/// An event of the source's transcript.
#[derive(Clone, Deserialize)]
#[serde(try_from = "Event")]
struct Told {
    id: String,
    what: What,
}

#[derive(Clone)]
enum What {
    Call(CallData),
    Result(ResultData),
    Response(ResponseData),
    /// Emits nothing that is compared.
    Start,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Event {
    #[serde(rename = "event_id")]
    id: Option<String>,
    #[serde(rename = "event_type")]
    kind: EventType,
    data: Value,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum EventType {
    ToolCall,
    ToolResult,
    AgentResponse,
    TurnStart,
}

impl TryFrom<Event> for Told {
    type Error = String;

    fn try_from(event: Event) -> Done<Self> {
        let what = match event.kind {
            EventType::ToolCall => serde_json::from_value(event.data).map(What::Call),
            EventType::ToolResult => serde_json::from_value(event.data).map(What::Result),
            EventType::AgentResponse => serde_json::from_value(event.data).map(What::Response),
            EventType::TurnStart => serde_json::from_value::<StartData>(event.data).map(|_| What::Start),
        };
        Ok(Self { id: event.id.unwrap_or_default(), what: what.map_err(|e| e.to_string())? })
    }
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct CallData {
    call_id: String,
    tool_name: String,
    args: Option<Value>,
    #[serde(rename = "turn_number")]
    _turn: Option<u64>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ResultData {
    call_id: Option<String>,
    tool_name: String,
    error: Option<String>,
    preview: Option<String>,
    #[serde(rename = "turn_number")]
    _turn: Option<u64>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ResponseData {
    message: Option<String>,
    #[serde(rename = "has_tool_calls")]
    _calls: Option<bool>,
    #[serde(rename = "message_count")]
    _messages: Option<u64>,
    #[serde(rename = "turn_number")]
    _turn: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StartData {
    #[serde(rename = "n")]
    _number: Option<u64>,
    #[serde(rename = "turn_number")]
    _turn: Option<u64>,
    #[serde(rename = "repairs_made")]
    _repairs: Option<u64>,
}

/// Replaces free texts by whether there is one.
fn unword(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                let is_free = FREE.contains(&key.as_str());
                if let (true, Some(text)) = (is_free, value.as_str()) {
                    *value = json!(!text.is_empty());
                } else if let (true, Some(texts)) = (is_free, value.as_array()) {
                    *value = json!(texts.len());
                } else {
                    unword(value);
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(unword),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn cleaning(Artifact { artifact }: &Artifact) -> Value {
    let cleaned = clean_artifact(artifact);
    let is_clean = cleaned.removed.is_empty();
    json!({
        "level": if is_clean { "clean" } else { "light_contamination" },
        "cleaned_content": cleaned.text,
        "removed_lines": cleaned.removed,
        "message": if is_clean { "" } else { "<free>" },
    })
}

fn audit(Artifact { artifact }: &Artifact) -> Value {
    let fault = AuditReport::parse(artifact).err();
    json!({ "valid": fault.is_none(), "error": fault.map(|fault| fault.to_string()).unwrap_or_default() })
}
