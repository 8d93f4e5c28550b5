//! Definition of a layer.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use harness_core::tool::RetryClass;
use harness_core::{Json, Millis};
use serde::{Deserialize, Serialize};

use super::schema::ItemSchemas;

/// Names a layer: the key of its state, its storage and its place in the prompt cache.
#[derive(
    Clone,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    derive_more::Debug,
    derive_more::Display,
    derive_more::From,
)]
#[serde(transparent)]
#[debug("{_0:?}")]
#[from(&str, String)]
pub struct LayerId(Arc<str>);

impl LayerId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// How long the state of a layer lives, and who shares it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
#[strum(serialize_all = "snake_case")]
pub enum Scope {
    /// One conversation.
    Thread,
    /// One user, over conversations; the thread's where no user is known.
    Resource,
    /// All users.
    Global,
    /// One execution: nothing is kept after it. The default.
    #[default]
    Execution,
}

/// How many tokens of the view a layer gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Budget {
    /// An equal share of what the others leave. The default.
    #[default]
    Auto,
    /// At most this many; nothing is set aside for it.
    Fixed(f64),
    /// At least and at most this many.
    Range {
        /// Set aside before anything else is shared.
        min: f64,
        /// Never exceeded.
        max: f64,
    },
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Fixed(tokens) => write!(f, "{tokens}"),
            Self::Range { min, max } => write!(f, "{min} to {max}"),
        }
    }
}

/// Where what a layer recalls is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Placement {
    /// Before the history, byte for byte the same from turn to turn, so that a provider can cache it.
    Anchor,
    /// After the history, fresh each time.
    Live,
    /// By how often it changes. The default.
    #[default]
    Auto,
}

/// When a layer is recalled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RecallMode {
    /// In each iteration. The default.
    #[default]
    Atomic,
    /// Only when its store changed the state since; otherwise the last result is served again.
    Eventual,
}

/// Time of a requested recall. It is reported to observers and does not change the order of work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RerenderTiming {
    /// As soon as possible.
    Immediate,
    /// Together with others. The default.
    #[default]
    Batched,
}

/// Effect of a failed `init`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnInitError {
    /// The run fails with the error; later layers stay uninitialised. The default.
    #[default]
    Throw,
    /// The layer is left out of this execution.
    Disable,
}

/// Effect of a failed `before_tool`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnToolGateError {
    /// The layer has no opinion. The default.
    #[default]
    Abstain,
    /// The call is denied.
    Deny,
}

/// The points at which a layer can be asked.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, strum::IntoStaticStr,
)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
#[strum(serialize_all = "camelCase")]
pub enum Hook {
    /// Once per execution, before anything else.
    Init,
    /// Messages are about to enter the transcript.
    #[serde(rename = "onItemAppend")]
    #[strum(serialize = "onItemAppend")]
    Append,
    /// The view of an iteration is made.
    Recall,
    /// The history in the view is chosen.
    ProjectHistory,
    /// A model has answered.
    #[serde(rename = "afterModelCall")]
    #[strum(serialize = "afterModelCall")]
    AfterModel,
    /// A tool is about to run.
    #[serde(rename = "beforeToolCall")]
    #[strum(serialize = "beforeToolCall")]
    BeforeTool,
    /// An answer was accepted.
    Store,
    /// A child execution starts.
    #[serde(rename = "onSpawn")]
    #[strum(serialize = "onSpawn")]
    Spawn,
    /// A child execution succeeded.
    #[serde(rename = "onReturn")]
    #[strum(serialize = "onReturn")]
    Return,
    /// The execution ends.
    #[serde(rename = "onComplete")]
    #[strum(serialize = "onComplete")]
    Complete,
    /// Resources of the execution are released.
    Dispose,
    /// A block in the anchored part is outdated.
    RenderDelta,
}

impl Hook {
    /// How long it may take when a layer says nothing else.
    pub fn default_limit(self) -> Millis {
        match self {
            Self::Init | Self::AfterModel | Self::Spawn | Self::Return => Millis(10_000),
            Self::Append | Self::Recall | Self::ProjectHistory => Millis(5_000),
            Self::BeforeTool | Self::Dispose | Self::RenderDelta => Millis(5_000),
            Self::Store | Self::Complete => Millis(30_000),
        }
    }
}

/// A function that a layer offers: to the host by name, and to the model as the tool `<layer>/<name>`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FunctionDef {
    /// The name within the layer.
    pub name: Arc<str>,
    /// Description for the model.
    pub description: Arc<str>,
    /// The JSON Schema of its arguments; `None` is an open object.
    pub input_schema: Option<Json>,
    /// Whether a restart may repeat a call. Default `unsafe`.
    pub class: RetryClass,
    /// Whether each call of the model requires approval. Default false.
    pub requires_approval: bool,
}

