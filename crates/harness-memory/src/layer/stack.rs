//! A set of layers that can stand together, and what they share.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use harness_core::port::{Clock, DynModel};
use harness_core::tool::DynTool;
use harness_host::DynStorage;

use super::anchor::{CacheConfig, Lineage};
use super::assembly::ViewBudget;
use super::counts::Counts;
use super::def::{Budget, Hook, LayerDef, LayerId, Scope};
use super::eventual::EventualCache;
use super::hook::DynLayer;
use super::overlay::Overlay;
use super::recent::Recent;
use super::schema::{ItemJudge, ItemSchemas};
use super::tokens::Utf16Quarters;
use super::view::PreparedCount;
use crate::compact::tokens::TokenCounter;
use crate::{LayerProblem, MemoryError};

/// Conversations whose anchor and counts are kept.
const LINEAGES: usize = 256;

/// Something that did not work in a layer and was passed over.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LayerReport {
    /// The layer.
    pub layer: LayerId,
    /// Where: the wire name of a hook, or `persist` for the mirror of its state.
    pub hook: &'static str,
    /// What happened.
    pub error: MemoryError,
}

impl fmt::Display for LayerReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "layer `{}`, {}: {}", self.layer, self.hook, self.error)
    }
}

pub(crate) type Observer = Arc<dyn Fn(&LayerReport) + Send + Sync>;

/// The default observer.
fn warn(report: &LayerReport) {
    let LayerReport { layer, hook, error } = report;
    tracing::warn!(%layer, hook, %error, "a memory layer did not work");
}

/// What a pipeline is made of. [`Pipeline::build`](super::Pipeline::build) checks it.
///
/// | setting | default |
/// |---|---|
/// | storage | none: only layers of scope `execution` |
/// | tools beside the layers' functions | none |
/// | model | none: [`LayerCx::call_model`](super::LayerCx::call_model) fails |
/// | token counter | [`Utf16Quarters`] |
/// | budget of the view | 128,000 tokens, 4,000 of them for the answer |
/// | prompt cache | see [`CacheConfig`] |
/// | item schemas | those of the layers, strict |
/// | kept results of eventual layers | 1,024 |
/// | reports | a warning in the log |
#[derive(Clone)]
pub struct LayerSetup {
    pub(crate) layers: Vec<Arc<dyn DynLayer>>,
    pub(crate) tools: Vec<Arc<dyn DynTool>>,
    pub(crate) storage: Option<Arc<dyn DynStorage>>,
    pub(crate) model: Option<Arc<dyn DynModel>>,
    pub(crate) counter: Arc<dyn TokenCounter>,
    pub(crate) budget: Option<ViewBudget>,
    pub(crate) cache: CacheConfig,
    pub(crate) schemas: ItemSchemas,
    pub(crate) is_strict: bool,
    pub(crate) all_atomic: bool,
    pub(crate) kept_recalls: usize,
    pub(crate) observer: Observer,
}

impl Default for LayerSetup {
    fn default() -> Self {
        Self {
            layers: Vec::new(),
            tools: Vec::new(),
            storage: None,
            model: None,
            counter: Arc::new(Utf16Quarters),
            budget: Some(ViewBudget::default()),
            cache: CacheConfig::default(),
            schemas: ItemSchemas::default(),
            is_strict: true,
            all_atomic: false,
            kept_recalls: 1_024,
            observer: Arc::new(warn),
        }
    }
}

impl LayerSetup {
    /// No layers yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with one more layer.
    #[must_use]
    pub fn with(mut self, layer: impl super::Layer + 'static) -> Self {
        self.layers.push(Arc::new(layer));
        self
    }

    /// The same with more layers.
    #[must_use]
    pub fn with_all(mut self, layers: impl IntoIterator<Item = Arc<dyn DynLayer>>) -> Self {
        self.layers.extend(layers);
        self
    }

