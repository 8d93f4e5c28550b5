//! Compaction: groups, strategies, summaries, the compactor.
//!
//! | module | what it has |
//! |---|---|
//! | [`group`] | what is only ever taken together: atomic groups of messages |
//! | [`tokens`] | counting tokens; [`BudgetMeter`] estimates whole requests |
//! | [`SummarizingCompactor`] | source 004's compactor |
//! | [`Summarizer`] | writes the text that stands for messages |

pub mod group;
mod meter;
mod shown;
mod source_004;
mod summarize;
mod threads;
pub mod tokens;

pub use meter::BudgetMeter;
pub use source_004::{SummarizingCompactor, SummarizingSettings};
pub use summarize::{
    COMPACT_FAILED, DynSummarizer, PlainSummarizer, SerializeOptions, Summarizer, Summary, SummaryAsk,
    SummaryFault, SummaryModel, conversation_text,
};
