//! What can go wrong with a channel.

use std::sync::Arc;

use harness_core::Millis;

use super::Mode;

/// What can go wrong with a channel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChannelError {
    /// Nothing came, or no place became free, in time.
    #[error("channel `{channel}`: nothing happened within {timeout}")]
    Timeout {
        /// The channel.
        channel: Arc<str>,
        /// The time.
        timeout: Millis,
    },
    /// The execution is over.
    #[error("channel `{channel}` is closed: its execution is over")]
    Closed {
        /// The channel.
        channel: Arc<str>,
    },
    /// The work that waited is not wanted any more.
    #[error("waiting for a channel was cancelled: {reason}")]
    Cancelled {
        /// Why.
        reason: Arc<str>,
    },
    /// The value does not fit the channel.
    #[error("channel `{channel}` does not take this value: {problem}")]
    Schema {
        /// The channel.
        channel: Arc<str>,
        /// What is wrong with it.
        problem: String,
    },
    /// Two declarations of one channel differ.
    #[error("channel `{channel}` is declared as {asked}, and is a {declared} already")]
    Mismatch {
        /// The channel.
        channel: Arc<str>,
        /// What it is.
        declared: Mode,
        /// What it was asked for as.
        asked: Mode,
    },
    /// The channel is not meant for the outside.
    #[error("channel `{channel}` cannot be reached from outside: declare it with `external()`")]
    NotExternal {
        /// The channel.
        channel: Arc<str>,
    },
    /// An execution names more channels than it may.
    #[error("channel `{channel}` is one too many: an execution has at most {most}")]
    TooMany {
        /// The channel.
        channel: Arc<str>,
        /// The bound.
        most: usize,
    },
}

impl ChannelError {
    /// A stable code.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Timeout { .. } => "channel_timeout",
            Self::Closed { .. } => "channel_closed",
            Self::Cancelled { .. } => "cancelled",
            Self::Schema { .. } => "channel_schema",
            Self::Mismatch { .. } => "channel_mismatch",
            Self::NotExternal { .. } => "channel_not_external",
            Self::TooMany { .. } => "channel_too_many",
        }
    }
}
