//! The agent's side of a connection.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::Channel;
use futures_channel::mpsc;
use harness::core::Cancel;
use tokio::io::{AsyncBufRead, AsyncWrite};
use tokio::sync::Semaphore;

use crate::error::AcpError;
use crate::host::Host;
use crate::state::State;
use crate::transport;

/// Time for writing the remaining messages after the client has stopped sending.
const FAREWELL: Duration = Duration::from_secs(5);

/// The bounds of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The longest message that is read, in bytes; a longer one is passed over and answered with an error.
    /// Default 32 MiB.
    pub message: usize,
    /// Sessions that may be open at one time; more are refused. Default 256.
    pub sessions: usize,
    /// Maximum queued updates. A client that reads too slowly receives missed content later, from
    /// the transcript. Default: 1,024.
    pub waiting: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { message: 32 * 1024 * 1024, sessions: 256, waiting: 1_024 }
    }
}

/// Serves the threads of a [`Host`] to one client.
pub struct AcpServer<H> {
    pub(crate) host: Arc<H>,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) limits: Limits,
    stop: Cancel,
}

impl<H> fmt::Debug for AcpServer<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcpServer")
            .field("name", &self.name)
            .field("version", &self.version)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl<H: Host> AcpServer<H> {
    /// A server of this host's threads, with the default bounds.
    pub fn new(host: H) -> Self {
        Self {
            host: Arc::new(host),
            name: "harness".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            limits: Limits::default(),
            stop: Cancel::never(),
        }
    }

    /// Sets the name and version that editors show.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>, version: impl Into<String>) -> Self {
        (self.name, self.version) = (name.into(), version.into());
        self
    }

    /// Changes the limits.
    #[must_use]
    pub fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    /// Stops the server when this fires, as if the client had disconnected.
    #[must_use]
    pub fn stop_with(mut self, stop: Cancel) -> Self {
        self.stop = stop;
        self
    }

    /// Serves one client until `from` ends. Then running work is aborted, and all sessions are
    /// closed.
    ///
    /// Only the protocol is written to `to`. An invalid line is answered with an error, and the
    /// connection continues. Requires a tokio runtime; dropping the future leaves runs in progress.
    ///
    /// # Errors
    /// The client cannot be read, or cannot be written to although it is connected.
    pub async fn serve(
        self,
        from: impl AsyncBufRead + Send + Unpin,
        to: impl AsyncWrite + Send + Unpin,
    ) -> Result<(), AcpError> {
        let (heard, incoming) = mpsc::unbounded();
        let (outgoing, said) = mpsc::unbounded();
        let permits = Arc::new(Semaphore::new(self.limits.waiting.max(1)));
        let (unheard, over) = (Cancel::new(), Cancel::new());
        let (most, stop) = (self.limits.message, self.stop.clone());
        let reading = async {
            tokio::select! {
                read = transport::read(from, most, heard) => read,
                () = unheard.cancelled() => Ok(()),
                () = stop.cancelled() => Ok(()),
            }
        };
        let state = State::new(self, Arc::clone(&permits));
        let serving = async {
            let served = state.serve(Channel::new(incoming, outgoing)).await;
            state.close_all().await;
            over.cancel();
            served
        };
        let writing = async {
            let written = tokio::select! {
                written = transport::write(said, to, permits) => written,
                () = farewell(&over) => Ok(()),
            };
            unheard.cancel();
            written
        };
        let (read, served, written) = tokio::join!(reading, serving, writing);
        read.and(written)?;
        served.map_err(|error| AcpError::Connection { message: error.to_string() })
    }
}

/// Completes when the remaining messages have had their time after the end.
async fn farewell(over: &Cancel) {
    over.cancelled().await;
    tokio::time::sleep(FAREWELL).await;
    tracing::warn!("the client did not read the last messages");
}
