//! Compaction: groups, strategies, summaries, the compactor.
//!
//! | module | what it has |
//! |---|---|
//! | [`group`] | what is only ever taken together: atomic groups of messages |
//! | [`tokens`] | counting tokens; [`BudgetMeter`] estimates whole requests |

pub mod group;
mod meter;
pub mod tokens;

pub use meter::BudgetMeter;
