//! Vectors of kind `recall-mode`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use harness_core::Json;
use harness_memory::layer::{FnLayer, LayerDef, LayerSetup, Output, Pipeline, RecallMode, Recalled, Update};
use serde_json::{Value, json};

use super::scripted::{Stage, clock};
use super::{Done, at, each, items, list};
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs the vectors of the file.
pub(crate) fn run(vector: &Vector) -> Verdict {
    each(vector, check)
}

fn check(input: &Value) -> Done<Value> {
    let calls = Arc::new(AtomicU64::new(0));
    let texts = at(input, "recall_by_state").clone();
    let counted = Arc::clone(&calls);
    let layer = FnLayer::new(LayerDef::new("eventual", 100, []).with_recall_mode(RecallMode::Eventual))
        .on_init(|_, _| async { Update::set(&0) })
        .on_recall(move |_, cx| {
            counted.fetch_add(1, Ordering::Relaxed);
            let texts = texts.clone();
            async move {
                let state: u64 = cx.state_as()?;
                let text = texts.get(state.to_string()).and_then(Value::as_str);
                Ok(text.map_or_else(Recalled::nothing, Recalled::text))
            }
        })
        .on_store(|_, cx| async move { Update::set(&(cx.state_as::<u64>()? + 1)) });
    let stage = Stage::new(LayerSetup::new().with(layer), clock())?;
    let log = [items::message("u:x")?, items::message("a:y")?];
    let cx = stage.cx(&log);
    let steps = stage.run(async {
        let run = stage.pipeline.open(Pipeline::execution_of(&cx.origin), &cx).await;
        let run = run.map_err(|e| e.to_string())?;
        let mut steps = Vec::new();
        for op in list(input, "ops").iter().filter_map(Value::as_str) {
            steps.push(if op == "store" {
                run.store(&log[1], &cx).await;
                json!({"op": "store"})
            } else {
                let served = run.recall(&[], &cx).await.merged;
                let text = served.first().map(shown);
                json!({"op": "recall", "text": text, "recall_calls": calls.load(Ordering::Relaxed)})
            });
        }
        Done::Ok(steps)
    })??;
    Ok(json!({"steps": steps}))
}

/// The texts of an output.
pub(super) fn shown(output: &Output) -> String {
    output.items.iter().map(|item| item.joined_text()).collect::<Vec<_>>().join("\n")
}

/// A state of the vector.
pub(super) fn state(value: &Value) -> Done<Json> {
    Json::of(value).map_err(|e| e.to_string())
}
