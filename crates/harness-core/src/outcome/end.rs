//! End of a turn or a run.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::stop::{Outcome, Stop, StopReason};
use super::{Continuation, Evidence, TotalUsage};
use crate::ids::{AgentId, GateName};
use crate::json::Json;
use crate::object::JsonObject;
use crate::time::Millis;

/// Waiver of a check of the end: its condition was not met, and the run ended anyway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Waiver {
    /// Check.
    pub gate: GateName,
    /// Reason.
    pub why: String,
}

/// End of a turn or a run: outcome, stop reason, evidence and usage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct End {
    /// Stop reason and evidence.
    pub stop: Stop,
    /// Text for the user: the answer, the question, the refusal, or the partial answer of an early stop. Absent if there
    /// is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Agent that was active at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// Iterations that called the model.
    pub iterations: u32,
    /// Iteration that stopped before its model call, if any; events of the end carry its number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused_iteration: Option<u32>,
    /// Turns of a run; 1 for a turn.
    pub turns: u32,
    /// Usage.
    pub usage: TotalUsage,
    /// Duration.
    pub elapsed: Millis,
    /// Data to resume from, if possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation: Option<Box<Continuation>>,
    /// Waived checks of the end. Empty in strict mode.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waived: Vec<Waiver>,
    /// Last storage error, if the session is incomplete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persist_failed: Option<String>,
    /// Whether it continued an earlier turn.
    #[serde(default)]
    pub resumed: bool,
    /// Report of the run's control, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<Json>,
}

impl End {
    /// Returns the outcome.
    pub fn outcome(&self) -> Outcome {
        self.stop.outcome()
    }

    /// Returns the stop reason.
    pub fn reason(&self) -> StopReason {
        self.stop.reason
    }

    /// Serializes the end as `--json` prints it: the stop is flattened to `outcome`, `stopReason` and `evidence`.
    ///
    /// # Errors
    /// None in practice.
    pub fn to_json(&self) -> Result<Json, serde_json::Error> {
        let stop = JsonObject::default()
            .with("outcome", Some(self.outcome()))
            .with("stopReason", Some(self.reason()))
            .with("evidence", Some(&self.stop.evidence));
        let others = Json::of(self)?.entries()?.into_iter().filter(|(key, _)| is_in_json_form(key));
        Ok(others.fold(stop, |fields, (key, value)| fields.with(&key, Some(value))).json())
    }

    /// Returns the JSON Schema of [`End::to_json`].
    pub fn json_form_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = Self::json_schema(generator);
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            properties.retain(|key, _| is_in_json_form(key));
            let stop = [
                ("outcome", "Outcome.", generator.subschema_for::<Outcome>()),
                ("stopReason", "Stop reason.", generator.subschema_for::<StopReason>()),
                ("evidence", "Evidence for the stop reason.", generator.subschema_for::<Evidence>()),
            ];
            properties.extend(stop.map(|(key, description, mut schema)| {
                schema.insert("description".to_owned(), description.into());
                (key.to_owned(), schema.to_value())
            }));
        }
        if let Some(Value::Array(required)) = schema.get_mut("required") {
            required.retain(|key| key.as_str().is_some_and(is_in_json_form));
            required.extend(["outcome", "stopReason", "evidence"].map(Value::from));
        }
        schema
    }
}

fn is_in_json_form(key: &str) -> bool {
    !["stop", "refusedIteration", "resumed"].contains(&key)
}
