//! A memory layer that counts what it is asked: its counts show whether a run has one state on all workers.

use std::sync::Arc;

use harness::core::port::Clock;
use harness::core::{Json, tool::RetryClass};
use harness::memory::layer::{
    Called, FnLayer, FunctionDef, LayerCx, LayerDef, LayerSetup, Pipeline, Recalled, Update,
};

/// Views, calls of the function, answers.
type Counts = [u32; 3];

/// The counts after one more of a kind.
fn more(cx: &LayerCx, kind: usize) -> Counts {
    let mut counts: Counts = cx.state.as_ref().map_or([0; 3], |state| state.to().unwrap());
    counts[kind] += 1;
    counts
}

fn set(counts: Counts) -> Update {
    Update::Set(Json::of(&counts).unwrap())
}

/// The layers of one process. Their tool is `tally_count`.
pub(crate) fn tally(clock: &Arc<dyn Clock>) -> Pipeline {
    let count = FunctionDef::new("count", "counts").with_class(RetryClass::Idempotent);
    let layer = FnLayer::new(LayerDef::new("tally", 10, []))
        .on_recall(|_, cx| async move {
            let counts = more(&cx, 0);
            Ok(Recalled::text(format!("{counts:?}")).with_state(set(counts)))
        })
        .on_store(|_, cx| async move { Ok(set(more(&cx, 2))) })
        .with_function(count, |_, cx| async move {
            let counts = more(&cx, 1);
            Ok(Called::text(&format!("{counts:?}")).with_state(set(counts)))
        });
    Pipeline::build(LayerSetup::new().with(layer), Arc::clone(clock)).unwrap()
}
