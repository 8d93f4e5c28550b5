//! Errors of channels.

use std::sync::Arc;

use harness_core::Millis;

use super::Mode;

/// Error of a channel operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, strum::IntoStaticStr)]
#[strum(prefix = "channel_", serialize_all = "snake_case")]
#[non_exhaustive]
pub enum ChannelError {
    /// A wait exceeded its timeout.
    #[error("channel `{channel}`: timeout of {timeout} exceeded")]
    Timeout {
        /// Name of the channel.
        channel: Arc<str>,
        /// Timeout of the wait.
        timeout: Millis,
    },
    /// The execution has ended.
    #[error("channel `{channel}` is closed: its execution has ended")]
    Closed {
        /// Name of the channel.
        channel: Arc<str>,
    },
    /// The waiting step was cancelled.
    #[error("waiting for a channel was cancelled: {reason}")]
    Cancelled {
        /// Reason of the cancellation.
        reason: Arc<str>,
    },
    /// The value does not fit the channel.
    #[error("channel `{channel}`: invalid value: {problem}")]
    Schema {
        /// Name of the channel.
        channel: Arc<str>,
        /// Problem found in the value.
        problem: String,
    },
    /// Two declarations of a channel differ.
    #[error("channel `{channel}` is declared as {asked}, but it is a {declared}")]
    Mismatch {
        /// Name of the channel.
        channel: Arc<str>,
        /// Mode of the channel.
        declared: Mode,
        /// Mode in the second declaration.
        asked: Mode,
    },
    /// The channel is not external.
    #[error("channel `{channel}` cannot be reached from outside: declare it with `external()`")]
    NotExternal {
        /// Name of the channel.
        channel: Arc<str>,
    },
    /// An execution has too many channels.
    #[error("channel `{channel}` exceeds the limit of {most} channels per execution")]
    TooMany {
        /// Name of the channel.
        channel: Arc<str>,
        /// Maximum number of channels.
        most: usize,
    },
}

impl ChannelError {
    /// Stable code.
    pub fn kind(&self) -> &'static str {
        if let Self::Cancelled { .. } = self { "cancelled" } else { self.into() }
    }
}
