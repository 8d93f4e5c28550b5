//! Export errors.

/// Reason why spans cannot be or were not sent. Contains no header values and no URL query.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OtlpError {
    /// The collector URL is invalid.
    #[error("the collector's address `{url}` cannot be used: {reason}")]
    Endpoint {
        /// The address, without what may be secret.
        url: String,
        /// Reason why it is invalid.
        reason: String,
    },
    /// A list of headers is not `name=value,name=value`.
    #[error("entry {entry} of the collector's headers is not `name=value`")]
    Header {
        /// Which one, from 1. Its text is not shown, since it may be a key.
        entry: usize,
    },
    /// The exporter could not be made.
    #[error("spans cannot be sent to {endpoint}: {reason}")]
    Start {
        /// Where they were to go.
        endpoint: String,
        /// Reason of the failure.
        reason: String,
    },
    /// Spans did not reach the collector.
    #[error("{lost} of {all} spans did not reach the collector at {endpoint}: {reason}")]
    Lost {
        /// Where they were to go.
        endpoint: String,
        /// How many are lost.
        lost: u64,
        /// How many there were.
        all: u64,
        /// Error of the last attempt.
        reason: String,
    },
}

impl OtlpError {
    /// A stable code.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Endpoint { .. } => "otlp.endpoint",
            Self::Header { .. } => "otlp.header",
            Self::Start { .. } => "otlp.start",
            Self::Lost { .. } => "otlp.lost",
        }
    }

    /// Suggested fix.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Endpoint { .. } => "give it as http://HOST:4318",
            Self::Header { .. } => "separate headers by commas, and write `%2C` for a comma in a value",
            Self::Start { .. } => "check the names of the headers",
            Self::Lost { .. } => {
                "check that a collector listens there for OTLP over HTTP, and that it takes the headers"
            }
        }
    }
}
