//! A vector's configuration as settings of the product.

use harness_core::turn::TurnSpec;
use serde_json::{Map, Value, json};

use super::words::{Limits, Retry};
use crate::Done;
use crate::case::exact;
use crate::subset::put;

/// The limits of a vector that sets none; it never limits tokens.
const LIMITS: &str = r#"{"iterations":6,"toolCalls":8,"elapsed":30000,"invalidOutputs":2,
    "tokens":18446744073709551615,"cost":18446744073}"#;

/// The settings of a configuration, or what the product says against them. Of `runtimePolicy` the product has
/// nothing: a vector that sets it has an overlay with the difference.
pub(crate) fn spec(limits: Option<&Limits>, retry: Option<&Retry>) -> Done<TurnSpec> {
    let mut ours: Map<String, Value> = serde_json::from_str(LIMITS).map_err(|e| e.to_string())?;
    if let Some(limits) = limits {
        let named = [
            ("iterations", &limits.max_iterations),
            ("toolCalls", &limits.max_tool_calls),
            ("elapsed", &limits.max_elapsed_ms),
            ("invalidOutputs", &limits.max_consecutive_invalid_model_outputs),
            ("cost", &limits.budget_limit),
        ];
        ours.extend(set(named));
    }
    let mut settings = json!({
        "limits": ours,
        "execution": "sequential",
        "onToolFailure": "end_on_error",
        "longestCycle": 1,
        "closingStep": false,
    });
    if let Some(retry) = retry {
        let named = [("maxRetries", &retry.max_retries), ("backoff", &retry.backoff_ms)];
        put(&mut settings, "retry", set(named).collect());
    }
    let spec: TurnSpec = exact(&settings)?.to().map_err(|e| e.to_string())?;
    match spec.check().first() {
        Some(fault) => Err(fault.to_string()),
        None => Ok(spec),
    }
}

/// The settings that are present.
fn set<'v>(
    named: impl IntoIterator<Item = (&'v str, &'v Option<Value>)>,
) -> impl Iterator<Item = (String, Value)> {
    named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)))
}
