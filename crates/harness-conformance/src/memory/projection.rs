//! Vectors of kind `history-projection`: the history window, beside layers that filter.

use std::sync::Arc;

use harness_core::transcript::Transcript;
use harness_memory::builtin::HistoryWindow;
use harness_memory::layer::{FnLayer, History, LayerDef, LayerSetup, Pipeline};
use serde::Deserialize;
use serde_json::{Value, json};

use super::scripted::Stage;
use super::{Done, each, error, items, on_paused_time};
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs the vector.
pub(crate) fn run(vector: &Vector) -> Verdict {
    each(vector, |input| on_paused_time(check(input)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    max_items: Option<f64>,
    items: Vec<String>,
    #[serde(default)]
    extra: Vec<Filter>,
}

/// A layer that leaves out the items whose code contains a text.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Filter {
    id: String,
    slot: i32,
    drop_containing: Arc<str>,
}

async fn check(input: Input) -> Done<Value> {
    let mut setup = LayerSetup::new();
    if let Some(max_items) = input.max_items {
        match HistoryWindow::from_number(max_items) {
            Ok(window) => setup = setup.with(window),
            Err(fault) => return Ok(json!({"error": error(&fault)})),
        }
    }
    for Filter { id, slot, drop_containing } in input.extra {
        let filter = FnLayer::new(LayerDef::new(id, slot, [])).on_project_history(move |history, _| {
            let unwanted = Arc::clone(&drop_containing);
            async move { Ok(history.filtered(|message| !items::code(message).contains(&*unwanted))) }
        });
        setup = setup.with(filter);
    }
    let stage = Stage::new(setup)?;
    let given = input.items.iter().map(|code| items::message(code)).collect::<Done<Vec<_>>>()?;
    let cx = stage.cx(&given);
    let log: Transcript = given.into_iter().collect();
    let run = stage.pipeline.open(Pipeline::execution_of(&cx.origin), &cx).await;
    let run = run.map_err(|e| e.to_string())?;
    let shown = run.project(History::whole(log.prefix()), &cx).await;
    Ok(json!({"items": items::codes(shown.iter())}))
}
