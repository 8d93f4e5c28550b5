//! Vectors of kind `layer-pipeline`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use harness_core::Millis;
use harness_core::message::Message;
use harness_core::port::AppendSource;
use harness_core::testing::VirtualClock;
use harness_memory::MemoryError;
use harness_memory::layer::{
    Appended, FnLayer, Hook, LayerDef, LayerRun, LayerSetup, OnInitError, Output, Pipeline, Recalled,
    Rerender, RerenderRequest, RerenderScope, RerenderTiming, Update,
};
use serde_json::{Value, json};

use super::recall::state;
use super::scripted::{Lines, Stage, clock, wait};
use super::{Done, at, each, error, items, list, text};
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs the vectors of the file.
pub(crate) fn run(vector: &Vector) -> Verdict {
    each(vector, check)
}

fn check(input: &Value) -> Done<Value> {
    let (calls, clock) = (Lines::default(), clock());
    let mut setup = LayerSetup::new();
    for spec in list(input, "layers") {
        setup = setup.with(layer(spec, &calls, &clock)?);
    }
    let stage = Stage::new(setup, clock)?;
    let given: Vec<&str> = list(input, "items").iter().filter_map(Value::as_str).collect();
    let given = given.into_iter().map(items::message).collect::<Done<Vec<_>>>()?;
    let cx = stage.cx(&given);
    let execution = Pipeline::execution_of(&cx.origin);
    if input.get("skip_init").and_then(Value::as_bool) == Some(true) {
        stage.pipeline.restore(execution.clone(), []);
    }
    let opened = stage.run(async {
        match stage.pipeline.run(&execution.id) {
            Ok(run) => Ok(run),
            Err(_) => stage.pipeline.open(execution, &cx).await,
        }
    })?;
    let run: Arc<LayerRun> = match opened {
        Ok(run) => run,
        Err(fault) => {
            let diagnostics = stage.diagnostics.all();
            return Ok(
                json!({"error": error(&fault), "hook_calls": calls.all(), "diagnostics": diagnostics}),
            );
        }
    };
    let (appended, recalled) = stage.run(async {
        let appended = run.append(AppendSource::Prompt, given.clone(), &cx).await;
        let after = stage.cx(&appended.items);
        let recalled = run.recall(&[], &after).await;
        (appended, recalled)
    })?;
    Ok(json!({
        "items": items::codes(&appended.items),
        "rerender_requests": appended.requests.iter().map(request).collect::<Vec<_>>(),
        "recall": outputs(&recalled.base),
        "rerendered": outputs(&recalled.rerendered),
        "merged": outputs(&recalled.merged),
        "hook_calls": calls.all(),
        "diagnostics": stage.diagnostics.all(),
    }))
}

fn request(request: &RerenderRequest) -> Value {
    json!({
        "layerId": request.layer.as_str(),
        "slot": request.slot,
        "timing": request.timing,
        "scope": request.scope.as_str(),
    })
}

fn outputs(outputs: &[Output]) -> Vec<Value> {
    let output = |output: &Output| {
        json!({
            "layer": output.layer.as_str(),
            "items": items::codes(output.items.iter()),
            "tokens": output.tokens,
        })
    };
    outputs.iter().map(output).collect()
}

/// Number fields of the vectors.
pub(super) fn slot(spec: &Value) -> i32 {
    spec.get("slot").and_then(Value::as_i64).and_then(|slot| i32::try_from(slot).ok()).unwrap_or(0)
}

/// The limits of a layer, by the wire names of its hooks.
pub(super) fn limited(def: LayerDef, spec: &Value) -> LayerDef {
    Hook::ALL.into_iter().fold(def, |def, hook| {
        let limit = at(spec, "timeouts").get(hook.as_str()).and_then(Value::as_i64);
        match limit {
            Some(limit) => def.with_limit(hook, u64::try_from(limit).ok().map(Millis)),
            None => def,
        }
    })
}

fn timing(spec: &Value, key: &str) -> Option<RerenderTiming> {
    match spec.get(key).and_then(Value::as_str) {
        Some("immediate") => Some(RerenderTiming::Immediate),
        Some(_) => Some(RerenderTiming::Batched),
        None => None,
    }
}

