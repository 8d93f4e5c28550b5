//! Vectors of compaction: plans, groups, pressure, pairing, summaries and what belongs to them.
//!
//! Each runner maps a vector's input to the product's types, runs the engine with the policy that the vector
//! names, and writes the result in the source's form.

mod convert;
mod messages;
mod parts;
mod plan;
mod window;

use serde_json::Value;

use self::convert::{Done, free_texts};
use super::turn::compare::same;
use super::turn::convert::{at, list, text};
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs the one vector of the file.
pub(crate) fn run(vector: &Vector) -> Verdict {
    check(&vector.value).into()
}

fn check(vector: &Value) -> Done<()> {
    let input = at(vector, "input");
    let got = match text(vector, "kind") {
        "compaction-plan" => plan::run(input)?,
        "content-hash" => parts::content_hash(input),
        "determinism" => parts::determinism(input)?,
        "direct-clear" => parts::direct_clear(input)?,
        "durability" => parts::durability(input)?,
        "group-window" => window::run(input)?,
        "grouping" => window::grouping(input)?,
        "pairing-repair" => parts::pairing_repair(input)?,
        "pressure" => parts::pressure(input),
        "summary-parse" => parts::summary_parse(input),
        "summary-render" => parts::summary_render(input)?,
        "token-count" => parts::token_count(input)?,
        other => return Err(format!("`{other}` is no kind of compaction")),
    };
    compare(vector, got)
}

/// Compares what the vector wants compared.
fn compare(vector: &Value, mut got: Value) -> Done<()> {
    let wanted = at(vector, "wanted");
    if wanted.get("error").is_some() {
        let is_error = got.get("error").is_some();
        return if is_error { Ok(()) } else { Err(format!("wanted: expected an error, got {got}")) };
    }
    free_texts(wanted, &mut got);
    let Some(keys) = wanted.as_object().map(|wanted| wanted.keys()) else {
        return same("wanted", wanted, &got);
    };
    let compared = list(vector, "compare");
    for key in keys.filter(|key| compared.is_empty() || compared.iter().any(|name| name == *key)) {
        same(&format!("wanted.{key}"), at(wanted, key), at(&got, key))?;
    }
    Ok(())
}
