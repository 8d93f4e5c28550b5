//! Errors of compactions.

/// Reason why a compaction, or a part of it, was not done. Its subject is unchanged.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CompactError {
    /// A span that names no message.
    #[error("a span must name at least one message")]
    EmptySpan,
    /// The response of a summarizer is not a summary.
    #[error("the summary is not a JSON object ({reason}); it begins with {begin:?}")]
    InvalidSummary {
        /// Message of the parser.
        reason: String,
        /// The first characters of the reply.
        begin: String,
    },
    /// A summary that says nothing.
    #[error("the summary of {messages} messages is empty")]
    EmptySummary {
        /// How many messages it was to stand for.
        messages: usize,
    },
    /// A summary that lost what it had to keep.
    #[error("the summary lost {what} {lost:?}")]
    SummaryLost {
        /// Kind: `the fact`, `the open item`, `the artifact`.
        what: &'static str,
        /// Missing text.
        lost: String,
    },
    /// The summary is not shorter than its subject.
    #[error("the summary has {tokens} tokens, and what it stands for only {replaced}")]
    SummaryTooLarge {
        /// Tokens of the summary.
        tokens: u64,
        /// Tokens of what it stands for.
        replaced: u64,
    },
}

impl CompactError {
    /// The stable code.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::EmptySpan => "compact.empty_span",
            Self::InvalidSummary { .. } => "compact.invalid_summary",
            Self::EmptySummary { .. } => "compact.empty_summary",
            Self::SummaryLost { .. } => "compact.summary_lost",
            Self::SummaryTooLarge { .. } => "compact.summary_too_large",
        }
    }
}
