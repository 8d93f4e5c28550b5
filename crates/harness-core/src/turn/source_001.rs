//! Source 001's configuration form.

use serde_json::{Map, Value};

use super::policy::{ResultCache, RuntimePolicies};
use super::{RetryPolicy, TurnSpec};
use crate::json::Json;
use crate::message::Cost;
use crate::time::Millis;

/// Why a configuration in source 001's form is refused. The first fault in the source's fixed order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigFault {
    /// It is no JSON object.
    #[error("the configuration is no object")]
    NotAnObject,
    /// One of the four counts.
    #[error("`limits.{name}` is {value}: a whole number above 0 was expected")]
    Count {
        /// The limit.
        name: &'static str,
        /// Its value as JSON text.
        value: String,
    },
    /// The budget.
    #[error("`limits.budgetLimit` is {value}: an amount from 0 on was expected")]
    Budget {
        /// Its value as JSON text.
        value: String,
    },
    /// The number of retries.
    #[error("`toolRetryConfig.maxRetries` is {value}: a whole number from 0 on was expected")]
    MaxRetries {
        /// Its value as JSON text.
        value: String,
    },
    /// The waits before retries.
    #[error("`toolRetryConfig.backoffMs` is {value}: a list of milliseconds from 0 on was expected")]
    Backoff {
        /// Its value as JSON text.
        value: String,
    },
    /// There are retries and no wait.
    #[error("`toolRetryConfig.backoffMs` is empty although there are retries: give at least one wait")]
    NoBackoff,
}

impl ConfigFault {
    /// A stable code.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NotAnObject => "turn.config_no_object",
            Self::Count { .. } => "turn.config_count",
            Self::Budget { .. } => "turn.config_budget",
            Self::MaxRetries { .. } => "turn.config_max_retries",
            Self::Backoff { .. } | Self::NoBackoff => "turn.config_backoff",
        }
    }

    /// The message of source 001 (`HarnessConfigError`), word for word.
    pub fn compat_message(&self) -> String {
        match self {
            Self::NotAnObject => "Harness config is required".to_owned(),
            Self::Count { name, .. } => format!("limits.{name} must be an integer greater than 0"),
            Self::Budget { .. } => "limits.budgetLimit must be a finite number >= 0".to_owned(),
            Self::MaxRetries { .. } => "toolRetryConfig.maxRetries must be a non-negative integer".to_owned(),
            Self::Backoff { .. } => {
                "toolRetryConfig.backoffMs must be an array of finite non-negative numbers".to_owned()
            }
            Self::NoBackoff => {
                "toolRetryConfig.backoffMs must contain at least one entry when maxRetries > 0".to_owned()
            }
        }
    }
}

/// [`TurnSpec::source_001`] with the `limits`, `toolRetryConfig` and `runtimePolicy` of a configuration in
/// source 001's form. Other keys (ports, hooks) are not looked at; counts beyond `u32` are cut to it, fractions of a
/// millisecond are rounded up.
///
/// ```
/// use harness_core::Json;
/// use harness_core::turn::source_001::spec_from_json;
///
/// let config = Json::parse(r#"{"limits":{"maxIterations":3}}"#)?;
/// assert_eq!(spec_from_json(&config)?.limits.iterations, 3);
///
/// let config = Json::parse(r#"{"limits":{"maxIterations":0}}"#)?;
/// let fault = spec_from_json(&config).unwrap_err();
/// assert_eq!(fault.compat_message(), "limits.maxIterations must be an integer greater than 0");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The first fault in the source's order: the four counts, the budget, the retries, the waits.
pub fn spec_from_json(config: &Json) -> Result<TurnSpec, ConfigFault> {
    let config: Value = config.to().map_err(|_| ConfigFault::NotAnObject)?;
    let config = config.as_object().ok_or(ConfigFault::NotAnObject)?;
    let mut spec = TurnSpec::source_001();
    if let Some(limits) = config.get("limits").and_then(Value::as_object) {
        let set = &mut spec.limits;
        set.iterations = count(limits, "maxIterations")?.unwrap_or(set.iterations);
        set.tool_calls = count(limits, "maxToolCalls")?.unwrap_or(set.tool_calls);
        if let Some(elapsed) = count(limits, "maxElapsedMs")? {
            set.elapsed = Some(Millis(u64::from(elapsed)));
        }
        set.invalid_outputs =
            count(limits, "maxConsecutiveInvalidModelOutputs")?.unwrap_or(set.invalid_outputs);
        set.cost = limits.get("budgetLimit").map_or(Ok(set.cost), budget)?;
    }
    if let Some(retry) = config.get("toolRetryConfig").and_then(Value::as_object) {
        spec.retry = retries(retry)?;
    }
    spec.policies = config.get("runtimePolicy").and_then(policies);
    Ok(spec)
}

