//! Summarizers: what turns a part of a conversation into a text that stands for it.
//!
//! A compactor decides *what* is summarized; a [`Summarizer`] only writes. [`ModelSummarizer`] calls a model
//! for a structured summary, so that facts, open items and artifacts survive many compactions. Any other is a
//! few lines:
//!
//! ```
//! use harness_memory::compact::{Summarizer, Summary, SummaryAsk, SummaryFault};
//!
//! struct Titles;
//!
//! impl Summarizer for Titles {
//!     async fn summarize(&self, ask: SummaryAsk) -> Result<Summary, SummaryFault> {
//!         let earlier = ask.previous.map(|summary| summary.text).unwrap_or_default();
//!         let lines = ask.messages.iter().filter_map(|message| {
//!             message.joined_text().lines().next().map(str::to_owned)
//!         });
//!         Ok(Summary::new([earlier].into_iter().chain(lines).collect::<Vec<_>>().join("\n")))
//!     }
//! }
//! ```

mod asker;
mod cache;
mod model;
mod text;

use std::sync::Arc;

use harness_core::message::Message;
use harness_core::outcome::TotalUsage;
use harness_core::port::ViewCx;
use harness_core::{Fault, FaultSource, Json};

pub use asker::SummaryModel;
pub(crate) use cache::SummaryCache;
pub use model::ModelSummarizer;
pub(crate) use text::cut;

/// Code of a failed summary.
pub const COMPACT_FAILED: &str = "compact_failed";

/// Input of a summarizer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SummaryAsk {
    /// The messages that no summary covers yet, in order; whole groups.
    pub messages: Vec<Arc<Message>>,
    /// The summary of what came before them; the new one replaces it.
    pub previous: Option<Summary>,
    /// How many messages the new summary stands for, with those of the previous one.
    pub covers: usize,
    /// How long it may be, in tokens.
    pub max_tokens: u64,
    /// Wishes of the caller about the content.
    pub instructions: Option<String>,
    /// Context of the conversation; its cancellation and deadline apply to the summary.
    pub cx: ViewCx,
}

impl SummaryAsk {
    /// A question about messages that were never summarized.
    pub fn new(messages: Vec<Arc<Message>>, max_tokens: u64, cx: ViewCx) -> Self {
        let covers = messages.len();
        Self { messages, previous: None, covers, max_tokens, instructions: None, cx }
    }

    /// Sets the summary of the `covered` messages before these.
    #[must_use]
    pub fn after(self, previous: Summary, covered: usize) -> Self {
        Self { covers: self.messages.len() + covered, previous: Some(previous), ..self }
    }
}

/// A text that stands for messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Text for the model.
    pub text: String,
    /// Structure of the summary, if the summarizer has one; it is kept with the plan and returned as
    /// part of [`SummaryAsk::previous`].
    pub data: Option<Json>,
    /// Usage in addition to calls through the ledger of [`SummaryAsk::cx`].
    pub usage: TotalUsage,
}

impl Summary {
    /// A summary that used nothing.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Adds structured data.
    #[must_use]
    pub fn with_data(self, data: Json) -> Self {
        Self { data: Some(data), ..self }
    }
}

/// Failure of a summary. Its attempts are charged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault}")]
#[non_exhaustive]
pub struct SummaryFault {
    /// Reason of the failure.
    pub fault: Fault,
    /// Usage of the attempts in addition to calls through the ledger.
    pub usage: TotalUsage,
}

impl SummaryFault {
    /// Failure with code `compact_failed` without usage.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            fault: Fault::new(FaultSource::Compactor, COMPACT_FAILED, message),
            usage: TotalUsage::default(),
        }
    }
}

/// Writes summaries.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a summarizer",
    note = "implement `Summarizer` with an `async fn summarize`, or use `ModelSummarizer`"
)]
pub trait Summarizer: Send + Sync {
    /// A text that stands for everything that is asked about.
    ///
    /// Dropping the future cancels it; so does the token in the context.
    ///
    /// # Errors
    /// When there is none, or it is empty. Nothing is taken out of any view then.
    fn summarize(&self, ask: SummaryAsk) -> impl Future<Output = Result<Summary, SummaryFault>> + Send;
}

harness_core::twin! {
    DynSummarizer of Summarizer {
        async fn summarize_boxed = summarize(ask: SummaryAsk) -> Result<Summary, SummaryFault>;
    }
}

/// Waits for a summary until the context is cancelled; an empty one is an error.
pub(crate) async fn summarize(
    summarizer: &dyn DynSummarizer,
    ask: SummaryAsk,
) -> Result<Summary, SummaryFault> {
    let cancel = ask.cx.cancel.clone();
    let cancelled = std::pin::pin!(cancel.cancelled());
    let summary = match futures_util::future::select(summarizer.summarize_boxed(ask), cancelled).await {
        futures_util::future::Either::Left((summary, _)) => summary?,
        futures_util::future::Either::Right(_) => {
            return Err(SummaryFault::new("the summary was cancelled before it was complete"));
        }
    };
    if summary.text.trim().is_empty() {
        return Err(SummaryFault { usage: summary.usage, ..SummaryFault::new("the summary is empty") });
    }
    Ok(summary)
}

/// Three failures in a row make the next requests go without a summary, so that a broken summarizer does
/// not cost a call for each of them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Breaker {
    failures: u32,
    skip: u32,
}

impl Breaker {
    /// Failures in a row that open it.
    const FAILURES: u32 = 3;
    /// Requests that it stays open for.
    const REQUESTS: u32 = 5;

    /// Whether a summary may be asked for; counts a request that it may not.
    pub(crate) fn lets_through(&mut self) -> bool {
        let closed = self.skip == 0;
        self.skip = self.skip.saturating_sub(1);
        closed
    }

    pub(crate) fn note(&mut self, worked: bool) {
        self.failures = if worked { 0 } else { self.failures + 1 };
        if self.failures >= Self::FAILURES {
            *self = Self { failures: 0, skip: Self::REQUESTS };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_failures_in_a_row_cost_five_requests() {
        let mut breaker = Breaker::default();
        let mut tries = String::new();
        for _ in 0..12 {
            let through = breaker.lets_through();
            tries.push(if through { 'x' } else { '-' });
            if through {
                breaker.note(false);
            }
        }
        assert_eq!(tries, "xxx-----xxx-");
        let mut breaker = Breaker::default();
        for worked in [false, false, true, false, false] {
            breaker.note(worked);
        }
        assert!(breaker.lets_through());
    }
}
