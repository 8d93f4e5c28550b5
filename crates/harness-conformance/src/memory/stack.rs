//! Vectors of kind `layer-pipeline`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use harness_core::message::Message;
use harness_core::port::AppendSource;
use harness_core::{Json, Millis};
use harness_memory::MemoryError;
use harness_memory::layer::{
    Appended, FnLayer, Hook, LayerDef, LayerRun, LayerSetup, OnInitError, Output, Pipeline, RecallAsk,
    Recalled, Rerender, RerenderRequest, RerenderScope, RerenderTiming, Totals, Update, ViewBudget,
    developer, share,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::budget::Amount;
use super::scripted::{Lines, Stage, wait};
use super::{Done, each, error, exact, items, on_paused_time};
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs the vector.
pub(crate) fn run(vector: &Vector) -> Verdict {
    each(vector, |input| on_paused_time(check(input)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    layers: Vec<LayerSpec>,
    items: Vec<String>,
    query: Option<String>,
    #[serde(default)]
    skip_init: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LayerSpec {
    id: String,
    slot: i32,
    init: Option<Init>,
    on_init_error: Option<OnInitError>,
    append: Option<Append>,
    recall: Option<Recall>,
    rerender_timing: Option<RerenderTiming>,
    /// Limits by the wire names of hooks; none is unlimited.
    #[serde(default)]
    timeouts: BTreeMap<Hook, u64>,
    budget: Option<Amount>,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Init {
    State(Value),
    Error(String),
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Append {
    op: AppendOp,
    text: Option<String>,
    role: Option<Role>,
    ms: Option<u64>,
    set_state: Option<Value>,
    rerender: Option<Wish>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AppendOp {
    Pass,
    Prefix,
    Upper,
    DropAll,
    DropContaining,
    InjectBefore,
    InjectAfter,
    Throw,
    Hang,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    User,
    Assistant,
    System,
    Developer,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wish {
    scope: Option<Scope>,
    timing: Option<RerenderTiming>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Scope {
    #[serde(rename = "self")]
    Own,
    SlotAfter,
    All,
}

#[derive(Clone, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
enum Recall {
    Text { text: String },
    Counter { text: String },
    State {},
    Query {},
    Budget {},
    Log {},
    Null {},
    Empty {},
    Throw { text: String },
    Hang { ms: u64 },
    Items { texts: Vec<String>, token_count: u64, set_state: Option<Value> },
}

async fn check(input: Input) -> Done<Value> {
    let calls = Lines::default();
    let mut setup = LayerSetup::new();
    let budgets = budgets(&input.layers)?;
    for spec in input.layers {
        setup = setup.with(layer(spec, &calls)?);
    }
    let stage = Stage::new(setup)?;
    let given = input.items.iter().map(|code| items::message(code)).collect::<Done<Vec<_>>>()?;
    let cx = stage.cx(&given);
    let execution = Pipeline::execution_of(&cx.origin);
    let opened = if input.skip_init {
        stage.pipeline.restore(execution.clone(), []);
        stage.pipeline.run(&execution.id)
    } else {
        stage.pipeline.open(execution, &cx).await
    };
    let run: Arc<LayerRun> = match opened {
        Ok(run) => run,
        Err(fault) => {
            let diagnostics = stage.diagnostics.all();
            return Ok(
                json!({"error": error(&fault), "hook_calls": calls.all(), "diagnostics": diagnostics}),
            );
        }
    };
    let appended = run.append(AppendSource::Prompt, given, &cx).await;
    let asked = input.query.map(|query| Arc::new(Message::user(query)));
    let after: Vec<_> = appended.items.iter().cloned().chain(asked).collect();
    let recalled = run.recall(&budgets, &stage.cx(&after)).await;
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

/// Share of the product's view for each layer.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "small"
)]
fn budgets(layers: &[LayerSpec]) -> Done<Vec<u64>> {
    let view = ViewBudget::default();
    let totals = Totals::new(view.tokens as f64, view.response_reserve as f64, 0.0);
    let budgets: Vec<_> = layers.iter().map(|layer| Amount::budget(layer.budget)).collect();
    let shares = share(totals, &budgets).map_err(|e| e.to_string())?;
    Ok(shares.layers.into_iter().map(|tokens| tokens as u64).collect())
}

fn request(request: &RerenderRequest) -> Value {
    json!({
        "layerId": request.layer.as_str(),
        "slot": request.slot,
        "timing": request.timing,
        "scope": request.scope,
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

fn layer(spec: LayerSpec, calls: &Lines) -> Done<FnLayer> {
    let id = spec.id;
    let mut def = LayerDef::new(id.as_str(), spec.slot, []);
    def.budget = Amount::budget(spec.budget);
    for (hook, ms) in spec.timeouts {
        def = def.with_limit(hook, Some(Millis(ms)));
    }
    def.on_init_error = spec.on_init_error.unwrap_or_default();
    def.rerender_timing = spec.rerender_timing.unwrap_or_default();
    let mut layer = FnLayer::new(def);
    // A layer that only stands there: the product asks for at least one hook.
    if spec.init.is_none() && spec.append.is_none() && spec.recall.is_none() {
        return Ok(layer.on_dispose(|(), _| async { Ok(()) }));
    }
    if let Some(init) = spec.init {
        let begun = match init {
            Init::Error(message) => Err(MemoryError::failed(message)),
            Init::State(state) => Ok(Update::Set(exact(&state)?)),
        };
        let (calls, id) = (calls.clone(), id.clone());
        layer = layer.on_init(move |_, _| {
            calls.push(format!("init {id}"));
            let begun = begun.clone();
            async move { begun }
        });
    }
    if let Some(append) = spec.append {
        let (calls, id) = (calls.clone(), id.clone());
        layer = layer.on_append(move |ask, _| {
            calls.push(format!("append {id} [{}]", items::codes(&ask.items).join(", ")));
            let append = append.clone();
            async move { append.perform(ask.items).await }
        });
    }
    if let Some(recall) = spec.recall {
        let (calls, count) = (calls.clone(), Arc::new(AtomicU64::new(0)));
        layer = layer.on_recall(move |ask, cx| {
            calls.push(format!("recall {id}"));
            let count = count.fetch_add(1, Ordering::Relaxed) + 1;
            let recall = recall.clone();
            async move {
                let log = items::codes(cx.log.iter()).join("|");
                recall.perform(&ask, cx.state.as_ref(), &log, count).await
            }
        });
    }
    Ok(layer)
}

impl Append {
    async fn perform(&self, given: Vec<Arc<Message>>) -> Result<Appended, MemoryError> {
        let said = self.text.as_deref().unwrap_or_default();
        let made: Vec<Arc<Message>> = match self.op {
            AppendOp::Pass => given,
            AppendOp::Prefix => {
                given.iter().map(|item| items::reworded(item, |text| format!("{said}{text}"))).collect()
            }
            AppendOp::Upper => given.iter().map(|item| items::reworded(item, str::to_uppercase)).collect(),
            AppendOp::DropAll => Vec::new(),
            AppendOp::DropContaining => {
                given.into_iter().filter(|item| !items::code(item).contains(said)).collect()
            }
            AppendOp::InjectBefore => std::iter::once(self.injected()?).chain(given).collect(),
            AppendOp::InjectAfter => given.into_iter().chain([self.injected()?]).collect(),
            AppendOp::Throw => return Err(MemoryError::failed(said)),
            AppendOp::Hang => {
                let ms = self.ms.ok_or_else(|| MemoryError::failed("`hang` has no `ms`"))?;
                wait(ms).await;
                given
            }
        };
        let mut appended = Appended::items(made);
        if let Some(state) = &self.set_state {
            appended = appended.with_state(Update::set(state)?);
        }
        if let Some(Wish { scope, timing }) = &self.rerender {
            let mut rerender = Rerender::of(match scope {
                Some(Scope::Own) => RerenderScope::Own,
                Some(Scope::All) => RerenderScope::All,
                Some(Scope::SlotAfter) | None => RerenderScope::SlotAfter,
            });
            rerender.timing = *timing;
            appended = appended.with_rerender(rerender);
        }
        Ok(appended)
    }

    fn injected(&self) -> Result<Arc<Message>, MemoryError> {
        let kind = match self.role.ok_or_else(|| MemoryError::failed("an injected message has no role"))? {
            Role::User => "u",
            Role::Assistant => "a",
            Role::System => "s",
            Role::Developer => "d",
        };
        let said = self.text.as_deref().unwrap_or_default();
        items::message(&format!("{kind}:{said}")).map_err(MemoryError::failed)
    }
}

impl Recall {
    async fn perform(
        &self,
        ask: &RecallAsk,
        state: Option<&Json>,
        log: &str,
        count: u64,
    ) -> Result<Recalled, MemoryError> {
        Ok(match self {
            Self::Text { text } => Recalled::text(text),
            Self::Counter { text } => Recalled::text(format!("{text}{count}")),
            Self::State {} => Recalled::text(format!("st={}", state.map_or("", Json::text))),
            Self::Query {} => Recalled::text(format!("q={}", ask.query)),
            Self::Budget {} => Recalled::text(format!("b={}", ask.budget)),
            Self::Log {} => Recalled::text(format!("log={log}")),
            Self::Null {} => Recalled::nothing(),
            Self::Empty {} => Recalled::text(""),
            Self::Throw { text } => return Err(MemoryError::failed(text)),
            Self::Hang { ms } => {
                wait(*ms).await;
                Recalled::text("late")
            }
            Self::Items { texts, token_count, set_state } => {
                let recalled = Recalled::items(texts.iter().map(developer).collect()).counted(*token_count);
                match set_state {
                    Some(state) => recalled.with_state(Update::set(state)?),
                    None => recalled,
                }
            }
        })
    }
}
