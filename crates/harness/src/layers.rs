//! Memory as a registry file configures it.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use harness_core::message::Message;
use harness_core::port::{BoxFuture, Clock};
use harness_core::{Json, ModelName};
use harness_host::{DynStorage, DynWorkspace, StorageError};
use harness_memory::MemoryError;
use harness_memory::builtin::notes::LongTermMemory;
use harness_memory::builtin::plan::{Plan, PlanHost, PlanOptions, PlanStyle};
use harness_memory::builtin::steering::{Steering, SteeringRule};
use harness_memory::builtin::{
    ContextFiles, DataMerge, Environment, Episodes, FileReferences, HistoryWindow, ModelObserver,
    Observations, Reminder, Reminders, Scratchpad, SemanticRecall, StaticContent, TaskState, TemporalFacts,
    ToolMemory, memory_tools,
};
use harness_memory::layer::{
    Budget, CacheConfig, DynLayer, LayerCx, LayerDef, LayerSetup, OnInitError, Pipeline, Placement, Scope,
    ViewBudget,
};
use harness_session::{Location, storage};
use harness_tools::{
    BudgetSetting, FolderWorkspace, LayerKind, LayerScope, LayerSetting, MemorySetting, Modes,
    ReminderSetting, ReminderTrigger, RuleSetting, RuleTarget,
};

use crate::builder::Builder;
use crate::error::HarnessError;

/// User of a memory that names none.
const OWNER: &str = "owner";
/// Tokens of a request, and those reserved for the answer, unless the setting has others.
const TOKENS: u64 = 128_000;
const RESERVE: u64 = 4_000;
/// Maximum bytes of a file with a fixed text.
const MAX_TEXT: u64 = 1024 * 1024;
/// Messages of the history, results of a tool, unless the setting has others.
const HISTORY: usize = 40;
const RESULTS: usize = 3;

/// Memory of a registry file.
#[derive(Default)]
pub(crate) struct ConfiguredMemory {
    pub(crate) setting: Option<MemorySetting>,
    /// In place of its directory.
    storage: Option<Arc<dyn DynStorage>>,
}

impl Builder {
    /// Memory as the section `memory` of a registry file configures it: layers, storage, facts and their tools.
    /// Layers call the model of the harness. A [`memory`](Self::memory) of your own replaces it. Default none.
    ///
    /// Errors of its files and layers are reported by [`build`](Self::build).
    ///
    /// ```
    /// use std::path::Path;
    ///
    /// use harness::host::process::Environment;
    /// use harness::prelude::*;
    /// use harness::tools::Registry;
    ///
    /// # fn build(model: impl Model + 'static) -> Result<Harness, Box<dyn std::error::Error>> {
    /// let text = "{ version: 1, memory: { layers: { environment: { facts: { Shop: Oslo harbour } } } } }";
    /// let registry = Registry::parse(text, Path::new("registry.yaml"), &Environment::default())?;
    /// let memory = registry.memory().cloned().unwrap_or_default();
    /// let harness = Harness::new(model).memory_setting(memory).build()?;
    /// # Ok(harness)
    /// # }
    /// ```
    pub fn memory_setting(mut self, setting: MemorySetting) -> Self {
        self.memory.setting = Some(setting);
        self
    }

    /// Keeps the state of layers of a [`memory_setting`](Self::memory_setting) in `storage` in place of its directory, for
    /// programs whose runs are on several machines. A database of the setting stays. Default none.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use harness::Builder;
    /// use harness::session::storage::MemoryStorage;
    /// use harness::tools::MemorySetting;
    ///
    /// fn remembering(builder: Builder, setting: MemorySetting) -> Builder {
    ///     builder.memory_setting(setting).memory_storage(Arc::new(MemoryStorage::new()))
    /// }
    /// ```
    pub fn memory_storage(mut self, storage: Arc<dyn DynStorage>) -> Self {
        self.memory.storage = Some(storage);
        self
    }

    /// Builds the pipeline of the setting, where one is given and no layers are.
    pub(crate) fn with_configured_memory(mut self) -> Result<Self, HarnessError> {
        let ConfiguredMemory { setting, storage } = std::mem::take(&mut self.memory);
        let Some(setting) = setting.filter(|_| self.ports.layers.is_none()) else {
            return Ok(self);
        };
        let switch = self.team.modes().cloned();
        let mut setup = LayerSetup::new().with_model(Arc::clone(&self.ports.model));
        setup.schemas = self.items.clone().unwrap_or_default();
        if let Some(path) = &setting.storage {
            let shared = storage.filter(|_| Location::of(path).url().is_none());
            let storage = shared.map_or_else(|| storage::open(path).map_err(StorageError::from), Ok);
            setup.storage = Some(storage.map_err(MemoryError::from)?);
        }
        let pipeline = pipeline(&setting, setup, switch, &self.ports.clock)?;
        let file_name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let workspace = setting.workspace.or_else(|| setting.facts.as_deref().map(file_name));
        let origin = &mut self.origin;
        origin.user.get_or_insert_with(|| setting.user.as_deref().unwrap_or(OWNER).into());
        origin.workspace = origin.workspace.take().or_else(|| workspace.map(Arc::from));
        Ok(self.memory(pipeline))
    }
}

