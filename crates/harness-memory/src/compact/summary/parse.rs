//! Reading a summary out of a model's reply.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::types::{
    ArtifactReference, Decision, OpenItem, Priority, SpanReference, StructuredSummary, ToolOutcomeSummary,
};
use crate::compact::error::CompactError;

/// How much of an unreadable reply an error shows, in characters.
const SHOWN: usize = 60;

impl StructuredSummary {
    /// Reads a model's reply: a JSON object, with or without a code fence around it. Entries of the wrong
    /// form are left out; facts of `preserve` that it does not hold are added.
    ///
    /// # Errors
    /// The response is not a JSON object: an empty summary would lose everything.
    pub fn parse(reply: &str, span: SpanReference, preserve: &[String]) -> Result<Self, CompactError> {
        let object: Map<String, Value> =
            serde_json::from_str(without_fence(reply)).map_err(|reason| CompactError::InvalidSummary {
                reason: reason.to_string(),
                begin: reply.trim().chars().take(SHOWN).collect(),
            })?;
        let mut summary = Self {
            facts: texts(&object, "facts"),
            decisions: entries(&object, "decisions", decision),
            open_items: entries(&object, "open_items", open_item),
            artifacts: entries(&object, "artifacts", artifact),
            tool_outcomes: entries(&object, "tool_outcomes", tool_outcome),
            current_task: object.get("current_task").and_then(Value::as_str).map(str::to_owned),
            current_plan: object
                .get("current_plan")
                .filter(|plan| plan.is_array())
                .map(|_| texts(&object, "current_plan")),
            ..Self::of(span)
        };
        for fact in preserve {
            if !summary.facts.contains(fact) {
                summary.facts.push(fact.clone());
            }
        }
        Ok(summary)
    }
}

/// Text between the fences of a fenced response.
fn without_fence(reply: &str) -> &str {
    let reply = reply.trim();
    let Some((_, body)) = reply.strip_prefix("```").and_then(|rest| rest.split_once('\n')) else {
        return reply;
    };
    body.trim_end().strip_suffix("```").unwrap_or(body).trim()
}

fn texts(object: &Map<String, Value>, key: &str) -> Vec<String> {
    let values = object.get(key).and_then(Value::as_array).into_iter().flatten();
    values.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn entries<T>(object: &Map<String, Value>, key: &str, read: fn(&Map<String, Value>) -> Option<T>) -> Vec<T> {
    let values = object.get(key).and_then(Value::as_array).into_iter().flatten();
    values.filter_map(Value::as_object).filter_map(read).collect()
}

fn text(entry: &Map<String, Value>, key: &str) -> Option<String> {
    entry.get(key).and_then(Value::as_str).map(str::to_owned)
}

/// A value of the wrong form counts as absent.
fn value<T: DeserializeOwned + Default>(entry: &Map<String, Value>, key: &str) -> T {
    entry.get(key).cloned().and_then(|value| serde_json::from_value(value).ok()).unwrap_or_default()
}

fn decision(entry: &Map<String, Value>) -> Option<Decision> {
    Some(Decision {
        decision: text(entry, "decision")?,
        rationale: text(entry, "rationale").unwrap_or_default(),
        turn_number: entry.get("turn_number").and_then(Value::as_i64).unwrap_or_default(),
        timestamp: text(entry, "timestamp"),
    })
}

fn open_item(entry: &Map<String, Value>) -> Option<OpenItem> {
    Some(OpenItem {
        description: text(entry, "description")?,
        context: text(entry, "context").unwrap_or_default(),
        priority: value::<Option<Priority>>(entry, "priority").unwrap_or_default(),
    })
}

fn artifact(entry: &Map<String, Value>) -> Option<ArtifactReference> {
    Some(ArtifactReference {
        artifact_id: text(entry, "artifact_id")?,
        description: text(entry, "description").unwrap_or_default(),
        rehydrate_hint: text(entry, "rehydrate_hint").unwrap_or_default(),
    })
}

fn tool_outcome(entry: &Map<String, Value>) -> Option<ToolOutcomeSummary> {
    Some(ToolOutcomeSummary {
        tool_name: text(entry, "tool_name")?,
        outcome: value(entry, "outcome"),
        key_fields: value(entry, "key_fields"),
        error_message: text(entry, "error_message"),
    })
}
