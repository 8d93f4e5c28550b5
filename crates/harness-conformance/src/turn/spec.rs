//! A vector's configuration as settings of the product.

use harness_core::Json;
use harness_core::turn::{ResultCache, RuntimePolicies, TurnSpec};
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

/// The settings of a configuration, or what the product says against them.
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
    let mut spec: TurnSpec = json.to().map_err(|e| e.to_string())?;
    spec.policies = config.get("runtimePolicy").map(policies).transpose()?.map(Box::new);
    match spec.check().first() {
        Some(fault) => Err(fault.to_string()),
        None => Ok(spec),
    }
}

fn policies(config: &Value) -> Done<RuntimePolicies> {
    let mut policies = RuntimePolicies::default();
    for (name, part) in config.as_object().ok_or("`runtimePolicy` is no map")? {
        let read = |e: serde_json::Error| format!("runtimePolicy.{name}: {e}");
        let enabled = || part.get("enabled").and_then(Value::as_bool).ok_or("`enabled` is missing");
        match name.as_str() {
            "todoRewriteCap" => {
                policies.todo_rewrite_cap = serde_json::from_value(part.clone()).map_err(read)?;
            }
            "reserveFloor" => policies.reserve_floor = serde_json::from_value(part.clone()).map_err(read)?,
            "drillOrStop" => policies.drill_or_stop = serde_json::from_value(part.clone()).map_err(read)?,
            "toolResultCache" => {
                policies.result_cache = if enabled()? { ResultCache::All } else { ResultCache::Off };
            }
            "outputSanitizer" => policies.sanitize_output = enabled()?,
            other => return Err(format!("unknown word `{other}` in runtimePolicy")),
        }
    }
    Ok(policies)
}
