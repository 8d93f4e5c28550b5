//! Errors of serving and of hosts.

use std::io;

/// Reason why serving ended before the client disconnected. A disconnected client and rejected
/// requests are not errors.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcpError {
    /// The client's side cannot be read.
    #[error("the client's messages cannot be read: {source}")]
    Read {
        /// Cause of the error.
        source: io::Error,
    },
    /// The client's side cannot be written, and it is not simply gone.
    #[error("messages to the client cannot be written: {source}")]
    Write {
        /// Cause of the error.
        source: io::Error,
    },
    /// The connection failed.
    #[error("the connection to the client broke: {message}")]
    Connection {
        /// Message of the protocol library.
        message: String,
    },
}

impl AcpError {
    /// A stable code.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Read { .. } => "acp.read",
            Self::Write { .. } => "acp.write",
            Self::Connection { .. } => "acp.connection",
        }
    }
}

/// Reason why a host opens no thread. The client receives it, and the connection continues.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct HostFault {
    /// Human-readable message.
    pub message: String,
    /// Suggested fix.
    pub hint: Option<String>,
    /// Whether the request asks for what is not to be had, rather than that something broke.
    pub refused: bool,
}

impl HostFault {
    /// The request asks for what is not to be had.
    pub fn refused(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, refused: true }
    }

    /// Something broke.
    pub fn failed(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, refused: false }
    }

    /// Sets the hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
