//! Vectors of kind `anchoring`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use harness_core::port::{Offer, ViewCx};
use harness_memory::layer::{
    Banded, CacheConfig, FnLayer, LayerDef, LayerSetup, Pipeline, Placement, ReanchorReason, Recalled,
    Supersede, Update,
};
use serde_json::{Value, json};

use super::recall::shown;
use super::scripted::{Stage, clock};
use super::stack::slot;
use super::{Done, each, items, list, text};
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs the vectors of the file.
pub(crate) fn run(vector: &Vector) -> Verdict {
    each(vector, check)
}

/// What each layer says in the turn at hand.
type Texts = Arc<Mutex<BTreeMap<String, Option<String>>>>;

fn check(input: &Value) -> Done<Value> {
    let texts = Texts::default();
    let config: CacheConfig = match input.get("config") {
        Some(config) if !config.is_null() => {
            serde_json::from_value(config.clone()).map_err(|e| e.to_string())?
        }
        _ => CacheConfig::default(),
    };
    let mut setup = LayerSetup::new().with_cache(config);
    for spec in list(input, "layers") {
        setup = setup.with(layer(spec, &texts));
    }
    let stage = Stage::new(setup, clock())?;
    let base = stage.cx(&[items::message("u:x")?]);
    let turns = stage.run(async {
        let run = stage.pipeline.open(Pipeline::execution_of(&base.origin), &base).await;
        let run = run.map_err(|e| e.to_string())?;
        let mut turns = Vec::new();
        for turn in list(input, "turns") {
            say(&texts, turn);
            let cx = instructed(&base, text(turn, "_instructions"));
            let recalled = run.recall(&[], &cx).await;
            turns.push(bands(&run.band(recalled.merged, &cx).await));
        }
        Done::Ok(turns)
    })??;
    Ok(json!({"turns": turns}))
}

fn say(texts: &Texts, turn: &Value) {
    let said = turn.as_object().into_iter().flatten();
    let said = said.map(|(layer, text)| (layer.clone(), text.as_str().map(str::to_owned)));
    *texts.lock().unwrap_or_else(PoisonError::into_inner) = said.collect();
}

fn instructed(cx: &ViewCx, instructions: &str) -> ViewCx {
    cx.clone().with_offer(Arc::new(Offer::new("main", instructions, [])))
}

fn bands(banded: &Banded) -> Value {
    let epoch = banded.epoch.as_ref().map(|epoch| {
        let reason = epoch.reanchor_reason.map(ReanchorReason::as_str);
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
    let updates = supersede.updates.iter().map(|update| {
        json!({"layer": update.layer.as_str(), "action": update.action.as_str(), "text": update.text})
    });
    json!({"role": "developer", "epoch": supersede.epoch, "updates": updates.collect::<Vec<_>>()})
}

fn layer(spec: &Value, texts: &Texts) -> FnLayer {
    let id = text(spec, "id").to_owned();
    let placement = match text(spec, "placement") {
        "anchor" => Placement::Anchor,
        "live" => Placement::Live,
        _ => Placement::Auto,
    };
    let texts = Arc::clone(texts);
    let def = LayerDef::new(id.as_str(), slot(spec), []).with_placement(placement);
    FnLayer::new(def).on_recall(move |_, cx| {
        let said = texts.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned().flatten();
        async move {
            let Some(said) = said else { return Ok(Recalled::nothing()) };
            Ok(match said.strip_prefix('!') {
                Some(text) => Recalled::text(text).with_state(Update::set(&(cx.state_as::<u64>()? + 1))?),
                None => Recalled::text(said),
            })
        }
    })
}
