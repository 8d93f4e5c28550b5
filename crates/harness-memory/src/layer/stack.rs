//! A valid set of layers, and what they share.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use harness_core::port::{Clock, DynModel};
use harness_core::tool::DynTool;
use harness_host::DynStorage;
use lru::LruCache;
use parking_lot::Mutex;

use super::anchor::{CacheConfig, Lineage};
use super::assembly::ViewBudget;
use super::def::{Budget, Hook, LayerDef, LayerId, Scope};
use super::flow::Kept;
use super::hook::DynLayer;
use super::overlay::Overlay;
use super::schema::ItemSchemas;
use super::view::PreparedCount;
use crate::compact::tokens::{CharacterCounter, Tally, TokenCounter};
use crate::shared::{apart, recent};
use crate::{LayerProblem, MemoryError};

/// Conversations whose anchor and counts are kept.
const LINEAGES: usize = 256;

/// Something that did not work in a layer and was passed over.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LayerReport {
    /// Layer that failed.
    pub layer: LayerId,
    /// Where: the wire name of a hook, or `persist` for the mirror of its state.
    pub hook: &'static str,
    /// Error of the hook or the storage.
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

/// Parts of a pipeline, checked by [`Pipeline::build`](super::Pipeline::build).
#[derive(Clone, derive_more::Debug)]
#[non_exhaustive]
pub struct LayerSetup {
    /// Layers, in the order of their declaration.
    #[debug(skip)]
    pub layers: Vec<Arc<dyn DynLayer>>,
    /// Tools in addition to the functions of the layers. Default none.
    #[debug(skip)]
    pub tools: Vec<Arc<dyn DynTool>>,
    /// Storage for states that outlive an execution. Default none: layers of scope `execution` only.
    #[debug(skip)]
    pub storage: Option<Arc<dyn DynStorage>>,
    /// Model for [`LayerCx::call_model`](super::LayerCx::call_model). Default none.
    #[debug(skip)]
    pub model: Option<Arc<dyn DynModel>>,
    /// Token counter. Default [`CharacterCounter`].
    #[debug(skip)]
    pub counter: Arc<dyn TokenCounter>,
    /// Budget of the view. Default 128,000 tokens with 4,000 for the answer; `None` shows everything, and layers have
    /// no budgets.
    pub budget: Option<ViewBudget>,
    /// Prompt cache.
    pub cache: CacheConfig,
    /// Item schemas before those of the layers. Default none, strict.
    pub schemas: ItemSchemas,
    /// Whether every layer is recalled in each iteration, whatever its definition says. Default false.
    pub all_atomic: bool,
    /// Results of eventual layers that are kept. Default 1,024.
    pub kept_recalls: usize,
    #[debug(skip)]
    observer: Observer,
}