fn pipeline(
    setting: &MemorySetting,
    mut setup: LayerSetup,
    switch: Option<Modes>,
    clock: &Arc<dyn Clock>,
) -> Result<Pipeline, MemoryError> {
    let facts = setting.facts.as_deref().map(open_facts).transpose()?;
    let parts = Parts { model: setting.model.as_deref().map(ModelName::from), facts, modes: switch };
    let tokens = setting.tokens.unwrap_or(TOKENS);
    let mut budget = ViewBudget::new(tokens, setting.reserve.unwrap_or(RESERVE.min(tokens / 4)));
    budget.window = setting.messages;
    setup.budget = Some(budget);
    if setting.prompt_cache == Some(false) {
        setup.cache = CacheConfig::disabled();
    }
    let layers = setting.layers.iter().map(|layer| parts.layer(layer));
    setup.layers = layers.collect::<Result<Vec<_>, _>>()?;
    if let Some(facts) = parts.facts {
        setup.tools = memory_tools(Some(facts), Arc::clone(clock));
    }
    Pipeline::build(setup, Arc::clone(clock))
}

#[cfg(feature = "sqlite")]
fn open_facts(path: &Path) -> Result<LongTermMemory, MemoryError> {
    Ok(LongTermMemory::new(Arc::new(harness_memory::builtin::notes::SqliteNotes::open(path)?)))
}

#[cfg(not(feature = "sqlite"))]
fn open_facts(path: &Path) -> Result<LongTermMemory, MemoryError> {
    let message =
        format!("cannot open the notes file {}: this build has no feature `sqlite`", path.display());
    Err(MemoryError::config("memory.no_sqlite", message))
}

fn unusable(kind: &str, path: &Path, error: &dyn std::error::Error) -> MemoryError {
    StorageError::new(kind, format!("cannot use {}: {error}", path.display())).into()
}

/// Shared parts of the layers.
struct Parts {
    model: Option<ModelName>,
    facts: Option<LongTermMemory>,
    /// Modes of the agents, which plan mode sets.
    modes: Option<Modes>,
}

/// Plan mode as the mode `plan` of the agents.
struct PlanModes(Modes);

impl PlanModes {
    /// Sets a mode that the model knows of; modes of other names stay as they are.
    fn set(&self, cx: &LayerCx, name: &str) {
        if self.0.all().iter().any(|mode| &*mode.name == name) {
            let _ = self.0.of(cx.execution.thread.as_ref()).set_by_model(name);
        }
    }
}

impl PlanHost for PlanModes {
    fn enter<'a>(&'a self, cx: &'a LayerCx) -> BoxFuture<'a, Result<Option<String>, MemoryError>> {
        self.set(cx, "plan");
        Box::pin(async { Ok(None) })
    }

    fn leave(&self, cx: &LayerCx) {
        self.set(cx, "execute");
    }
}

impl Parts {
    fn observer(&self) -> Arc<ModelObserver> {
        Arc::new(ModelObserver::new(self.model.clone()))
    }

    fn facts(&self) -> Result<LongTermMemory, MemoryError> {
        let missing = || MemoryError::config("memory.no_facts", "the memory has no file of facts");
        self.facts.clone().ok_or_else(missing)
    }

