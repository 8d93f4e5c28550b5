//! A vector's configuration as settings of the product.

use harness_core::Json;
use harness_core::turn::TurnSpec;
use serde_json::{Map, Value, json};

use super::convert::{Done, at};

/// The limits of a vector that sets none; it never limits tokens.
const LIMITS: &str = r#"{"iterations":6,"toolCalls":8,"elapsed":30000,"invalidOutputs":2,
    "tokens":18446744073709551615,"cost":18446744073}"#;

/// Names of limits: the vector's, and ours.
const NAMES: [(&str, &str); 5] = [
    ("maxIterations", "iterations"),
    ("maxToolCalls", "toolCalls"),
    ("maxElapsedMs", "elapsed"),
    ("maxConsecutiveInvalidModelOutputs", "invalidOutputs"),
    ("budgetLimit", "cost"),
];

/// The settings of a configuration, or what the product says against them. Of `runtimePolicy` the product has
/// nothing: a vector that sets it has an overlay that says so.
pub(crate) fn spec(config: &Value) -> Done<TurnSpec> {
    let mut limits: Map<String, Value> = serde_json::from_str(LIMITS).map_err(|e| e.to_string())?;
    for (name, value) in at(config, "limits").as_object().into_iter().flatten() {
        let known = NAMES.iter().find(|(theirs, _)| theirs == name);
        let (_, ours) = known.ok_or_else(|| format!("unknown word `{name}` in limits"))?;
        limits.insert((*ours).to_owned(), value.clone());
    }
    let fixed = json!({
        "limits": limits,
        "execution": "sequential",
        "onToolFailure": "end_on_error",
        "longestCycle": 1,
        "closingStep": false,
    });
    let mut settings: Map<String, Value> = serde_json::from_value(fixed).map_err(|e| e.to_string())?;
    if let Some(retry) = config.get("toolRetryConfig").and_then(Value::as_object) {
        let mut ours = Map::new();
        for (name, value) in retry {
            let name = match name.as_str() {
                "maxRetries" => "maxRetries",
                "backoffMs" => "backoff",
                other => return Err(format!("unknown word `{other}` in toolRetryConfig")),
            };
            ours.insert(name.to_owned(), value.clone());
        }
        settings.insert("retry".to_owned(), Value::Object(ours));
    }
    let json = Json::of(&settings).map_err(|e| e.to_string())?;
    let spec: TurnSpec = json.to().map_err(|e| e.to_string())?;
    match spec.check().first() {
        Some(fault) => Err(fault.to_string()),
        None => Ok(spec),
    }
}