/// Runtime policies in the source's form. Its own functions (guards, extraction, normalization) have no
/// form as data; what cannot be read is left out.
fn policies(value: &Value) -> Option<Box<RuntimePolicies>> {
    let config = value.as_object()?;
    let part = |key: &str| config.get(key).cloned();
    let enabled = |key: &str| value.pointer(&format!("/{key}/enabled")) == Some(&Value::Bool(true));
    Some(Box::new(RuntimePolicies {
        todo_rewrite_cap: part("todoRewriteCap").and_then(|rule| serde_json::from_value(rule).ok()),
        result_cache: if enabled("toolResultCache") { ResultCache::All } else { ResultCache::Off },
        reserve_floor: part("reserveFloor").and_then(|rule| serde_json::from_value(rule).ok()),
        drill_or_stop: part("drillOrStop").and_then(|rule| serde_json::from_value(rule).ok()),
        sanitize_output: enabled("outputSanitizer"),
    }))
}

/// A count above 0; an explicit null means the default.
fn count(limits: &Map<String, Value>, name: &'static str) -> Result<Option<u32>, ConfigFault> {
    match limits.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match whole(value) {
            Some(number) if number > 0 => Ok(Some(u32::try_from(number).unwrap_or(u32::MAX))),
            Some(_) | None => Err(ConfigFault::Count { name, value: value.to_string() }),
        },
    }
}

/// A whole number from 0 on; `2.0` is one.
fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let text = value.as_f64()?.to_string();
        text.parse().ok()
    })
}

fn budget(value: &Value) -> Result<Cost, ConfigFault> {
    let fault = || ConfigFault::Budget { value: value.to_string() };
    if !value.is_number() {
        return Err(fault());
    }
    value.to_string().parse().map_err(|_| fault())
}

fn retries(retry: &Map<String, Value>) -> Result<RetryPolicy, ConfigFault> {
    let mut policy = RetryPolicy::default();
    if let Some(value) = retry.get("maxRetries") {
        let number = whole(value).ok_or_else(|| ConfigFault::MaxRetries { value: value.to_string() })?;
        policy.max_retries = u32::try_from(number).unwrap_or(u32::MAX);
    }
    if let Some(value) = retry.get("backoffMs") {
        let fault = || ConfigFault::Backoff { value: value.to_string() };
        let waits = value.as_array().ok_or_else(fault)?;
        policy.backoff =
            waits.iter().map(|wait| wait_of(wait).ok_or_else(fault)).collect::<Result<_, _>>()?;
    }
    if policy.max_retries > 0 && policy.backoff.is_empty() {
        return Err(ConfigFault::NoBackoff);
    }
    Ok(policy)
}

/// Milliseconds; a fraction is rounded up, so that no wait is shorter than asked for.
fn wait_of(value: &Value) -> Option<Millis> {
    let wait = value.as_f64().filter(|wait| wait.is_finite() && *wait >= 0.0)?;
    std::time::Duration::try_from_secs_f64(wait.ceil() / 1_000.0).ok().map(Millis::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(config: &str, expected: Result<&str, &str>) {
        let spec = spec_from_json(&Json::parse(config).expect("JSON"));
        let spec = spec.map(|spec| format!("{:?} {:?}", spec.limits.cost, spec.retry.backoff));
        assert_eq!(spec.as_deref().map_err(ConfigFault::kind), expected);
    }

    #[test]
    fn the_first_fault_in_the_fixed_order_is_reported() {
        check("{}", Ok("Cost(18446744073709551615) [Millis(200), Millis(500)]"));
        check(
            r#"{"limits":{"maxToolCalls":null,"budgetLimit":2.5}}"#,
            Ok("Cost(2500000000) [Millis(200), Millis(500)]"),
        );
        check(r#"{"limits":{"budgetLimit":null}}"#, Err("turn.config_budget"));
        check(r#"{"limits":{"budgetLimit":-1,"maxToolCalls":1.5}}"#, Err("turn.config_count"));
        check(
            r#"{"limits":{"maxToolCalls":3.0}}"#,
            Ok("Cost(18446744073709551615) [Millis(200), Millis(500)]"),
        );
        check(
            r#"{"toolRetryConfig":{"maxRetries":1,"backoffMs":[0.5]}}"#,
            Ok("Cost(18446744073709551615) [Millis(1)]"),
        );
        check(r#"{"toolRetryConfig":{"maxRetries":-1,"backoffMs":[]}}"#, Err("turn.config_max_retries"));
        check(r#"{"toolRetryConfig":{"maxRetries":1,"backoffMs":["1"]}}"#, Err("turn.config_backoff"));
        check("[]", Err("turn.config_no_object"));
    }
}