    /// The same with tools that belong to the memory, beside the functions of its layers: the
    /// [`memory_tools`](crate::builtin::memory_tools), for example.
    #[must_use]
    pub fn with_tools(mut self, tools: impl IntoIterator<Item = Arc<dyn DynTool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// The same, keeping what outlives an execution there.
    #[must_use]
    pub fn with_storage(self, storage: Arc<dyn DynStorage>) -> Self {
        Self { storage: Some(storage), ..self }
    }

    /// The same with a model that layers may ask.
    #[must_use]
    pub fn with_model(self, model: Arc<dyn DynModel>) -> Self {
        Self { model: Some(model), ..self }
    }

    /// The same with another token counter.
    #[must_use]
    pub fn with_counter(self, counter: Arc<dyn TokenCounter>) -> Self {
        Self { counter, ..self }
    }

    /// The same with another budget of the view; `None` shows everything, and layers have no budgets.
    #[must_use]
    pub fn with_budget(self, budget: Option<ViewBudget>) -> Self {
        Self { budget, ..self }
    }

    /// The same with other settings for the prompt cache.
    #[must_use]
    pub fn with_cache(self, cache: CacheConfig) -> Self {
        Self { cache, ..self }
    }

    /// The same with item schemas before those of the layers.
    #[must_use]
    pub fn with_schemas(self, schemas: ItemSchemas) -> Self {
        Self { schemas, ..self }
    }

    /// The same, strict about items or not.
    #[must_use]
    pub fn with_strict_items(self, is_strict: bool) -> Self {
        Self { is_strict, ..self }
    }

    /// The same, recalling every layer in each iteration or as each says.
    #[must_use]
    pub fn with_all_atomic(self, all_atomic: bool) -> Self {
        Self { all_atomic, ..self }
    }

    /// The same, keeping at most so many results of eventual layers.
    #[must_use]
    pub fn with_kept_recalls(self, kept_recalls: usize) -> Self {
        Self { kept_recalls, ..self }
    }

    /// The same, telling somebody what was passed over, instead of the log.
    #[must_use]
    pub fn reporting_to(self, observer: impl Fn(&LayerReport) + Send + Sync + 'static) -> Self {
        Self { observer: Arc::new(observer), ..self }
    }

    /// All that is wrong with the set.
    fn problems(&self) -> Vec<LayerProblem> {
        let mut problems = Vec::new();
        let mut times: BTreeMap<&LayerId, usize> = BTreeMap::new();
        let mut wires: BTreeMap<String, usize> = BTreeMap::new();
        for (at, layer) in (1..).zip(&self.layers) {
            let def = layer.layer_def();
            *times.entry(&def.id).or_default() += 1;
            if def.id.as_str().is_empty() {
                problems.push(LayerProblem::EmptyId { at });
            }
            self.check(def, &mut problems);
            for function in &def.functions {
                let wire = wire_name(&def.id, &function.name);
                let seen = wires.entry(wire.clone()).or_default();
                *seen += 1;
                if *seen == 2 {
                    let (id, function) = (def.id.clone(), function.name.to_string());
                    problems.push(LayerProblem::DuplicateFunction { id, function, wire });
                }
            }
        }
        let doubled = times.into_iter().filter(|(_, times)| *times > 1);
        problems.extend(doubled.map(|(id, times)| LayerProblem::DuplicateId { id: id.clone(), times }));
        problems
    }

    fn check(&self, def: &LayerDef, problems: &mut Vec<LayerProblem>) {
        let id = || def.id.clone();
        if def.hooks().is_empty() && def.functions.is_empty() && def.data.is_empty() {
            problems.push(LayerProblem::NoHooks { id: id() });
        }
        if !is_sound(def.budget) {
            problems.push(LayerProblem::Budget { id: id(), budget: def.budget.to_string() });
        }
        if def.scope != Scope::Execution && self.storage.is_none() {
            problems.push(LayerProblem::NoStorage { id: id(), scope: def.scope.as_str() });
        }
    }
}

impl fmt::Debug for LayerSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<&LayerId> = self.layers.iter().map(|layer| &layer.layer_def().id).collect();
        f.debug_struct("LayerSetup").field("layers", &ids).finish_non_exhaustive()
    }
}

fn is_sound(budget: Budget) -> bool {
    match budget {
        Budget::Auto => true,
        Budget::Fixed(tokens) => tokens >= 0.0,
        Budget::Range { min, max } => min >= 0.0 && min.is_finite() && max >= min,
    }
}

/// The name of a layer's function as a provider sees it: what no provider takes becomes `_`.
fn wire_name(layer: &LayerId, function: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    format!("{layer}/{function}").chars().map(plain).collect()
}

