//! The section `memory` of a registry file.

mod layer;
mod reader;
mod setting;

pub(super) use reader::{SECTION, read};
pub use setting::{
    BudgetSetting, LayerKind, LayerScope, LayerSetting, MemorySetting, ReminderSetting, ReminderTrigger,
    RuleSetting, RuleTarget,
};
