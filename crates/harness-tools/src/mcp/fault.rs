//! Errors of MCP servers.

use std::time::Duration;

use harness_core::Millis;

/// Error of an MCP server.
///
/// Texts of servers are bounded, and values of `env`, `env_pass`, headers and the query of a URL are removed
/// from them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum McpFault {
    /// Its program could not be started.
    #[error("its program `{program}` could not be started: {problem}")]
    NotStarted {
        /// Name of the program.
        program: String,
        /// Error of the operating system, and what to do.
        problem: String,
    },
    /// Its program ended.
    #[error("its program ended: {how}{}", said(stderr))]
    Ended {
        /// `exit code 1`, `killed by signal 9`.
        how: String,
        /// The beginning and the end of what it printed to stderr.
        stderr: String,
    },
    /// The streams to it could not be opened.
    #[error("the streams to it could not be opened: {problem}")]
    NotOpened {
        /// Error of the host's function.
        problem: String,
    },
    /// The connection ended, and why is not known.
    #[error("the connection to it ended")]
    Closed,
    /// It did not get ready in time.
    #[error("it was not ready within {}{}", Millis::from(*within), said(stderr))]
    NotReady {
        /// How long was waited.
        within: Duration,
        /// The beginning and the end of what its program printed to stderr.
        stderr: String,
    },
    /// It sent a message that is longer than [`MAX_MESSAGE`](super::MAX_MESSAGE).
    #[error("it sent a message of more than {limit} bytes, and the connection was ended")]
    MessageTooLong {
        /// The most that is read.
        limit: usize,
    },
    /// It answered a request of the protocol with an error.
    #[error("it answered `{request}` with error {code}: {message}")]
    Refused {
        /// The request's method.
        request: &'static str,
        /// The code of JSON-RPC.
        code: i32,
        /// Message of the server.
        message: String,
    },
    /// The HTTP request failed.
    #[error("the request to {url} failed: {problem}")]
    Http {
        /// Where it was sent, without user, password and query.
        url: String,
        /// Description of the problem.
        problem: String,
    },
    /// It does not follow the protocol.
    #[error("it does not follow the protocol: {problem}")]
    Protocol {
        /// Description of the problem.
        problem: String,
    },
    /// A setting cannot be used.
    #[error("{problem}")]
    Setting {
        /// Which, and why.
        problem: String,
    },
    /// It was closed by the host.
    #[error("it was closed")]
    Shut,
}

impl McpFault {
    /// A stable code.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NotStarted { .. } => "tools.mcp_not_started",
            Self::Ended { .. } => "tools.mcp_ended",
            Self::NotOpened { .. } => "tools.mcp_not_opened",
            Self::Closed => "tools.mcp_closed",
            Self::NotReady { .. } => "tools.mcp_not_ready",
            Self::MessageTooLong { .. } => "tools.mcp_message_too_long",
            Self::Refused { .. } => "tools.mcp_refused",
            Self::Http { .. } => "tools.mcp_http",
            Self::Protocol { .. } => "tools.mcp_protocol",
            Self::Setting { .. } => "tools.mcp_setting",
            Self::Shut => "tools.mcp_shut",
        }
    }

    /// Suggested fix.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Ended { .. } => Some("run the command in a shell to see why it ends"),
            Self::NotReady { .. } => {
                Some("check that the command is an MCP server over stdio, or raise `connect_timeout`")
            }
            Self::MessageTooLong { .. } => Some("ask for less at once"),
            Self::Http { .. } => Some("check `url`, the headers, and that the server is up"),
            Self::Refused { .. } | Self::Protocol { .. } => {
                Some("check that it is an MCP server, and of which version")
            }
            // What to do stands in the text already.
            Self::NotStarted { .. }
            | Self::NotOpened { .. }
            | Self::Closed
            | Self::Setting { .. }
            | Self::Shut => None,
        }
    }
}

fn said(stderr: &str) -> String {
    if stderr.is_empty() { String::new() } else { format!("; its stderr says \"{stderr}\"") }
}