/// Layers that can stand together.
pub(crate) struct Stack {
    /// In the order of their declaration.
    pub(crate) layers: Vec<Arc<dyn DynLayer>>,
    pub(crate) ids: Arc<[LayerId]>,
    /// Tools beside the functions of the layers.
    pub(crate) tools: Vec<Arc<dyn DynTool>>,
    /// Positions in `layers` by slot; layers of one slot in the order of their declaration.
    pub(crate) by_slot: Vec<usize>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) storage: Option<Arc<dyn DynStorage>>,
    pub(crate) model: Option<Arc<dyn DynModel>>,
    pub(crate) counter: Arc<dyn TokenCounter>,
    pub(crate) budget: Option<ViewBudget>,
    pub(crate) cache: CacheConfig,
    pub(crate) judge: ItemJudge,
    pub(crate) all_atomic: bool,
    pub(crate) eventual: Mutex<EventualCache>,
    /// The anchors of conversations.
    pub(crate) lineages: Mutex<Recent<Arc<str>, Arc<Mutex<Lineage>>>>,
    /// The counted transcripts of conversations.
    pub(crate) counts: Mutex<Recent<Arc<str>, Arc<Mutex<Counts>>>>,
    pub(crate) prepared: PreparedCount,
    observer: Observer,
}

impl Stack {
    pub(crate) fn new(setup: LayerSetup, clock: Arc<dyn Clock>) -> Result<Self, MemoryError> {
        let problems = setup.problems();
        if !problems.is_empty() {
            return Err(MemoryError::Layers(problems));
        }
        let mut by_slot: Vec<usize> = (0..setup.layers.len()).collect();
        by_slot.sort_by_key(|at| setup.layers.get(*at).map(|layer| layer.layer_def().slot));
        let schemas =
            setup.layers.iter().fold(setup.schemas, |all, layer| all.merged(&layer.layer_def().schemas));
        Ok(Self {
            ids: setup.layers.iter().map(|layer| layer.layer_def().id.clone()).collect(),
            tools: setup.tools,
            by_slot,
            clock,
            storage: setup.storage,
            model: setup.model,
            counter: setup.counter,
            budget: setup.budget,
            cache: setup.cache,
            judge: ItemJudge::new(schemas).with_strict(setup.is_strict),
            all_atomic: setup.all_atomic,
            eventual: Mutex::new(EventualCache::new(setup.kept_recalls)),
            lineages: Mutex::new(Recent::new(LINEAGES)),
            counts: Mutex::new(Recent::new(LINEAGES)),
            prepared: PreparedCount::default(),
            observer: setup.observer,
            layers: setup.layers,
        })
    }

    /// The same layers with what they remember in a place of its own: these do not notice what is done with those.
    pub(crate) fn ahead(&self) -> Self {
        let lock = |mutex| Mutex::lock(mutex).unwrap_or_else(PoisonError::into_inner);
        let apart = |lineage: &Arc<Mutex<Lineage>>| {
            Arc::new(Mutex::new(lineage.lock().unwrap_or_else(PoisonError::into_inner).clone()))
        };
        let storage = self.storage.as_ref().map(|storage| Arc::new(Overlay::over(Arc::clone(storage))) as _);
        Self {
            layers: self.layers.clone(),
            ids: Arc::clone(&self.ids),
            tools: self.tools.clone(),
            by_slot: self.by_slot.clone(),
            clock: Arc::clone(&self.clock),
            storage,
            model: self.model.clone(),
            counter: Arc::clone(&self.counter),
            budget: self.budget,
            cache: self.cache.clone(),
            judge: self.judge.clone(),
            all_atomic: self.all_atomic,
            eventual: Mutex::new(self.eventual.lock().unwrap_or_else(PoisonError::into_inner).clone()),
            lineages: Mutex::new(lock(&self.lineages).copied(apart)),
            counts: Mutex::new(Recent::new(LINEAGES)),
            prepared: PreparedCount::default(),
            observer: Arc::new(|_| {}),
        }
    }

    /// The layers with a hook, by slot.
    pub(crate) fn with_hook(&self, hook: Hook) -> impl Iterator<Item = (usize, &Arc<dyn DynLayer>)> {
        let layers = self.by_slot.iter().filter_map(|at| Some((*at, self.layers.get(*at)?)));
        layers.filter(move |(_, layer)| layer.layer_def().has(hook))
    }

    /// The position of a layer.
    pub(crate) fn position(&self, id: &LayerId) -> Option<usize> {
        self.ids.iter().position(|known| known == id)
    }

    /// Tells that something was passed over.
    pub(crate) fn report(&self, layer: usize, hook: &'static str, error: MemoryError) {
        if let Some(id) = self.ids.get(layer) {
            (self.observer)(&LayerReport { layer: id.clone(), hook, error });
        }
    }
}
