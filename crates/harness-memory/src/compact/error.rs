//! What can go wrong in a compaction.

/// Why a compaction, or a part of it, was not done. What it was to make shorter is as it was.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CompactError {
    /// A span that names no message.
    #[error("a span must name at least one message")]
    EmptySpan,
    /// A summarizer's reply that is no summary.
    #[error("the summary is not a JSON object ({reason}); it begins with {begin:?}")]
    InvalidSummary {
        /// What the parser says.
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
        /// What kind of thing: `the fact`, `the open item`, `the artifact`.
        what: &'static str,
        /// The thing.
        lost: String,
    },
    /// A summary that is no shorter than what it stands for.
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

    /// What to do about it, when there is something to do.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::InvalidSummary { .. } | Self::EmptySummary { .. } | Self::SummaryLost { .. } => {
                Some("use a stronger model for summaries, or name the facts to preserve")
            }
            Self::SummaryTooLarge { .. } => Some("let the summary stand for more messages"),
            Self::EmptySpan => None,
        }
    }
}
