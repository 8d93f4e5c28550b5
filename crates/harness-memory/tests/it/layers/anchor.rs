//! The part of a view that stays the same, so that a provider can cache it.

use std::sync::Arc;

use harness_core::message::{AssistantMessage, Message, Usage};
use harness_core::port::ContextPipeline as _;
use harness_memory::layer::{
    Banded, CacheConfig, FnLayer, LayerDef, LayerSetup, Output, Pipeline, Placement, Recalled,
};
use parking_lot::Mutex;

use super::{Stage, cx_of, log, run, user};

type Said = Arc<Mutex<Vec<Option<String>>>>;

/// Layers that say what is written in `said`, by position.
fn stage(config: CacheConfig, placements: &[Placement], said: &Said) -> Stage {
    let mut setup = LayerSetup::new();
    setup.cache = config;
    for (at, placement) in placements.iter().enumerate() {
        let def = LayerDef::new(format!("l{at}"), i32::try_from(at).unwrap(), []).with_placement(*placement);
        let said = Arc::clone(said);
        setup = setup.with(FnLayer::new(def).on_recall(move |_, _| {
            let text = said.lock()[at].clone();
            async move { Ok(text.map_or_else(Recalled::nothing, Recalled::text)) }
        }));
    }
    Stage::new(setup)
}

fn config(change: impl FnOnce(&mut CacheConfig)) -> CacheConfig {
    let mut config = CacheConfig::default();
    change(&mut config);
    config
}

/// The bands as `anchor | live | updates @ generation`.
fn shown(banded: &Banded) -> String {
    let texts = |outputs: &[Output]| {
        outputs.iter().map(|output| output.items[0].joined_text()).collect::<Vec<_>>().join(",")
    };
    let updates = banded.updates.iter().flat_map(|updates| &updates.updates);
    let updates: Vec<String> = updates
        .map(|update| format!("{}:{}", update.action, update.text.as_deref().unwrap_or("-")))
        .collect();
    let epoch = banded.epoch.as_ref().map_or("", |epoch| epoch.id.rsplit('#').next().unwrap());
    format!("{} | {} | {} @{epoch}", texts(&banded.anchor), texts(&banded.live), updates.join(","))
}

#[track_caller]
fn check(config: CacheConfig, placements: &[Placement], turns: &[&[&str]], expected: &[&str]) {
    let said = Said::default();
    let stage = stage(config, placements, &said);
    let log = log([user("go")]);
    let mut seen = Vec::new();
    for (at, turn) in turns.iter().enumerate() {
        *said.lock() = turn.iter().map(|text| (*text != "-").then(|| (*text).to_owned())).collect();
        // Each turn is an execution of its own; the anchor belongs to the thread.
        let cx = cx_of(&format!("run{at}"), &log);
        let banded = run(&stage.clock, async {
            let run = stage.layers.open(Pipeline::execution_of(&cx.origin), &cx).await.unwrap();
            let recalled = run.recall(&[], &cx).await;
            run.band(recalled.merged, &cx).await
        });
        seen.push(shown(&banded));
    }
    assert_eq!(seen, expected);
}

#[test]
fn without_a_cache_everything_is_fresh_and_before_the_history() {
    check(
        CacheConfig::disabled(),
        &[Placement::Live, Placement::Auto],
        &[&["a1", "b1"], &["a2", "-"]],
        &["a1,b1 |  |  @", "a2 |  |  @"],
    );
}

#[test]
fn an_old_anchor_is_made_anew() {
    check(
        config(|config| config.max_epoch_assemblies = 2),
        &[Placement::Anchor],
        &[&["a1"], &["a2"], &["a3"], &["a3"]],
        &["a1 |  |  @0", "a1 |  | replace:a2 @0", "a3 |  |  @1", "a3 |  |  @1"],
    );
}

#[test]
fn a_layer_that_changes_often_moves_behind_the_history_and_back_when_it_rests() {
    let mut turns: Vec<&[&str]> = vec![&["b1"], &["b2"], &["b3"], &["b4"], &["b5"]];
    turns.resize(17, &["b9"]);
    check(
        config(|config| config.max_epoch_assemblies = 4),
        &[Placement::Auto],
        &turns,
        &[
            "b1 |  |  @0",
            "b1 |  | replace:b2 @0",
            "b1 |  | replace:b3 @0",
            "b1 |  | replace:b4 @0",
            " | b5 |  @1",
            " | b9 |  @1",
            " | b9 |  @1",
            " | b9 |  @1",
            " | b9 |  @2",
            " | b9 |  @2",
            " | b9 |  @2",
            " | b9 |  @2",
            " | b9 |  @3",
            " | b9 |  @3",
            " | b9 |  @3",
            " | b9 |  @3",
            "b9 |  |  @4",
        ],
    );
}

#[test]
fn a_miss_of_the_providers_cache_makes_a_new_anchor_until_it_is_known_to_cache_nothing() {
    let said: Said = Arc::new(Mutex::new(vec![Some("known".repeat(200))]));
    let stage = stage(CacheConfig::default(), &[Placement::Anchor], &said);
    let log = log([user("go")]);
    let cx = cx_of("run", &log);
    let mut generations = Vec::new();
    for cached in [0, 0, 0, 0, 0, 0, 0, 0, 0, 0] {
        run(&stage.clock, stage.layers.recall(&cx)).unwrap();
        let epoch = stage.layers.usage("run").unwrap().epoch.unwrap();
        generations.push(epoch.id.rsplit('#').next().unwrap().to_owned());
        let mut usage = Usage::tokens(500, 5);
        usage.cache_read = Some(cached);
        let said: Message = AssistantMessage::text("x").with_usage(usage).into();
        run(&stage.clock, stage.layers.after_model(&Arc::new(said), &cx)).unwrap();
    }
    assert_eq!(generations, ["0", "0", "1", "1", "2", "2", "2", "2", "2", "2"]);
}
