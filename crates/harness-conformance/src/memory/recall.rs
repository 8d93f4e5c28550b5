//! Vectors of kind `recall-mode`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use harness_core::{Origin, RunId};
use harness_memory::layer::{
    FnLayer, LayerDef, LayerSetup, Output, Pipeline, RecallMode, Recalled, Scope, ScopedStorage, Update,
};
use harness_session::storage::MemoryStorage;
use serde::Deserialize;
use serde_json::{Value, json};

use super::scripted::Stage;
use super::{Done, each, items, on_paused_time};
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs the vector.
pub(crate) fn run(vector: &Vector) -> Verdict {
    each(vector, |input| on_paused_time(check(input)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    recall_by_state: BTreeMap<u64, Option<String>>,
    #[serde(default = "thread")]
    scope: Scope,
    #[serde(default)]
    force_atomic: bool,
    ops: Vec<Op>,
}

fn thread() -> Scope {
    Scope::Thread
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Op {
    Recall,
    Store,
    NewExecution,
}

async fn check(input: Input) -> Done<Value> {
    let calls = Arc::new(AtomicU64::new(0));
    let (texts, counted) = (input.recall_by_state, Arc::clone(&calls));
    let mut def = LayerDef::new("eventual", 100, []).with_scope(input.scope);
    def.recall_mode = RecallMode::Eventual;
    let layer = FnLayer::new(def)
        .on_init(|storage, _| async move {
            let known = storage.get(ScopedStorage::STATE).await?;
            known.map_or_else(|| Update::set(&0), |state| Ok(Update::Set(state)))
        })
        .on_recall(move |_, cx| {
            counted.fetch_add(1, Ordering::Relaxed);
            let text = cx.state_as::<u64>().map(|state| texts.get(&state).cloned().flatten());
            async move { Ok(text?.map_or_else(Recalled::nothing, Recalled::text)) }
        })
        .on_store(|_, cx| async move { Update::set(&(cx.state_as::<u64>()? + 1)) });
    let mut setup = LayerSetup::new().with(layer);
    setup.all_atomic = input.force_atomic;
    let setup = setup.with_storage(Arc::new(MemoryStorage::default()));
    let stage = Stage::new(setup)?;
    let answer = items::message("a:y")?;
    let mut cx = stage.cx(&[items::message("u:x")?, Arc::clone(&answer)]);
    let mut run = stage.pipeline.open(Pipeline::execution_of(&cx.origin), &cx).await;
    let mut steps = Vec::new();
    for (op, at) in input.ops.into_iter().zip(2..) {
        let open = run.as_ref().map_err(ToString::to_string)?;
        steps.push(match op {
            Op::Store => {
                open.store(&answer, &cx).await;
                json!({"op": "store"})
            }
            Op::Recall => {
                let served = open.recall(&[], &cx).await.merged;
                let text = served.first().map(shown);
                json!({"op": "recall", "text": text, "recall_calls": calls.load(Ordering::Relaxed)})
            }
            Op::NewExecution => {
                let mut origin = Origin::clone(&cx.origin);
                origin.run = Some(RunId::from(format!("R{at}")));
                cx.origin = Arc::new(origin);
                run = stage.pipeline.open(Pipeline::execution_of(&cx.origin), &cx).await;
                json!({"op": "new_execution"})
            }
        });
    }
    Ok(json!({"steps": steps}))
}

/// The texts of an output.
pub(super) fn shown(output: &Output) -> String {
    output.items.iter().map(|item| item.joined_text()).collect::<Vec<_>>().join("\n")
}
