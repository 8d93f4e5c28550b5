//! Vectors of kind `history-projection`: the history window, beside layers that filter.

use std::sync::Arc;

use harness_core::transcript::Transcript;
use harness_memory::builtin::HistoryWindow;
use harness_memory::layer::{FnLayer, History, LayerDef, LayerSetup, Pipeline};
use serde_json::{Value, json};

use super::scripted::{Stage, clock};
use super::{Done, at, each, error, items, list};
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs the vectors of the file.
pub(crate) fn run(vector: &Vector) -> Verdict {
    each(vector, check)
}

fn check(input: &Value) -> Done<Value> {
    let mut setup = LayerSetup::new();
    if let Some(max_items) = input.get("max_items").filter(|max| !max.is_null()) {
        let max_items = max_items.as_f64().ok_or("`max_items` is no number")?;
        match HistoryWindow::from_number(max_items) {
            Ok(window) => setup = setup.with(window),
            Err(fault) => return Ok(json!({"error": error(&fault)})),
        }
    }
    for spec in list(input, "extra") {
        setup = setup.with(filter(spec)?);
    }
    let stage = Stage::new(setup, clock())?;
    let given = list(input, "items").iter().filter_map(Value::as_str);
    let given = given.map(items::message).collect::<Done<Vec<_>>>()?;
    let cx = stage.cx(&given);
    let log: Transcript = given.into_iter().collect();
    let shown = stage.run(async {
        let run = stage.pipeline.open(Pipeline::execution_of(&cx.origin), &cx).await;
        let run = run.map_err(|e| e.to_string())?;
        Done::Ok(run.project(History::whole(log.prefix()), &cx).await)
    })??;
    Ok(json!({"items": items::codes(shown.iter())}))
}

/// A layer `[id, slot, code]` that leaves out the items whose code begins so.
fn filter(spec: &Value) -> Done<FnLayer> {
    let part = |at: usize| spec.get(at).cloned().unwrap_or_default();
    let (Some(id), Some(slot), Some(unwanted)) =
        (part(0).as_str().map(str::to_owned), part(1).as_i64(), part(2).as_str().map(Arc::<str>::from))
    else {
        return Err(format!("{} is no filter `[id, slot, code]`", at(spec, "extra")));
    };
    let slot = i32::try_from(slot).map_err(|e| e.to_string())?;
    Ok(FnLayer::new(LayerDef::new(id, slot, [])).on_project_history(move |history, _| {
        let unwanted = Arc::clone(&unwanted);
        async move { Ok(history.filtered(|message| !items::code(message).starts_with(&*unwanted))) }
    }))
}
