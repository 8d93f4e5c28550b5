//! The transport over a broker.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task::JoinHandle;

use super::api::{Api, BrokerSession};
use super::connection::Connection;
use super::events::Stream;
use super::launch::{Broker, BrokerStart};
use crate::event::RelayEvents;
use crate::fault::RelayFault;
use crate::transport::{RelayMessage, RelayReceipt, RelayTransport, Since, SpawnAgent};

/// How patient a [`BrokerTransport`] is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BrokerConfig {
    /// How long one call may take. Default 35 s: a broker gives its own handlers 30 s.
    pub call_timeout: Duration,
    /// How long a broker that is starting is waited for. Default 15 s.
    pub start_timeout: Duration,
    /// Attempts to get a broken stream of events back before it counts as lost. Default 8.
    pub reconnects: u32,
    /// The wait before the first attempt. Default 250 ms; each further one is twice as long.
    pub first_wait: Duration,
    /// The longest wait before an attempt. Default 5 s.
    pub longest_wait: Duration,
    /// How often the lease of an ephemeral broker is renewed; it ends 120 s after the last time. Default
    /// 30 s.
    pub lease: Duration,
    /// Events of a subscription that wait for their reader; then the broker has to wait. Default 256.
    pub waiting: usize,
}

impl Default for BrokerConfig {
    fn default() -> Self {
        Self {
            call_timeout: Duration::from_secs(35),
            start_timeout: Duration::from_secs(15),
            reconnects: 8,
            first_wait: Duration::from_millis(250),
            longest_wait: Duration::from_secs(5),
            lease: Duration::from_secs(30),
            waiting: 256,
        }
    }
}

/// The relay of an Agent Relay broker that runs beside this process. Speaks with 4.x, 6.x and 9.x.
///
/// Each subscription has a separate WebSocket, which is reopened after a failure. Events arrive once and in
/// order; lost ones are reported as a gap.
pub struct BrokerTransport {
    connection: Connection,
    config: BrokerConfig,
    api: Arc<Api>,
    started: Mutex<Option<Started>>,
    /// The broker that was started here.
    own: Mutex<Option<Broker>>,
}

/// Background work of the transport.
struct Started {
    session: BrokerSession,
    /// Renews the lease of an ephemeral broker.
    lease: Option<JoinHandle<()>>,
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(lease) = &self.lease {
            lease.abort();
        }
    }
}

impl fmt::Debug for BrokerTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BrokerTransport")
            .field("connection", &self.connection)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl BrokerTransport {
    /// Attaches to a running broker, which is left running at the end.
    ///
    /// # Errors
    /// When the broker's key cannot be sent.
    pub fn attach(connection: Connection, config: BrokerConfig) -> Result<Self, RelayFault> {
        let api = Arc::new(Api::new(&connection, config.call_timeout)?);
        let own = Mutex::default();
        Ok(Self { connection, config, api, started: Mutex::default(), own })
    }

    /// Starts a broker, which ends with [`shutdown`](RelayTransport::shutdown), and at once when the transport
    /// is dropped.
    ///
    /// # Errors
    /// When it does not start, with what it printed.
    pub async fn launch(start: &BrokerStart, config: BrokerConfig) -> Result<Self, RelayFault> {
        let (connection, broker) = start.launch().await?;
        let transport = Self::attach(connection, config)?;
        *transport.own.lock() = Some(broker);
        Ok(transport)
    }

    /// Description of the broker; `None` before [`start`](RelayTransport::start).
    pub fn session(&self) -> Option<BrokerSession> {
        self.started.lock().as_ref().map(|started| started.session.clone())
    }

    /// Asks until the broker has started.
    async fn ready(&self) -> Result<BrokerSession, RelayFault> {
        let ready = async {
            loop {
                match self.api.session().await {
                    Err(RelayFault::Refused { status: 503, .. }) => {
                        tokio::time::sleep(self.config.first_wait).await;
                    }
                    answer => return answer,
                }
            }
        };
        tokio::time::timeout(self.config.start_timeout, ready).await.unwrap_or_else(|_| {
            Err(RelayFault::Unreachable {
                address: self.connection.address(),
                call: "GET /api/session",
                reason: "it is still starting".to_owned(),
            })
        })
    }

    fn renewing(&self) -> JoinHandle<()> {
        let (api, every) = (Arc::clone(&self.api), self.config.lease);
        tokio::spawn(async move {
            loop {
                if let Err(fault) = api.renew().await {
                    tracing::warn!(%fault, "the broker's lease was not renewed");
                }
                tokio::time::sleep(every).await;
            }
        })
    }
}

impl RelayTransport for BrokerTransport {
    async fn start(&self) -> Result<(), RelayFault> {
        if self.started.lock().is_some() {
            return Ok(());
        }
        let session = self.ready().await?;
        tracing::debug!(version = session.version, "attached to a broker");
        let mut started = self.started.lock();
        if started.is_none() {
            let lease = session.ephemeral.then(|| self.renewing());
            *started = Some(Started { session, lease });
        }
        Ok(())
    }

    async fn subscribe(&self, since: Since) -> Result<RelayEvents, RelayFault> {
        let goal = match since {
            Since::Now => None,
            // Without it the end of what is stored is found by its silence.
            Since::Seq(told) => self.api.newest(told).await.unwrap_or_default(),
        };
        let (sender, events) = RelayEvents::channel(self.config.waiting);
        let stream =
            Stream { connection: self.connection.clone(), config: self.config.clone(), sender, since, goal };
        let socket = stream.open().await?;
        tokio::spawn(stream.run(socket));
        Ok(events)
    }

    async fn send(&self, message: RelayMessage) -> Result<RelayReceipt, RelayFault> {
        self.api.send(message).await
    }

    async fn agents(&self) -> Result<Vec<String>, RelayFault> {
        self.api.agents().await
    }

    async fn spawn(&self, agent: SpawnAgent) -> Result<(), RelayFault> {
        self.api.spawn(agent).await
    }

    async fn release(&self, name: &str) -> Result<(), RelayFault> {
        self.api.release(name).await
    }

    async fn shutdown(&self) -> Result<(), RelayFault> {
        *self.started.lock() = None;
        let own = self.own.lock().take();
        if let Some(broker) = own {
            broker.end().await;
        }
        Ok(())
    }
}
