//! Errors of this crate.

use std::fmt;
use std::sync::Arc;

use harness_core::Millis;
use harness_host::StorageError;

use crate::layer::{ItemCategory, LayerId};

/// Errors of layers.
///
/// A hook of a layer returns [`MemoryError::failed`] for passing failures (the layer abstains, the run continues) and
/// [`MemoryError::config`] for what must be corrected first (it is never swallowed).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// A hook of a layer did not work.
    #[error("{message}")]
    Failed {
        /// Failure, and what to do.
        message: String,
    },
    /// A hook took longer than its limit. It was cancelled; nothing of it is applied.
    #[error("no answer within {limit}")]
    TimedOut {
        /// Time limit of the hook.
        limit: Millis,
    },
    /// A layer needs an `init` that it never had in this execution, and is left out.
    #[error("it was never initialised for this execution and is left out")]
    NeverBegun,
    /// Something is set up wrongly.
    #[error("{message}")]
    Config {
        /// A stable code, for example `MISSING_CALL_MODEL`.
        code: Arc<str>,
        /// Mistake, and what to do.
        message: String,
    },
    /// A stored value could not be read or written.
    #[error("{0}")]
    Storage(#[from] StorageError),
    /// A figure that budgets are made of is not a number.
    #[error("the budget figure `{field}` is not a number")]
    BudgetInput {
        /// Name of the figure.
        field: &'static str,
    },
    /// The value is not an item: an object with a non-empty text `type`.
    #[error("not an item: an object with a non-empty `type` is expected")]
    NotAnItem,
    /// An item that no registered schema accepts.
    #[error("{}", mismatch(*.category, .item_type.as_deref()))]
    ItemMismatch {
        /// The kind of schemas that were asked.
        category: ItemCategory,
        /// Type of the item, if the type is unknown.
        item_type: Option<Arc<str>>,
    },
    /// The layers do not fit together; all problems at once.
    #[error("{}", Listed(.0))]
    Layers(Vec<LayerProblem>),
    /// There is no such layer.
    #[error("there is no layer `{id}`")]
    UnknownLayer {
        /// Requested layer.
        id: LayerId,
    },
    /// The layer has no such function.
    #[error("layer `{id}` has no function `{function}`")]
    UnknownFunction {
        /// Layer of the function.
        id: LayerId,
        /// Requested function.
        function: String,
    },
    /// The execution is not open.
    #[error("execution `{execution}` is not open")]
    UnknownExecution {
        /// Requested execution.
        execution: Arc<str>,
    },
}

impl MemoryError {
    /// A hook that did not work.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed { message: message.into() }
    }

    /// Something that is set up wrongly.
    pub fn config(code: impl Into<Arc<str>>, message: impl Into<String>) -> Self {
        Self::Config { code: code.into(), message: message.into() }
    }

    /// A stable code.
    pub fn kind(&self) -> &str {
        match self {
            Self::Failed { .. } => "memory.hook_failed",
            Self::TimedOut { .. } => "memory.hook_timeout",
            Self::NeverBegun => "memory.never_begun",
            Self::Config { code, .. } => code,
            Self::Storage(fault) => &fault.kind,
            Self::BudgetInput { .. } => "memory.invalid_budget_input",
            Self::NotAnItem => "memory.not_an_item",
            Self::ItemMismatch { .. } => "memory.item_schema_mismatch",
            Self::Layers(_) => "memory.invalid_layers",
            Self::UnknownLayer { .. } => "memory.unknown_layer",
            Self::UnknownFunction { .. } => "memory.unknown_function",
            Self::UnknownExecution { .. } => "memory.unknown_execution",
        }
    }

    /// Remedy, if it is not part of the message.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::TimedOut { .. } => Some("raise the layer's limit for this hook, or make the hook quicker"),
            Self::ItemMismatch { .. } => Some("register a schema for the item, or turn strict mode off"),
            Self::UnknownExecution { .. } => Some("state is there between `begin` and `complete`"),
            Self::Failed { .. }
            | Self::NeverBegun
            | Self::Config { .. }
            | Self::Storage(_)
            | Self::BudgetInput { .. }
            | Self::NotAnItem
            | Self::Layers(_)
            | Self::UnknownLayer { .. }
            | Self::UnknownFunction { .. } => None,
        }
    }

    /// Whether the setup must be corrected first.
    pub fn is_config(&self) -> bool {
        matches!(self, Self::Config { .. })
    }
}

fn mismatch(category: ItemCategory, item_type: Option<&str>) -> String {
    match item_type {
        Some(item_type) => format!("no registered schema accepts an item of type `{item_type}`"),
        None => format!("none of the schemas registered for `{category}` accepts the item"),
    }
}

/// A problem in the setup of layers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayerProblem {
    /// Two layers of one id: they would share their state.
    #[error("layer `{id}`: its id is used {times} times; give each layer its own")]
    DuplicateId {
        /// Repeated id.
        id: LayerId,
        /// How many layers have it.
        times: usize,
    },
    /// An id without text.
    #[error("the layer at position {at} (counted from 1) has an empty id")]
    EmptyId {
        /// The position in the declaration.
        at: usize,
    },
    /// Neither hooks nor functions: it does nothing.
    #[error("layer `{id}`: it names no hook and provides nothing; list its hooks in its definition")]
    NoHooks {
        /// Layer without hooks.
        id: LayerId,
    },
    /// A budget that is negative, not a number, or whose minimum is above its maximum.
    #[error("layer `{id}`: its budget {budget} is not a range of tokens from 0 up")]
    Budget {
        /// Layer with the budget.
        id: LayerId,
        /// The budget as it was given.
        budget: String,
    },
    /// State that outlives an execution, and nowhere to keep it.
    #[error("layer `{id}`: its scope `{scope}` outlives an execution, but there is no storage")]
    NoStorage {
        /// Layer with the scope.
        id: LayerId,
        /// Scope of its state.
        scope: &'static str,
    },
    /// Two functions whose tools have one name.
    #[error(
        "layer `{id}`: the tool name `{tool}` of its function `{function}` is that of another function; rename one"
    )]
    DuplicateFunction {
        /// Layer of the function.
        id: LayerId,
        /// Name of the function.
        function: String,
        /// Name of the tool.
        tool: String,
    },
}

struct Listed<'a>(&'a [LayerProblem]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}
