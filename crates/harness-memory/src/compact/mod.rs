//! Compaction: groups, strategies, summaries, the compactor.
//!
//! | module | what it has |
//! |---|---|
//! | [`group`] | what is only ever taken together: atomic groups of messages |
//! | [`tokens`] | counting tokens; [`BudgetMeter`] estimates whole requests |
//! | [`item`] | messages with the names by which strategies speak of them |
//! | [`pressure`] | when a view is too long, and how much of it has to go |
//! | [`durability`] | what may be done with the result of a tool |
//! | [`summary`] | structured summaries |
//! | [`pairing`] | calls and results that belong together |
//! | [`plan`] | plans beside a transcript: clear, externalize, summarize, drop |
//! | [`clear`] | clearing without a plan |
//! | [`ContextCompactor`] | the product's compactor, and its [`CompactionPolicy`] |
//! | [`artifacts`] | reading back what was stored elsewhere |
//! | [`Summarizer`] | writes the text that stands for messages |

pub mod artifacts;
pub mod clear;
mod compactor;
mod digest;
pub mod durability;
mod error;
pub mod group;
pub mod item;
mod key_data;
mod meter;
pub mod pairing;
pub mod plan;
mod policy;
pub mod pressure;
mod shown;
mod summarize;
pub mod summary;
mod threads;
pub mod tokens;

pub use compactor::{ContextCompactor, Rehydration, TARGET_MISSED};
pub use digest::{SummaryKey, content_hash};
pub use error::CompactError;
pub use key_data::KeyFields;
pub use meter::BudgetMeter;
pub use policy::{CompactionPolicy, HardStop, Recency, Rung, Target, Trigger};
pub use summarize::{
    COMPACT_FAILED, DynSummarizer, ModelSummarizer, PlainSummarizer, SerializeOptions, Summarizer, Summary,
    SummaryAsk, SummaryFault, SummaryModel, conversation_text,
};
