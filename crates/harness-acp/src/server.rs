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

/// How long what is still to be told may take to be written when the client has stopped sending.
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
    /// Updates that may wait to be written. A client that reads too slowly is told late, from the transcript,
    /// what it missed. Default 1,024.
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

    /// The same under another name and version, which editors show.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>, version: impl Into<String>) -> Self {
        (self.name, self.version) = (name.into(), version.into());
        self
    }

    /// The same with other bounds.
    #[must_use]
    pub fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    /// The same server, which ends when this fires, as if the client were gone.
    #[must_use]
    pub fn stop_with(mut self, stop: Cancel) -> Self {
        self.stop = stop;
        self
    }

    /// Serves one client until it is gone: until `from` ends. Then what is going on is aborted, and all sessions
    /// are closed.
    ///
    /// Nothing but the protocol is written to `to`. A line that is no message is answered with an error, and the
    /// connection goes on. To be called in a tokio runtime; dropping the future leaves runs going.
    ///
    /// # Errors
    /// When the client's side cannot be read, or not be written although the client is there.
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

/// Completes when what is still to be told has had its time, after everything is over.
async fn farewell(over: &Cancel) {
    over.cancelled().await;
    tokio::time::sleep(FAREWELL).await;
    tracing::warn!("the client did not read what was told last");
}