fn layer(spec: &Value, calls: &Lines, clock: &VirtualClock) -> Done<FnLayer> {
    let id = text(spec, "id").to_owned();
    let mut def = limited(LayerDef::new(id.as_str(), slot(spec), []), spec);
    if text(spec, "on_init_error") == "disable" {
        def = def.with_on_init_error(OnInitError::Disable);
    }
    if let Some(timing) = timing(spec, "rerender_timing") {
        def = def.with_rerender_timing(timing);
    }
    let mut layer = FnLayer::new(def);
    if let Some(init) = spec.get("init").filter(|init| !init.is_null()) {
        let begun = match init.get("error").and_then(Value::as_str) {
            Some(message) => Err(MemoryError::failed(message)),
            None => Ok(Update::Set(state(at(init, "state"))?)),
        };
        let (calls, id) = (calls.clone(), id.clone());
        layer = layer.on_init(move |_, _| {
            calls.push(format!("init {id}"));
            let begun = begun.clone();
            async move { begun }
        });
    }
    if let Some(append) = spec.get("append").filter(|append| !append.is_null()).cloned() {
        let (calls, id, clock) = (calls.clone(), id.clone(), clock.clone());
        layer = layer.on_append(move |ask, _| {
            calls.push(format!("append {id} [{}]", items::codes(&ask.items).join(", ")));
            let (append, clock) = (append.clone(), clock.clone());
            async move { appended(&append, ask.items, &clock).await }
        });
    }
    if let Some(recall) = spec.get("recall").filter(|recall| !recall.is_null()).cloned() {
        let (calls, count) = (calls.clone(), Arc::new(AtomicU64::new(0)));
        layer = layer.on_recall(move |_, cx| {
            calls.push(format!("recall {id}"));
            let count = count.fetch_add(1, Ordering::Relaxed) + 1;
            let said = text(&recall, "text");
            let recalled = match text(&recall, "op") {
                "counter" => Recalled::text(format!("{said}{count}")),
                "state" => Recalled::text(format!("st={}", cx.state.as_ref().map_or("", |s| s.text()))),
                _ => Recalled::text(said),
            };
            async move { Ok(recalled) }
        });
    }
    // A layer that only stands there: the product asks for at least one hook.
    Ok(if layer_has_hook(spec) { layer } else { layer.on_dispose(|(), _| async { Ok(()) }) })
}

fn layer_has_hook(spec: &Value) -> bool {
    ["init", "append", "recall"].iter().any(|key| spec.get(*key).is_some_and(|hook| !hook.is_null()))
}

async fn appended(
    append: &Value,
    given: Vec<Arc<Message>>,
    clock: &VirtualClock,
) -> Result<Appended, MemoryError> {
    let said = text(append, "text");
    let injected = || {
        let kind = match text(append, "role") {
            "user" => "u",
            "assistant" => "a",
            "system" => "s",
            _ => "d",
        };
        items::message(&format!("{kind}:{said}")).map_err(MemoryError::failed)
    };
    let made: Vec<Arc<Message>> = match text(append, "op") {
        "prefix" => given.iter().map(|item| items::reworded(item, |text| format!("{said}{text}"))).collect(),
        "upper" => given.iter().map(|item| items::reworded(item, str::to_uppercase)).collect(),
        "drop_all" => Vec::new(),
        "inject_before" => std::iter::once(injected()?).chain(given).collect(),
        "inject_after" => {
            let injected = injected()?;
            given.into_iter().chain([injected]).collect()
        }
        "throw" => return Err(MemoryError::failed(said)),
        "hang" => {
            wait(clock, Millis(append.get("ms").and_then(Value::as_u64).unwrap_or(0))).await;
            given
        }
        _ => given,
    };
    let appended = Appended::items(made);
    Ok(match append.get("rerender").filter(|wish| wish.is_object()) {
        Some(wish) => appended.with_rerender(rerender(wish)),
        None => appended,
    })
}

fn rerender(wish: &Value) -> Rerender {
    let rerender = Rerender::of(match text(wish, "scope") {
        "self" => RerenderScope::Own,
        "all" => RerenderScope::All,
        _ => RerenderScope::SlotAfter,
    });
    match timing(wish, "timing") {
        Some(timing) => rerender.at(timing),
        None => rerender,
    }
}
