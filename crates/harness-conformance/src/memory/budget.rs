//! Vectors of kind `layer-budget`.

use harness_memory::layer::{Budget, Totals, share};
use serde_json::{Value, json};

use super::{Done, at, each, error, list, text};
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs the vectors of the file.
pub(crate) fn run(vector: &Vector) -> Verdict {
    each(vector, check)
}

fn check(input: &Value) -> Done<Value> {
    let figure = |key| number(at(input, key));
    let totals =
        Totals::new(figure("total_budget")?, figure("response_reserve")?, figure("system_prompt_tokens")?);
    let layers = list(input, "layers");
    let budgets = layers.iter().map(|layer| budget(at(layer, "budget"))).collect::<Done<Vec<_>>>()?;
    Ok(match share(totals, &budgets) {
        Ok(shares) => {
            let given = layers.iter().zip(shares.layers);
            let given: Vec<Value> = given.map(|(layer, share)| json!([text(layer, "id"), share])).collect();
            json!({"allocations": given, "history_budget": shares.history})
        }
        Err(fault) => json!({"error": error(&fault)}),
    })
}

/// A figure; JSON has no word for some of them.
fn number(value: &Value) -> Done<f64> {
    match value.as_str() {
        Some("NaN") => Ok(f64::NAN),
        Some("Infinity") => Ok(f64::INFINITY),
        Some("-Infinity") => Ok(f64::NEG_INFINITY),
        Some(other) => Err(format!("`{other}` is no figure")),
        None => value.as_f64().ok_or_else(|| format!("{value} is no figure")),
    }
}

fn budget(value: &Value) -> Done<Budget> {
    if value.is_null() || value.as_str() == Some("auto") {
        return Ok(Budget::Auto);
    }
    if value.is_object() {
        return Ok(Budget::Range { min: number(at(value, "min"))?, max: number(at(value, "max"))? });
    }
    number(value).map(Budget::Fixed)
}
