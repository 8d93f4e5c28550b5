//! A twin that looks ahead.

use std::sync::Arc;

use harness_core::Outcome;
use harness_core::port::ContextPipeline as _;
use harness_core::transcript::{Span, View};
use harness_memory::layer::{FnLayer, Hook, LayerDef, LayerSetup, Placement, Recalled, Scope, Update};

use super::{Shelf, Stage, answer, cx_of, log, run, user};

/// Shows how often it was asked and how often it stored, and keeps both for its thread.
fn counting() -> FnLayer {
    let def =
        LayerDef::new("count", 10, [Hook::Init]).with_scope(Scope::Thread).with_placement(Placement::Auto);
    FnLayer::new(def)
        .on_recall(|_, cx| async move {
            let count = cx.state_as::<u64>()? + 1;
            Ok(Recalled::text(format!("asked {count}")).with_state(Update::set(&count)?))
        })
        .on_store(|_, cx| async move { Update::set(&(cx.state_as::<u64>()? + 100)) })
}

#[test]
fn it_shows_what_the_pipeline_would_and_leaves_that_as_it_is() {
    let shelf = Shelf::default();
    let stage = Stage::new(LayerSetup::new().with(counting()).with_storage(Arc::new(shelf.clone())));
    let log = log([user("go")]);
    let shown = |plan: Option<harness_core::transcript::Plan>| {
        let mut texts = Vec::new();
        let plan = plan.expect("the layer shows something");
        assert!(plan.spans.iter().any(|span| matches!(span, Span::Made(_))));
        View::planned(log.prefix(), plan).for_each(|message| texts.push(message.joined_text()));
        texts.join(" | ")
    };
    for turn in ["first", "second", "third"] {
        let (ahead, cx) = (cx_of("ahead", &log), cx_of(turn, &log));
        let mut previews = Vec::new();
        for _ in 0..2 {
            let twin = stage.layers.ahead().expect("a twin");
            run(&stage.clock, async {
                twin.begin_boxed(&ahead).await.unwrap();
                previews.push(shown(twin.recall_boxed(&ahead).await.unwrap()));
                twin.store_boxed(&answer("a"), &ahead).await.unwrap();
                twin.complete_boxed(Outcome::Completed, &ahead).await.unwrap();
            });
        }
        assert_eq!(shelf.writes.take(), [""; 0], "a twin writes nothing");
        run(&stage.clock, async {
            stage.layers.begin(&cx).await.unwrap();
            let real = shown(stage.layers.recall(&cx).await.unwrap());
            assert_eq!(previews, [real.clone(), real], "{turn}");
            stage.layers.store(&answer("a"), &cx).await.unwrap();
            stage.layers.complete(Outcome::Completed, &cx).await.unwrap();
        });
        shelf.writes.take();
    }
}
