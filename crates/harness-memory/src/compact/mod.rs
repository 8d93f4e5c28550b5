//! Compaction: one engine, its policies, and their parts.
//!
//! | module | what it has |
//! |---|---|
//! | [`ContextCompactor`] | the engine, and the [`CompactionPolicy`] that it follows |
//! | [`group`] | atomic groups of messages, the unit of every policy |
//! | [`tokens`] | token counters |
//! | [`durability`] | rules for clearing the result of a tool |
//! | [`Summarizer`] | writes the text that stands for messages |
//! | [`summary`] | structured summaries |
//! | [`artifacts`] | large contents outside of the transcript |

pub mod artifacts;
mod compactor;
mod digest;
pub mod durability;
mod error;
pub mod group;
mod meter;
mod policy;
mod shown;
mod summarize;
pub mod summary;
pub mod tokens;

pub use compactor::{ContextCompactor, Rehydration, TARGET_MISSED};
pub use digest::{SummaryKey, content_hash};
pub use error::CompactError;
pub use policy::{CompactionPolicy, HardStop, Recency, Rung, Target, Trigger};
pub use summarize::{
    COMPACT_FAILED, DynSummarizer, ModelSummarizer, Summarizer, Summary, SummaryAsk, SummaryFault,
    SummaryModel,
};