    fn layer(&self, setting: &LayerSetting) -> Result<Arc<dyn DynLayer>, MemoryError> {
        macro_rules! ready {
            ($layer:expr) => {{
                let mut layer = $layer;
                place(&mut layer.def, setting);
                Arc::new(layer) as Arc<dyn DynLayer>
            }};
        }
        Ok(match &setting.kind {
            LayerKind::Facts { limit, min_score } => ready!(self.recall(*limit, *min_score)?),
            LayerKind::Episodes { shown, kept, summarized } => {
                ready!(self.episodes(*shown, *kept, *summarized)?)
            }
            LayerKind::Scratchpad { schema, notes, max_note, max_notes } => {
                ready!(scratchpad(schema.as_ref(), *notes, *max_note, *max_notes)?)
            }
            LayerKind::TaskState { by_child } => ready!(task_state(*by_child)),
            LayerKind::Observations { threshold, kept } => ready!(self.observations(*threshold, *kept)),
            LayerKind::Timeline { utc_offset, clock, learn, shown, threshold, kept } => {
                let mut layer = self.timeline(*clock, *learn, *shown);
                layer.utc_offset = *utc_offset;
                layer.threshold = threshold.unwrap_or(layer.threshold);
                layer.kept = kept.unwrap_or(layer.kept);
                ready!(layer)
            }
            LayerKind::Text { name, text, file } => ready!(fixed_text(name, text, file.as_deref())?),
            LayerKind::ContextFiles { root, directory } => {
                ready!(ContextFiles::new(workspace(root, None)?, directory))
            }
            LayerKind::FileReferences { root, max_file, extensions, weighed } => {
                let layer = file_references(root, *max_file, extensions.as_deref())?;
                ready!(if *weighed { layer.scored_by(self.model.clone()) } else { layer })
            }
            LayerKind::Environment { facts, utc_offset } => ready!(environment(facts, *utc_offset)),
            LayerKind::Reminders(reminders) => ready!(Reminders::new(reminders.iter().map(reminder))),
            LayerKind::History { max_items } => ready!(HistoryWindow::new(max_items.unwrap_or(HISTORY))?),
            LayerKind::Plan { interview, allow, instructions, requires_approval } => {
                let mut options = PlanOptions::default();
                options.style = if *interview { PlanStyle::Interview } else { PlanStyle::Phased };
                options.additional_allowed_tools = allow.iter().map(|tool| tool.as_str().into()).collect();
                options.additional_plan_instructions = instructions.as_deref().map(Into::into);
                options.requires_approval = *requires_approval;
                ready!(self.plan(options))
            }
            LayerKind::Steering { rules, strict } => {
                let layer = Steering::new(rules.iter().map(|rule| self.rule(rule)));
                ready!(if *strict { layer.gating() } else { layer })
            }
            LayerKind::ToolResults { tools, kept } => {
                let tools = tools.iter().map(|tool| tool.as_str().into());
                ready!(ToolMemory::latest_results(tools, kept.unwrap_or(RESULTS)))
            }
            _ => {
                return Err(MemoryError::config(
                    "memory.unknown_layer_kind",
                    "the layer is of an unknown kind",
                ));
            }
        })
    }

    fn recall(&self, limit: Option<usize>, min_score: Option<f64>) -> Result<SemanticRecall, MemoryError> {
        let mut layer = SemanticRecall::new(self.facts()?);
        layer.limit = limit.unwrap_or(layer.limit);
        layer.min_score = min_score.unwrap_or(layer.min_score);
        Ok(layer)
    }

    fn episodes(
        &self,
        shown: Option<usize>,
        kept: Option<usize>,
        summarized: bool,
    ) -> Result<Episodes, MemoryError> {
        let mut layer = Episodes::new(self.facts()?);
        layer.shown = shown.unwrap_or(layer.shown);
        layer.kept = kept.unwrap_or(layer.kept);
        layer.observer = summarized.then(|| self.observer() as _);
        Ok(layer)
    }

    fn observations(&self, threshold: Option<u64>, kept: Option<usize>) -> Observations {
        let mut layer = Observations::new();
        layer.threshold = threshold.unwrap_or(layer.threshold);
        layer.kept = kept.unwrap_or(layer.kept);
        layer.observer = Some(self.observer());
        layer
    }

    fn timeline(&self, clock: bool, learn: bool, shown: bool) -> TemporalFacts {
        let layer = TemporalFacts::new();
        let layer = if learn { layer.with_finder(self.observer()) } else { layer };
        let layer = if clock { layer } else { layer.ungrounded() };
        if shown { layer.with_ledger() } else { layer }
    }

    fn plan(&self, options: PlanOptions) -> Plan {
        let plan = Plan::new(options);
        match &self.modes {
            Some(modes) => plan.with_host(Arc::new(PlanModes(modes.clone()))),
            None => plan,
        }
    }

    fn rule(&self, setting: &RuleSetting) -> SteeringRule {
        let rule = SteeringRule::judged(setting.name.as_str(), setting.rule.as_str());
        let rule = self.model.iter().cloned().fold(rule, SteeringRule::with_model);
        let rule = match setting.judges {
            None => rule,
            Some(RuleTarget::Tools) => rule.for_tools(),
            Some(RuleTarget::Answers) => rule.for_answers(),
        };
        if setting.background { rule.in_background() } else { rule }
    }
}

fn scratchpad(
    schema: Option<&Json>,
    notes: bool,
    max_note: Option<u64>,
    max_notes: Option<u64>,
) -> Result<Scratchpad, MemoryError> {
    let bytes = |limit: Option<u64>, default| limit.map_or(Ok(default), usize::try_from).unwrap_or(default);
    let mut layer = Scratchpad::new();
    layer.schema = schema.map(state_check).transpose()?;
    layer.notes.note = bytes(max_note, layer.notes.note);
    layer.notes.total = bytes(max_notes, layer.notes.total);
    Ok(if notes { layer.with_notes() } else { layer })
}

