//! Compaction: groups, strategies, summaries, the compactor.

mod meter;
pub mod tokens;

pub use meter::BudgetMeter;
