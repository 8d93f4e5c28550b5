//! Limits and isolation: one layer's trouble stays its own.

use std::sync::atomic::{AtomicU32, Ordering};

use harness_core::Millis;
use harness_core::Time;
use harness_core::port::{Clock as _, ContextPipeline as _};
use harness_core::testing::VirtualClock;
use harness_memory::MemoryError;
use harness_memory::layer::{
    FnLayer, Hook, LayerDef, LayerSetup, Output, RecallMode, Recalled, RerenderRequest, RerenderScope, Update,
};

use super::{Stage, answer, cx, json, log, run, user};

#[test]
fn a_hook_over_its_limit_is_dropped_and_never_writes() {
    let clock = VirtualClock::still(Time(0));
    let slow = clock.clone();
    let def = LayerDef::new("slow", 10, []).with_limit(Hook::Store, Some(Millis(20)));
    let layer = FnLayer::new(def).on_store(move |_, _| {
        let clock = slow.clone();
        async move {
            clock.sleep_until(clock.now().after(Millis(50))).await;
            Ok(Update::Set(json("\"late\"")))
        }
    });
    let stage = Stage::on(LayerSetup::new().with(layer), clock);
    let log = log([user("go")]);
    let cx = cx(&log);
    run(&stage.clock, async {
        stage.layers.store(&answer("a"), &cx).await.unwrap();
        stage.clock.sleep_until(Time(1_000)).await;
    });
    assert_eq!(stage.layers.layer_state("run", &"slow".into()), Ok(None));
    assert_eq!(stage.reports.take(), ["layer `slow`, store: no answer within 20 ms"]);
}

#[test]
fn a_limit_of_zero_is_none() {
    let clock = VirtualClock::still(Time(0));
    let slow = clock.clone();
    let def = LayerDef::new("slow", 10, []).with_limit(Hook::Recall, Some(Millis(0)));
    let layer = FnLayer::new(def).on_recall(move |_, _| {
        let clock = slow.clone();
        async move {
            clock.sleep_until(Time(60_000)).await;
            Ok(Recalled::text("at last"))
        }
    });
    let stage = Stage::on(LayerSetup::new().with(layer), clock);
    let log = log([]);
    let cx = cx(&log);
    assert!(run(&stage.clock, stage.layers.recall(&cx)).unwrap().is_some());
}

#[test]
fn a_panic_is_a_failure_of_its_layer_alone() {
    let stage = Stage::new(
        LayerSetup::new()
            .with(FnLayer::new(LayerDef::new("bad", 10, [])).on_recall(|_, _| async { panic!("index 7") }))
            .with(
                FnLayer::new(LayerDef::new("good", 20, []))
                    .on_recall(|_, _| async { Ok(Recalled::text("here")) }),
            ),
    );
    let log = log([]);
    let cx = cx(&log);
    assert!(run(&stage.clock, stage.layers.recall(&cx)).unwrap().is_some());
    assert_eq!(stage.reports.take(), ["layer `bad`, recall: it panicked: index 7"]);
}

#[test]
fn a_failed_eventual_recall_serves_what_it_had_and_is_asked_again() {
    let mut def = LayerDef::new("eventual", 10, []);
    def.recall_mode = RecallMode::Eventual;
    let layer = FnLayer::new(def)
        .on_recall(|_, cx| async move {
            match cx.state_as::<u32>()? {
                1 => Err(MemoryError::failed("offline")),
                state => Ok(Recalled::text(format!("v{state}"))),
            }
        })
        .on_store(|_, cx| async move { Update::set(&(cx.state_as::<u32>()? + 1)) });
    let stage = Stage::new(LayerSetup::new().with(layer));
    let log = log([user("go"), answer("a")]);
    let cx = cx(&log);
    let texts = run(&stage.clock, async {
        stage.layers.begin(&cx).await.unwrap();
        let layers = stage.layers.run("run").unwrap();
        let mut texts = Vec::new();
        for stores in [0, 1, 0, 1] {
            for _ in 0..stores {
                layers.store(&answer("a"), &cx).await;
            }
            let shown = layers.recall(&[], &cx).await.merged;
            texts.extend(shown.iter().map(|output| output.items[0].joined_text()));
        }
        texts
    });
    assert_eq!(texts, ["v0", "v0", "v0", "v2"]);
    assert_eq!(stage.reports.take().len(), 2, "it was asked, in vain, for as long as it was stale");
}

#[test]
fn the_parts_of_a_recall_are_calls_of_their_own() {
    let layer = |id: &str, slot, mode| {
        let mut def = LayerDef::new(id, slot, []);
        def.recall_mode = mode;
        let (id, calls) = (id.to_owned(), AtomicU32::new(0));
        FnLayer::new(def).on_recall(move |ask, _| {
            let call = calls.fetch_add(1, Ordering::Relaxed) + 1;
            let text = format!("call {call} of {id} for {} tokens: {}", ask.budget, ask.query);
            async move { Ok(Recalled::text(text)) }
        })
    };
    let stage = Stage::new(LayerSetup::new().with(layer("atomic", 20, RecallMode::Atomic)).with(layer(
        "eventual",
        10,
        RecallMode::Eventual,
    )));
    let log = log([user("go")]);
    let cx = cx(&log);
    let shown = run(&stage.clock, async {
        stage.layers.begin(&cx).await.unwrap();
        let layers = stage.layers.run("run").unwrap();
        let all = RerenderRequest::new("atomic", 20, RerenderScope::All);
        let own = RerenderRequest::new("atomic", 20, RerenderScope::Own);
        let parts = [
            layers.recall_atomic(&[5, 7], &cx).await,
            layers.recall_eventual(&[5, 7], &cx).await,
            layers.recall_eventual(&[5, 7], &cx).await,
            layers.rerender(&[own], &[5, 7], &cx).await,
            layers.rerender(&[all], &[5, 7], &cx).await,
            layers.rerender(&[], &[5, 7], &cx).await,
            layers.recall(&[5, 7], &cx).await.merged,
        ];
        let text = |output: &Output| output.items[0].joined_text().replace(" tokens: go", "");
        parts.map(|outputs| outputs.iter().map(text).collect::<Vec<_>>().join(", "))
    });
    assert_eq!(
        shown,
        [
            "call 1 of atomic for 5",
            "call 1 of eventual for 7",
            "call 1 of eventual for 7",
            "call 2 of atomic for 5",
            "call 2 of eventual for 7, call 3 of atomic for 5",
            "",
            "call 1 of eventual for 7, call 4 of atomic for 5",
        ]
    );
}

#[test]
fn a_wrong_count_is_reported_and_the_right_one_used() {
    let layer = FnLayer::new(LayerDef::new("counts", 10, []))
        .on_recall(|_, _| async { Ok(Recalled::text("12345678").counted(9)) });
    let stage = Stage::new(LayerSetup::new().with(layer));
    let log = log([]);
    let cx = cx(&log);
    run(&stage.clock, stage.layers.recall(&cx)).unwrap();
    assert_eq!(stage.layers.usage("run").unwrap().layers[0].token_count, 2);
    assert_eq!(stage.reports.take(), ["layer `counts`, recall: it counts 9 tokens of 2"]);
}
