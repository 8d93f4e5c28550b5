//! Vectors of kind `view-assembly`.

use harness_memory::layer::{Bands, Link, Part, ViewBudget, assemble};
use serde_json::{Value, json};

use super::{Done, at, each, list, text};
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs the vectors of the file.
pub(crate) fn run(vector: &Vector) -> Verdict {
    each(vector, check)
}

fn check(input: &Value) -> Done<Value> {
    let policy = at(input, "policy");
    let figure = |key: &str| policy.get(key).and_then(Value::as_u64);
    let budget = (!policy.is_null()).then(|| {
        let default = ViewBudget::default();
        let tokens = figure("tokenBudget").unwrap_or(default.tokens);
        let budget = ViewBudget::new(tokens, figure("responseReserve").unwrap_or(default.response_reserve));
        match figure("windowSize").and_then(|size| usize::try_from(size).ok()) {
            Some(window) => budget.with_window(window),
            None => budget,
        }
    });
    let parts = |band: &str| list(input, band).iter().map(part).collect::<Done<Vec<_>>>();
    let mut bands = Bands::default();
    bands.system = parts("system")?;
    bands.anchor = parts("anchor")?;
    bands.history = parts("history")?;
    bands.live = parts("live")?;
    bands.supersedes = parts("supersedes")?;
    bands.tail = parts("tail")?;
    let chosen = assemble(budget.as_ref(), &bands);

    let id = |band: &str, at: usize| list(input, band).get(at).map_or(Value::Null, |e| json!(text(e, "id")));
    let some = |band: &'static str, at: &[usize]| at.iter().map(|at| id(band, *at)).collect::<Vec<_>>();
    let all = |band: &'static str| some(band, &(0..list(input, band).len()).collect::<Vec<_>>());
    let shown = [
        all("system"),
        some("anchor", &chosen.anchor),
        some("history", &chosen.history),
        some("live", &chosen.live),
        all("supersedes"),
        all("tail"),
    ];
    Ok(json!({"ids": shown.concat()}))
}

fn part(entry: &Value) -> Done<Part> {
    let item = at(entry, "item");
    let call = || text(item, "callId").to_owned();
    let link = match text(item, "type") {
        "function_call" => Link::Calls(vec![call()]),
        "function_call_output" => Link::Answers(call()),
        "reasoning" => Link::Reasoning,
        _ => Link::None,
    };
    let tokens = entry.get("tokens").and_then(Value::as_u64);
    Ok(Part::new(tokens.ok_or_else(|| format!("`{}` has no tokens", text(entry, "id")))?, link))
}
