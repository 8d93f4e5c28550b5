//! What can go wrong.

use std::io;

/// Why serving ended before the client was gone. That the client has gone, or that a request of it was refused,
/// is no error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcpError {
    /// The client's side cannot be read.
    #[error("the client's messages cannot be read: {source}")]
    Read {
        /// Why.
        source: io::Error,
    },
    /// The client's side cannot be written, and it is not simply gone.
    #[error("messages to the client cannot be written: {source}")]
    Write {
        /// Why.
        source: io::Error,
    },
    /// The connection broke for a reason of its own.
    #[error("the connection to the client broke: {message}")]
    Connection {
        /// What the protocol's library says.
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

/// Why a host opens no thread. The client is told, and the connection goes on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct HostFault {
    /// Why, in words for the person in front of the editor.
    pub message: String,
    /// What to do about it.
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

    /// The same fault with what to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
