//! Vectors of compaction: plans, groups, pressure, pairing, summaries and what belongs to them.
//!
//! Each runner maps a vector's input to the product's types, runs the engine with the policy that the vector
//! names, and writes the result in the source's form.

mod convert;
mod messages;
mod parts;
mod plan;
mod window;

use serde::de::DeserializeOwned;
use serde_json::Value;

use self::convert::free_texts;
use crate::Done;
use crate::case::Case;
use crate::turn::compare::same;
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs the one vector of the file.
pub(crate) fn run(vector: &Vector) -> Verdict {
    match vector.kind() {
        "compaction-plan" => check(vector, plan::run),
        "content-hash" => check(vector, |input| Ok(parts::content_hash(&input))),
        "determinism" => check(vector, |input| Ok(parts::determinism(&input))),
        "direct-clear" => check(vector, parts::direct_clear),
        "durability" => check(vector, |input| Ok(parts::durability(input))),
        "group-window" => check(vector, window::run),
        "grouping" => check(vector, |input| Ok(window::grouping(input))),
        "pairing-repair" => check(vector, |input| Ok(parts::pairing_repair(input))),
        "pressure" => check(vector, |input| Ok(parts::pressure(&input))),
        "summary-parse" => check(vector, |input| Ok(parts::summary_parse(&input))),
        "summary-render" => check(vector, |input| Ok(parts::summary_render(&input))),
        "token-count" => check(vector, parts::token_count),
        other => Err(format!("unknown kind of compaction `{other}`")),
    }
    .into()
}

/// Compares what `play` gives with what is wanted.
fn check<I: DeserializeOwned>(vector: &Vector, play: fn(I) -> Done<Value>) -> Done<()> {
    let Case { input, expect: wanted, compare, .. } = Case::of(vector)?;
    let mut got = play(input)?;
    free_texts(&wanted, &mut got);
    let wanted = wanted.as_object().ok_or("`wanted` is a map")?;
    // Of a fault only that there is one is compared.
    if wanted.contains_key("error") {
        return match got.get("error") {
            Some(_) if wanted.len() == 1 => Ok(()),
            _ => Err(format!("wanted: expected an error and nothing else, got {got}")),
        };
    }
    let is_compared = |key: &String| compare.as_ref().is_none_or(|keys| keys.contains(key));
    wanted.iter().filter(|(key, _)| is_compared(key)).try_for_each(|(key, wanted)| {
        let got = got.get(key).ok_or_else(|| format!("wanted.{key}: expected {wanted}, got nothing"))?;
        same(&format!("wanted.{key}"), wanted, got)
    })
}
