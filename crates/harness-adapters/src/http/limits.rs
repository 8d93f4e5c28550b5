//! How much a reply may hold and how long it may take.

use std::time::Duration;

use crate::AdapterError;
use crate::label::MAX_LABEL_BYTES;

/// Bounds on what one reply may hold.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplyLimits {
    /// Bytes of a whole reply. Default 32 MiB.
    pub body: usize,
    /// Bytes of one line of a stream. Default 8 MiB.
    pub line: usize,
    /// Bytes of one event of a stream. Default 8 MiB.
    pub event: usize,
    /// Bytes of an error page that are read; the rest is cut off. Default 64 KiB.
    pub error_body: usize,
    /// Tool calls of one answer. Default 256.
    pub tool_calls: usize,
    /// Reasoning items of one answer. Default 1,024.
    pub reasoning_items: usize,
}

impl Default for ReplyLimits {
    fn default() -> Self {
        Self {
            body: 32 << 20,
            line: 8 << 20,
            event: 8 << 20,
            error_body: 64 << 10,
            tool_calls: 256,
            reasoning_items: 1_024,
        }
    }
}

/// Refuses a call whose id or name is longer than [`MAX_LABEL_BYTES`].
pub(crate) fn bound_call(id: &str, name: &str) -> Result<(), AdapterError> {
    bound(id.len(), MAX_LABEL_BYTES, "id of a tool call", "bytes")?;
    bound(name.len(), MAX_LABEL_BYTES, "name of a called tool", "bytes")
}

/// How long a model waits for a reply, at most.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplyTimeouts {
    /// For the connection. Default 10 seconds.
    pub connect: Duration,
    /// For the next byte, the first one included; a keep-alive comment counts. Default 5 minutes.
    pub idle: Duration,
    /// For the whole answer. Default 10 minutes.
    pub total: Duration,
}

impl Default for ReplyTimeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            idle: Duration::from_mins(5),
            total: Duration::from_mins(10),
        }
    }
}

pub(crate) fn bound(
    size: usize,
    limit: usize,
    what: &'static str,
    unit: &'static str,
) -> Result<(), AdapterError> {
    if size > limit { Err(AdapterError::TooLarge { what, limit, unit }) } else { Ok(()) }
}
