//! Vectors of kind `anchoring`.

use std::collections::BTreeMap;
use std::sync::Arc;

use harness_core::port::{PreparedAgent, ViewCx};
use harness_memory::layer::{
    Banded, CacheConfig, FnLayer, LayerDef, LayerSetup, Pipeline, Placement, Recalled, Supersede, Update,
};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};

use super::recall::shown;
use super::scripted::Stage;
use super::{Done, each, items, on_paused_time};
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs the vectors of the file.
pub(crate) fn run(vector: &Vector) -> Verdict {
    each(vector, |input| on_paused_time(check(input)))
}

/// Output of each layer in the current turn.
type Texts = Arc<Mutex<Turn>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    config: Option<Overrides>,
    layers: Vec<LayerSpec>,
    turns: Vec<Turn>,
}

/// Differences from the product's settings.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Overrides {
    enabled: Option<bool>,
    max_epoch_assemblies: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LayerSpec {
    id: String,
    slot: i32,
    placement: Placement,
}

/// Output of each layer in a turn, with the instructions among them.
type Turn = BTreeMap<String, Option<String>>;
const INSTRUCTIONS: &str = "_instructions";

async fn check(input: Input) -> Done<Value> {
    let texts = Texts::default();
    let mut config = CacheConfig::default();
    if let Some(overrides) = input.config {
        config.enabled = overrides.enabled.unwrap_or(config.enabled);
        config.max_epoch_assemblies = overrides.max_epoch_assemblies.unwrap_or(config.max_epoch_assemblies);
    }
    let known: Vec<&str> = input.layers.iter().map(|layer| &*layer.id).chain([INSTRUCTIONS]).collect();
    if let Some(unknown) = input.turns.iter().flat_map(Turn::keys).find(|id| !known.contains(&&***id)) {
        return Err(format!("a turn names the unknown layer `{unknown}`"));
    }
    let mut setup = LayerSetup::new();
    setup.cache = config;
    for spec in input.layers {
        setup = setup.with(layer(spec, &texts));
    }
    let stage = Stage::new(setup)?;
    let base = stage.cx(&[items::message("u:x")?]);
    let run = stage.pipeline.open(Pipeline::execution_of(&base.origin), &base).await;
    let run = run.map_err(|e| e.to_string())?;
    let mut turns = Vec::new();
    for turn in input.turns {
        let instructions = turn.get(INSTRUCTIONS).cloned().flatten().unwrap_or_default();
        *texts.lock() = turn;
        let cx = instructed(&base, &instructions);
        let recalled = run.recall(&[], &cx).await;
        turns.push(bands(&run.band(recalled.merged, &cx).await));
    }
    Ok(json!({"turns": turns}))
}

fn instructed(cx: &ViewCx, instructions: &str) -> ViewCx {
    cx.clone().with_prepared(Arc::new(PreparedAgent::new("main", instructions, [])))
}

fn bands(banded: &Banded) -> Value {
    let epoch = banded.epoch.as_ref().map(|epoch| {
        let reason = epoch.reanchor_reason;
        json!({"id": epoch.id, "age": epoch.age, "reanchor_reason": reason})
    });
    json!({
        "anchor": banded.anchor.iter().map(shown).collect::<Vec<_>>(),
        "live": banded.live.iter().map(shown).collect::<Vec<_>>(),
        "supersedes": banded.updates.iter().map(supersede).collect::<Vec<_>>(),
        "epoch": epoch,
    })
}

fn supersede(supersede: &Supersede) -> Value {
    let updates = supersede
        .updates
        .iter()
        .map(|update| json!({"layer": update.layer.as_str(), "action": update.action, "text": update.text}));
    json!({"role": "developer", "epoch": supersede.epoch, "updates": updates.collect::<Vec<_>>()})
}

fn layer(spec: LayerSpec, texts: &Texts) -> FnLayer {
    let LayerSpec { id, slot, placement } = spec;
    let texts = Arc::clone(texts);
    let def = LayerDef::new(id.as_str(), slot, []).with_placement(placement);
    FnLayer::new(def).on_recall(move |_, cx| {
        let said = texts.lock().get(&id).cloned().flatten();
        async move {
            let Some(said) = said else { return Ok(Recalled::nothing()) };
            Ok(match said.strip_prefix('!') {
                Some(text) => Recalled::text(text).with_state(Update::set(&(cx.state_as::<u64>()? + 1))?),
                None => Recalled::text(said),
            })
        }
    })
}
