//! Vectors of kind `layer-budget`.

use harness_memory::layer::{Budget, Totals, share};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Done, each, error};
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs the vector.
pub(crate) fn run(vector: &Vector) -> Verdict {
    each(vector, |input| Ok(check(&input)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    total_budget: Figure,
    response_reserve: Figure,
    system_prompt_tokens: Figure,
    layers: Vec<Layer>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Layer {
    id: String,
    budget: Option<Amount>,
}

/// A figure; JSON has no word for some of them.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "Value")]
struct Figure(f64);

impl TryFrom<Value> for Figure {
    type Error = String;

    fn try_from(value: Value) -> Done<Self> {
        match value.as_str() {
            Some("NaN") => Ok(f64::NAN),
            Some("Infinity") => Ok(f64::INFINITY),
            Some("-Infinity") => Ok(f64::NEG_INFINITY),
            Some(_) | None => value.as_f64().ok_or_else(|| format!("{value} is not a number")),
        }
        .map(Self)
    }
}

/// A budget as vectors write it.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "Value")]
pub(super) struct Amount(Budget);

impl TryFrom<Value> for Amount {
    type Error = String;

    fn try_from(value: Value) -> Done<Self> {
        if value == "auto" {
            return Ok(Self(Budget::Auto));
        }
        if let Some(tokens) = value.as_f64() {
            return Ok(Self(Budget::Fixed(tokens)));
        }
        let Bounds { min, max } = serde_json::from_value(value).map_err(|e| e.to_string())?;
        Ok(Self(Budget::Range { min, max }))
    }
}

#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bounds {
    min: f64,
    max: f64,
}

fn check(input: &Input) -> Value {
    let totals = Totals::new(input.total_budget.0, input.response_reserve.0, input.system_prompt_tokens.0);
    let budgets: Vec<Budget> = input.layers.iter().map(|layer| Amount::budget(layer.budget)).collect();
    match share(totals, &budgets) {
        Ok(shares) => {
            let given = input.layers.iter().zip(shares.layers);
            let given: Vec<Value> = given.map(|(layer, share)| json!([layer.id, share])).collect();
            json!({"allocations": given, "history_budget": shares.history})
        }
        Err(fault) => json!({"error": error(&fault)}),
    }
}

impl Amount {
    /// A missing value is an equal share.
    pub(super) fn budget(said: Option<Self>) -> Budget {
        said.map_or(Budget::Auto, |amount| amount.0)
    }
}
