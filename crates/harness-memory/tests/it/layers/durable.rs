//! States that outlive an execution.

use std::sync::Arc;

use harness_core::Outcome;
use harness_core::port::{ContextPipeline as _, Stateful as _};
use harness_memory::layer::{
    Called, FnLayer, FunctionDef, Hook, Layer as _, LayerDef, LayerSetup, Scope, Update,
};

use super::{Shelf, Stage, answer, cx_of, json, log, run, user};

/// Counts the answers of a thread.
fn counting(scope: Scope) -> FnLayer {
    FnLayer::new(LayerDef::new("count/er", 10, [Hook::Init]).with_scope(scope))
        .on_store(|_, cx| async move { Update::set(&(cx.state_as::<u64>()? + 1)) })
}

fn stage(shelf: &Shelf, layer: FnLayer) -> Stage {
    Stage::new(LayerSetup::new().with(layer).with_storage(Arc::new(shelf.clone())))
}

#[test]
fn the_next_execution_takes_up_what_the_last_one_kept() {
    let shelf = Shelf::default();
    let log = log([user("go"), answer("a")]);
    for turn in ["first", "second"] {
        let stage = stage(&shelf, counting(Scope::Thread));
        let cx = cx_of(turn, &log);
        run(&stage.clock, async {
            stage.layers.begin(&cx).await.unwrap();
            stage.layers.store(&answer("a"), &cx).await.unwrap();
            stage.layers.complete(Outcome::Completed, &cx).await.unwrap();
        });
    }
    assert_eq!(
        shelf.writes.take(),
        ["layers/count%2Fer/thread/thread/state = 1", "layers/count%2Fer/thread/thread/state = 2",]
    );
}

#[test]
fn an_execution_keeps_nothing_of_its_own_scope() {
    let shelf = Shelf::default();
    let log = log([]);
    let stage = stage(&shelf, counting(Scope::Execution));
    run(&stage.clock, stage.layers.store(&answer("a"), &cx_of("run", &log))).unwrap();
    assert_eq!(shelf.writes.take(), [""; 0]);
}

#[test]
fn several_changes_are_one_write_and_a_cleared_state_is_deleted() {
    let shelf = Shelf::default();
    let layer = counting(Scope::Global).on_recall(|_, _| async {
        Ok(harness_memory::layer::Recalled::nothing().with_state(Update::Set(json("7"))))
    });
    assert!(layer.def().has(Hook::Recall));
    let stage = stage(&shelf, layer);
    let log = log([]);
    let cx = cx_of("run", &log);
    run(&stage.clock, async {
        stage.layers.recall(&cx).await.unwrap();
        stage.layers.recall(&cx).await.unwrap();
        stage.layers.store(&answer("a"), &cx).await.unwrap();
        stage.layers.set_layer_state("run", &"count/er".into(), Update::Clear).await.unwrap();
    });
    assert_eq!(
        shelf.writes.take(),
        ["layers/count%2Fer/global/all/state = 8", "layers/count%2Fer/global/all/state deleted",]
    );
    assert_eq!(stage.layers.layer_state("run", &"count/er".into()), Ok(None));
}

#[test]
fn a_write_that_failed_is_reported_and_made_up_for() {
    let shelf = Shelf::default();
    let stage = stage(&shelf, counting(Scope::Thread));
    let log = log([]);
    let cx = cx_of("run", &log);
    run(&stage.clock, async {
        stage.layers.begin(&cx).await.unwrap();
        shelf.fail(1);
        stage.layers.store(&answer("a"), &cx).await.unwrap();
        assert_eq!(shelf.writes.take(), [""; 0]);
        stage.layers.complete(Outcome::Completed, &cx).await.unwrap();
    });
    assert_eq!(shelf.writes.take(), ["layers/count%2Fer/thread/thread/state = 1"]);
    assert_eq!(stage.reports.take(), ["layer `count/er`, persist: the disk is full"]);
}

#[test]
fn an_execution_continues_in_another_process_as_it_was() {
    let (shelf, log) = (Shelf::default(), log([user("go"), answer("a")]));
    let (first, second) = (stage(&shelf, counting(Scope::Thread)), stage(&shelf, counting(Scope::Thread)));
    let cx = cx_of("run", &log);
    let saved = run(&first.clock, async {
        assert_eq!(first.layers.save_state(&cx.origin), None, "it has not begun");
        first.layers.begin(&cx).await.unwrap();
        first.layers.store(&answer("a"), &cx).await.unwrap();
        shelf.fail(1);
        first.layers.store(&answer("b"), &cx).await.unwrap();
        first.layers.save_state(&cx.origin).unwrap()
    });
    assert_eq!(shelf.writes.take(), ["layers/count%2Fer/thread/thread/state = 1"]);
    // What the second process has of the execution is replaced.
    run(&second.clock, async {
        second.layers.begin(&cx).await.unwrap();
        second.layers.restore_state(&cx.origin, Some(&saved));
        assert_eq!(second.layers.save_state(&cx.origin).as_ref(), Some(&saved));
        second.layers.complete(Outcome::Completed, &cx).await.unwrap();
    });
    assert_eq!(
        shelf.writes.take(),
        ["layers/count%2Fer/thread/thread/state = 2"],
        "it makes up for the write"
    );
    assert_eq!(second.reports.take(), [""; 0]);
    // The first one still has the execution, until it is told that it has not begun.
    run(&first.clock, async {
        first.layers.restore_state(&cx.origin, None);
        first.layers.begin(&cx).await.unwrap();
        assert_eq!(
            first.layers.layer_state("run", &"count/er".into()),
            Ok(Some(json("2"))),
            "the storage has it"
        );
    });
}

#[test]
fn the_functions_of_layers_are_their_tools() {
    let function = FunctionDef::new("add", "adds");
    let layer = FnLayer::new(LayerDef::new("count/er", 10, []))
        .with_function(function, |_, _| async { Ok(Called::text("")) });
    let stage = Stage::new(LayerSetup::new().with(layer));
    assert!(stage.layers.has_tool("count_er_add"));
    assert!(!stage.layers.has_tool("add") && !stage.layers.has_tool("count_er"));
}
