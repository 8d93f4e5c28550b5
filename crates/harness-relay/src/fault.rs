//! Errors of a relay.

use std::path::PathBuf;

/// Error of a relay, its broker or the connection. Never contains a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RelayFault {
    /// No connection file was found.
    #[error("no running broker was found: there is no {}", shown(looked))]
    NoBroker {
        /// Where it was looked for.
        looked: Vec<PathBuf>,
    },
    /// A connection file cannot be used.
    #[error("the connection file {} {problem}", path.display())]
    ConnectionFile {
        /// Path of the file.
        path: PathBuf,
        /// Problem, without the file's content.
        problem: String,
    },
    /// Others than the owner may read a connection file, and with it the broker's key.
    #[error("the connection file {} has the mode {mode:04o}, so that others can read the broker's key", path.display())]
    Exposed {
        /// Path of the file.
        path: PathBuf,
        /// Mode bits of the file.
        mode: u32,
    },
    /// The process that wrote a connection file is gone.
    #[error("the connection file {} is stale: the broker (process {pid}) is no longer running", path.display())]
    Stale {
        /// Path of the file.
        path: PathBuf,
        /// Process id in the file.
        pid: u32,
    },
    /// There is no program that could be started as a broker.
    #[error("no broker program was found: {}", shown(looked))]
    NoProgram {
        /// Where it was looked for, in this order.
        looked: Vec<PathBuf>,
    },
    /// A broker did not start.
    #[error("the broker {} did not start: {reason}", program.display())]
    NotStarted {
        /// Path of the program.
        program: PathBuf,
        /// Reason, with the end of its output.
        reason: String,
    },
    /// The broker did not answer.
    #[error("the broker at {address} cannot be reached for {call}: {reason}")]
    Unreachable {
        /// Host and port.
        address: String,
        /// Name of the call.
        call: &'static str,
        /// Reason of the failure.
        reason: String,
    },
    /// The broker answered with a refusal.
    #[error("the broker refused {call} with status {status}: {message}")]
    Refused {
        /// Name of the call.
        call: &'static str,
        /// The HTTP status.
        status: u16,
        /// Its own words, bounded.
        message: String,
    },
    /// The broker's answer cannot be understood.
    #[error("the broker's answer to {call} cannot be read: {problem}")]
    Answer {
        /// Name of the call.
        call: &'static str,
        /// Problem of the response.
        problem: String,
    },
    /// An agent was not started. The text is the relay's own where it gave one.
    #[error("{}", reason.clone().unwrap_or_else(|| format!("Failed to spawn Agent Relay worker \"{name}\".")))]
    NotSpawned {
        /// Name of the agent.
        name: String,
        /// The relay's reason, if it gave one.
        reason: Option<String>,
    },
    /// A worker is to be started without a name.
    #[error("Agent Relay worker auto-spawn requires workerName or spawnWorker.name.")]
    NoWorkerName,
    /// The transport cannot start agents.
    #[error("Configured Agent Relay transport does not support worker spawning.")]
    NoSpawning,
    /// A bridge could not make its worker known.
    #[error("Failed to register worker '{name}' with broker: {reason}")]
    NotRegistered {
        /// Name of the worker.
        name: String,
        /// The relay's reason.
        reason: String,
    },
    /// The stream of events ended and could not be resumed.
    #[error("the relay's events ended: {reason}")]
    Closed {
        /// Reason of the last attempt.
        reason: String,
    },
    /// Anything else, in the words of the transport.
    #[error("{message}")]
    Failed {
        /// Message of the transport.
        message: String,
    },
}

impl RelayFault {
    /// An error of a transport.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed { message: message.into() }
    }

    /// Stable code of the kind of error.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NoBroker { .. } => "relay.no_broker",
            Self::ConnectionFile { .. } => "relay.connection_file",
            Self::Exposed { .. } => "relay.exposed",
            Self::Stale { .. } => "relay.stale",
            Self::NoProgram { .. } => "relay.no_program",
            Self::NotStarted { .. } => "relay.not_started",
            Self::Unreachable { .. } => "relay.unreachable",
            Self::Refused { .. } => "relay.refused",
            Self::Answer { .. } => "relay.answer",
            Self::NotSpawned { .. } => "relay.not_spawned",
            Self::NoWorkerName => "relay.no_worker_name",
            Self::NoSpawning => "relay.no_spawning",
            Self::NotRegistered { .. } => "relay.not_registered",
            Self::Closed { .. } => "relay.closed",
            Self::Failed { .. } => "relay.failed",
        }
    }

    /// Suggested fix, if there is one.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoBroker { .. } => Some("start one in this directory: agent-relay-broker init --persist"),
            Self::ConnectionFile { .. } => Some("start the broker again; it writes the file anew"),
            Self::Exposed { .. } => Some("make it readable by its owner alone: chmod 600"),
            Self::Stale { .. } => Some("remove the file, or start the broker again"),
            Self::NoProgram { .. } => Some(
                "install @agent-relay/broker-linux-x64 (or that of your platform), or set BROKER_BINARY_PATH",
            ),
            Self::NotStarted { .. } => {
                Some("a broker needs its hosted service at start; RELAYCAST_BASE_URL names a different one")
            }
            Self::Unreachable { .. } | Self::Closed { .. } => Some("check that the broker is still running"),
            Self::Refused { status: 401 | 403, .. } => {
                Some("the key in the connection file is no longer valid: start the broker again")
            }
            Self::NotRegistered { .. } | Self::NotSpawned { .. } => {
                Some("choose another name, or release the agent that has it")
            }
            Self::NoWorkerName => Some("give the worker a name"),
            Self::Refused { .. } | Self::Answer { .. } | Self::NoSpawning | Self::Failed { .. } => None,
        }
    }

    /// Whether the same call may well work later.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Refused { status: 429 | 500..=599, .. })
    }
}

fn shown(paths: &[PathBuf]) -> String {
    let paths: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
    paths.join(", ")
}