fn task_state(by_child: bool) -> TaskState {
    let mut layer = TaskState::new();
    layer.merge = if by_child { DataMerge::Namespace } else { DataMerge::Shallow };
    layer
}

fn fixed_text(name: &str, text: &str, file: Option<&Path>) -> Result<StaticContent, MemoryError> {
    let text = file.map_or_else(|| Ok(text.to_owned()), read_text)?;
    let mut layer = StaticContent::new(Arc::new(text));
    (layer.def.id, layer.tag, layer.def.scope) = (name.into(), name.into(), Scope::Execution);
    Ok(layer)
}

fn file_references(
    root: &Path,
    max_file: Option<u64>,
    extensions: Option<&[String]>,
) -> Result<FileReferences, MemoryError> {
    let mut layer = FileReferences::new(workspace(root, max_file)?, "");
    if let Some(bytes) = max_file.and_then(|bytes| usize::try_from(bytes).ok()) {
        layer = layer.with_max_size(bytes);
    }
    Ok(match extensions {
        Some(extensions) => layer.with_extensions(extensions),
        None => layer,
    })
}

fn environment(facts: &[(String, String)], utc_offset: i32) -> Environment {
    let mut layer = Environment::new();
    layer.utc_offset = utc_offset;
    facts.iter().fold(layer, |layer, (name, value)| layer.with(name.as_str(), value.as_str()))
}

/// Applies the settings that every layer has.
fn place(def: &mut LayerDef, setting: &LayerSetting) {
    def.scope = match setting.scope {
        None => def.scope,
        Some(LayerScope::Run) => Scope::Execution,
        Some(LayerScope::Thread) => Scope::Thread,
        Some(LayerScope::User) => Scope::Resource,
        Some(LayerScope::Global) => Scope::Global,
    };
    def.slot = setting.slot.unwrap_or(def.slot);
    def.budget = match setting.budget {
        None => def.budget,
        Some(BudgetSetting::Auto) => Budget::Auto,
        Some(BudgetSetting::Range { min, max }) => Budget::Range { min: min.into(), max: max.into() },
    };
    def.placement = match setting.anchored {
        None => def.placement,
        Some(true) => Placement::Anchor,
        Some(false) => Placement::Live,
    };
    if setting.optional {
        def.on_init_error = OnInitError::Disable;
    }
}

#[cfg(feature = "schema-validation")]
fn state_check(schema: &Json) -> Result<harness_memory::builtin::StateCheck, MemoryError> {
    let schema = harness_tools::ArgumentSchema::compile("scratchpad", schema)
        .map_err(|error| MemoryError::config(error.kind(), error.to_string()))?;
    Ok(Arc::new(move |state| schema.check(state).map_err(|fault| fault.to_string())))
}

#[cfg(not(feature = "schema-validation"))]
fn state_check(_: &Json) -> Result<harness_memory::builtin::StateCheck, MemoryError> {
    let message =
        "the schema of the scratchpad cannot be checked: this build has no feature `schema-validation`";
    Err(MemoryError::config("memory.no_schema_validation", message))
}

fn workspace(root: &Path, max_file: Option<u64>) -> Result<Arc<dyn DynWorkspace>, MemoryError> {
    let files = FolderWorkspace::open(root).map_err(|error| unusable(error.kind(), root, &error))?;
    Ok(Arc::new(max_file.into_iter().fold(files, FolderWorkspace::max_file)))
}

fn read_text(path: &Path) -> Result<String, MemoryError> {
    let mut text = String::new();
    let opened = std::fs::File::open(path);
    let read = opened.and_then(|file| file.take(MAX_TEXT + 1).read_to_string(&mut text));
    read.map_err(|error| unusable("memory.unreadable", path, &error))?;
    if text.len() as u64 > MAX_TEXT {
        let message = format!("{} is larger than {MAX_TEXT} bytes", path.display());
        return Err(StorageError::new("memory.too_large", message).into());
    }
    Ok(text)
}

fn reminder(setting: &ReminderSetting) -> Reminder {
    let mut reminder = Reminder::new(setting.name.as_str(), setting.text.as_str());
    reminder = match setting.after {
        None => reminder,
        Some(ReminderTrigger::Prompt) => reminder.after(|message| matches!(message, Message::User(_))),
        Some(ReminderTrigger::ToolResult) => {
            reminder.after(|message| matches!(message, Message::ToolResult(_)))
        }
    };
    reminder = setting.every.into_iter().fold(reminder, Reminder::every);
    setting.at_most.into_iter().fold(reminder, Reminder::at_most)
}
