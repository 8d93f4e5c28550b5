//! What can go wrong in this crate.

use std::fmt;
use std::sync::Arc;

use harness_core::Millis;
use harness_host::StorageError;

use crate::layer::{ItemCategory, LayerId};

/// What can go wrong with layers.
///
/// A hook of a layer gives [`MemoryError::failed`] for what may pass (the layer abstains, the run goes on)
/// and [`MemoryError::config`] for what somebody has to repair first (it is never swallowed).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// A hook of a layer did not work.
    #[error("{message}")]
    Failed {
        /// What happened and what to do.
        message: String,
    },
    /// A hook took longer than its limit. It was cancelled; nothing of it is applied.
    #[error("no answer within {limit}")]
    TimedOut {
        /// The limit.
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
        /// What is wrong and what to do.
        message: String,
    },
    /// What a layer keeps could not be read or written.
    #[error("{0}")]
    Storage(#[from] StorageError),
    /// A figure that budgets are made of is not a number.
    #[error("the budget figure `{field}` is not a number")]
    BudgetInput {
        /// The figure.
        field: &'static str,
    },
    /// A value is no item: it is not an object with a non-empty text `type`.
    #[error("not an item: an object with a non-empty `type` is expected")]
    NotAnItem,
    /// An item that no registered schema accepts.
    #[error("{}", mismatch(*.category, .item_type.as_deref()))]
    ItemMismatch {
        /// The kind of schemas that were asked.
        category: ItemCategory,
        /// The item's type, where the type is what nobody knows.
        item_type: Option<Arc<str>>,
    },
    /// Layers that cannot stand together; all faults at once.
    #[error("{}", Listed(.0))]
    Layers(Vec<LayerProblem>),
    /// There is no such layer.
    #[error("there is no layer `{id}`")]
    UnknownLayer {
        /// What was asked for.
        id: LayerId,
    },
    /// The layer has no such function.
    #[error("layer `{id}` has no function `{function}`")]
    UnknownFunction {
        /// The layer.
        id: LayerId,
        /// What was asked for.
        function: String,
    },
    /// The execution has not begun, or is over.
    #[error("the execution `{execution}` has not begun or is over")]
    UnknownExecution {
        /// What was asked for.
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

    /// What to do about it, where that is not in the message.
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

    /// Whether somebody has to repair something first, so that it must not be passed over.
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

/// A fault in how layers are set up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayerProblem {
    /// Two layers of one id: they would share their state.
    #[error("layer `{id}`: its id is used {times} times; give each layer its own")]
    DuplicateId {
        /// The id.
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
    /// Neither hooks nor functions nor data: it does nothing.
    #[error("layer `{id}`: it names no hook and provides nothing; list its hooks in its definition")]
    NoHooks {
        /// The layer.
        id: LayerId,
    },
    /// A budget that is negative, not a number, or whose minimum is above its maximum.
    #[error("layer `{id}`: its budget {budget} is not a range of tokens from 0 up")]
    Budget {
        /// The layer.
        id: LayerId,
        /// The budget as it was given.
        budget: String,
    },
    /// State that outlives an execution, and nowhere to keep it.
    #[error("layer `{id}`: its scope `{scope}` outlives an execution, but there is no storage")]
    NoStorage {
        /// The layer.
        id: LayerId,
        /// Its scope.
        scope: &'static str,
    },
    /// Two functions or tools of one name.
    #[error("layer `{id}`: its function `{function}` is called `{wire}` on the wire, like another one")]
    DuplicateFunction {
        /// The layer.
        id: LayerId,
        /// The function.
        function: String,
        /// The name that a provider sees.
        wire: String,
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
