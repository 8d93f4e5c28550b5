//! The registry file, and the tools that it binds to targets.

mod agents;
mod bound;
mod budgets;
mod builtin;
mod command;
mod entry;
mod lack;
mod memory;
mod models;
mod release;
#[cfg(feature = "mcp")]
mod remote;
mod sandbox;
mod server;

#[cfg(feature = "mcp")]
pub(crate) use entry::{MAX_NAME, is_name_char, name_of};

pub use bound::{MAX_FILE, Registry};
pub use entry::{MAX_OUTPUT, MAX_TIMEOUT, MIN_OUTPUT};
pub use memory::{
    BudgetSetting, LayerKind, LayerScope, LayerSetting, MemorySetting, ReminderSetting, ReminderTrigger,
    RuleSetting, RuleTarget,
};
pub use models::{
    ModelAuth, ModelBreaker, ModelCache, ModelEndpoint, ModelEntry, ModelFallback, ModelKey, ModelPrice,
    ModelProtocol, ModelRate, ModelRetry,
};