impl Default for LayerSetup {
    fn default() -> Self {
        Self {
            layers: Vec::new(),
            tools: Vec::new(),
            storage: None,
            model: None,
            counter: Arc::new(CharacterCounter),
            budget: Some(ViewBudget::default()),
            cache: CacheConfig::default(),
            schemas: ItemSchemas::default(),
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

    /// Adds a layer.
    #[must_use]
    pub fn with(mut self, layer: impl super::Layer + 'static) -> Self {
        self.layers.push(Arc::new(layer));
        self
    }

    /// Adds tools, for example the [`memory_tools`](crate::builtin::memory_tools).
    #[must_use]
    pub fn with_tools(mut self, tools: impl IntoIterator<Item = Arc<dyn DynTool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Sets the storage.
    #[must_use]
    pub fn with_storage(self, storage: Arc<dyn DynStorage>) -> Self {
        Self { storage: Some(storage), ..self }
    }

    /// Sets the model.
    #[must_use]
    pub fn with_model(self, model: Arc<dyn DynModel>) -> Self {
        Self { model: Some(model), ..self }
    }

    /// Passes reports to `observer` instead of the log.
    #[must_use]
    pub fn reporting_to(self, observer: impl Fn(&LayerReport) + Send + Sync + 'static) -> Self {
        Self { observer: Arc::new(observer), ..self }
    }

    /// All that is wrong with the set.
    fn problems(&self) -> Vec<LayerProblem> {
        let mut problems = Vec::new();
        let mut times: BTreeMap<&LayerId, usize> = BTreeMap::new();
        let mut tools: BTreeMap<String, usize> = BTreeMap::new();
        for (at, layer) in (1..).zip(&self.layers) {
            let def = layer.layer_def();
            *times.entry(&def.id).or_default() += 1;
            if def.id.as_str().is_empty() {
                problems.push(LayerProblem::EmptyId { at });
            }
            self.check(def, &mut problems);
            for function in &def.functions {
                let tool = tool_name(&def.id, &function.name);
                let seen = tools.entry(tool.clone()).or_default();
                *seen += 1;
                if *seen == 2 {
                    let (id, function) = (def.id.clone(), function.name.to_string());
                    problems.push(LayerProblem::DuplicateFunction { id, function, tool });
                }
            }
        }
        let doubled = times.into_iter().filter(|(_, times)| *times > 1);
        problems.extend(doubled.map(|(id, times)| LayerProblem::DuplicateId { id: id.clone(), times }));
        problems
    }

    fn check(&self, def: &LayerDef, problems: &mut Vec<LayerProblem>) {
        let id = || def.id.clone();
        if def.hooks().is_empty() && def.functions.is_empty() {
            problems.push(LayerProblem::NoHooks { id: id() });
        }
        if !is_sound(def.budget) {
            problems.push(LayerProblem::Budget { id: id(), budget: def.budget.to_string() });
        }
        if def.scope != Scope::Execution && self.storage.is_none() {
            problems.push(LayerProblem::NoStorage { id: id(), scope: def.scope.into() });
        }
    }
}

fn is_sound(budget: Budget) -> bool {
    match budget {
        Budget::Auto => true,
        Budget::Fixed(tokens) => tokens >= 0.0,
        Budget::Range { min, max } => min >= 0.0 && min.is_finite() && max >= min,
    }
}

/// Name of a layer's function as a tool: `LAYER_FUNCTION`. A character that providers reject in names of tools becomes `_`.
pub(super) fn tool_name(layer: &LayerId, function: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    format!("{layer}_{function}").chars().map(plain).collect()
}

/// A valid set of layers.
pub(crate) struct Stack {
    setup: LayerSetup,
    pub(crate) ids: Arc<[LayerId]>,
    /// Positions in `layers` by slot; layers of one slot in the order of their declaration.
    by_slot: Vec<usize>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) items: ItemSchemas,
    /// The last results of eventual layers by scope and layer.
    pub(crate) eventual: Mutex<LruCache<(Arc<str>, LayerId), Kept>>,
    /// The anchors of conversations.
    pub(crate) lineages: Mutex<LruCache<Arc<str>, Arc<Mutex<Lineage>>>>,
    /// The counted transcripts of conversations.
    pub(crate) counts: Mutex<LruCache<Arc<str>, Arc<Mutex<Tally>>>>,
    pub(crate) prepared: PreparedCount,
}

impl Deref for Stack {
    type Target = LayerSetup;

    fn deref(&self) -> &LayerSetup {
        &self.setup
    }
}

impl Stack {
    pub(crate) fn new(setup: LayerSetup, clock: Arc<dyn Clock>) -> Result<Self, MemoryError> {
        let problems = setup.problems();
        if !problems.is_empty() {
            return Err(MemoryError::Layers(problems));
        }
        let mut by_slot: Vec<usize> = (0..setup.layers.len()).collect();
        by_slot.sort_by_key(|at| setup.layers.get(*at).map(|layer| layer.layer_def().slot));
        let schemas = setup.schemas.clone();
        let schemas = setup.layers.iter().fold(schemas, |all, layer| all.merged(&layer.layer_def().schemas));
        Ok(Self {
            ids: setup.layers.iter().map(|layer| layer.layer_def().id.clone()).collect(),
            by_slot,
            clock,
            items: schemas,
            eventual: Mutex::new(recent(setup.kept_recalls)),
            lineages: Mutex::new(recent(LINEAGES)),
            counts: Mutex::new(recent(LINEAGES)),
            prepared: PreparedCount::default(),
            setup,
        })
    }

    /// Copy whose state is separate: work on it does not affect the original.
    pub(crate) fn ahead(&self) -> Self {
        let mut setup = self.setup.clone().reporting_to(|_| {});
        setup.storage = setup.storage.map(|storage| Arc::new(Overlay::over(storage)) as _);
        Self {
            setup,
            ids: Arc::clone(&self.ids),
            by_slot: self.by_slot.clone(),
            clock: Arc::clone(&self.clock),
            items: self.items.clone(),
            eventual: Mutex::new(self.eventual.lock().clone()),
            lineages: Mutex::new(apart(&self.lineages.lock())),
            counts: Mutex::new(recent(LINEAGES)),
            prepared: PreparedCount::default(),
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

    /// Reports a skipped error.
    pub(crate) fn report(&self, layer: usize, hook: impl Into<&'static str>, error: MemoryError) {
        if let Some(id) = self.ids.get(layer) {
            (self.observer)(&LayerReport { layer: id.clone(), hook: hook.into(), error });
        }
    }
}