impl FunctionDef {
    /// A function without schemas.
    pub fn new(name: impl Into<Arc<str>>, description: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            input_schema: None,
            class: RetryClass::Unsafe,
            requires_approval: false,
        }
    }

    /// Sets the schema of the arguments.
    #[must_use]
    pub fn with_input(self, schema: Json) -> Self {
        Self { input_schema: Some(schema), ..self }
    }

    /// Sets the retry class.
    #[must_use]
    pub fn with_class(self, class: RetryClass) -> Self {
        Self { class, ..self }
    }
}

/// Definition of a layer: identity, position, budget and hooks.
///
/// A hook that is not named here is never asked.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LayerDef {
    /// Key of the layer's state, storage and place in the prompt cache.
    pub id: LayerId,
    /// Position: layers of a lower slot are called first and shown first; see [`builtin`](crate::builtin) for those of
    /// the crate. Use multiples of 10 for your own. Layers of one slot keep the order of their declaration.
    pub slot: i32,
    /// How long its state lives. Default `execution`.
    pub scope: Scope,
    /// How many tokens it gets. Default `auto`.
    pub budget: Budget,
    /// Where it is shown. Default `auto`.
    pub placement: Placement,
    /// When it is recalled. Default `atomic`.
    pub recall_mode: RecallMode,
    /// When it is recalled again. Default `batched`.
    pub rerender_timing: RerenderTiming,
    /// Effect of a failed `init`. Default `throw`.
    pub on_init_error: OnInitError,
    /// Effect of a failed `before_tool`. Default `abstain`.
    pub on_tool_gate_error: OnToolGateError,
    /// The functions it offers.
    pub functions: Vec<FunctionDef>,
    /// The items it may make beyond the base types.
    pub schemas: ItemSchemas,
    hooks: Vec<Hook>,
    limits: BTreeMap<Hook, Option<Millis>>,
}

impl LayerDef {
    /// A layer of scope `execution` with these hooks and defaults everywhere else.
    pub fn new(id: impl Into<LayerId>, slot: i32, hooks: impl IntoIterator<Item = Hook>) -> Self {
        Self {
            id: id.into(),
            slot,
            scope: Scope::default(),
            budget: Budget::default(),
            placement: Placement::default(),
            recall_mode: RecallMode::default(),
            rerender_timing: RerenderTiming::default(),
            on_init_error: OnInitError::default(),
            on_tool_gate_error: OnToolGateError::default(),
            functions: Vec::new(),
            schemas: ItemSchemas::default(),
            hooks: hooks.into_iter().collect(),
            limits: BTreeMap::new(),
        }
    }

    /// Whether it has this hook.
    pub fn has(&self, hook: Hook) -> bool {
        self.hooks.contains(&hook)
    }

    /// Listed hooks.
    pub fn hooks(&self) -> &[Hook] {
        &self.hooks
    }

    /// How long a hook may take; `None` is without end. `render_delta` has the limit of `recall`.
    pub fn limit(&self, hook: Hook) -> Option<Millis> {
        let hook = if hook == Hook::RenderDelta { Hook::Recall } else { hook };
        self.limits.get(&hook).copied().unwrap_or_else(|| Some(hook.default_limit()))
    }

    /// Adds a hook.
    #[must_use]
    pub fn with_hook(mut self, hook: Hook) -> Self {
        if !self.has(hook) {
            self.hooks.push(hook);
        }
        self
    }

    /// Sets the time limit of a hook; `None` or zero removes it.
    #[must_use]
    pub fn with_limit(mut self, hook: Hook, limit: Option<Millis>) -> Self {
        self.limits.insert(hook, limit.filter(|limit| limit.0 > 0));
        self
    }

    /// Sets the scope of the state.
    #[must_use]
    pub fn with_scope(self, scope: Scope) -> Self {
        Self { scope, ..self }
    }

    /// Sets a budget from `min` to `max` tokens.
    #[must_use]
    pub fn with_range(self, min: u32, max: u32) -> Self {
        Self { budget: Budget::Range { min: f64::from(min), max: f64::from(max) }, ..self }
    }

    /// Sets the placement.
    #[must_use]
    pub fn with_placement(self, placement: Placement) -> Self {
        Self { placement, ..self }
    }

    /// Adds a function.
    #[must_use]
    pub fn with_function(mut self, function: FunctionDef) -> Self {
        self.functions.push(function);
        self
    }
}
