//! A worker: serves the durable services to an engine.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use harness::core::port::{Clock, Ids as _};
use harness::core::{Cancel, Millis, Origin, Redactor};
use harness::system::{SystemClock, SystemIds};
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::graceful::GracefulShutdown;
use restate_sdk::endpoint::Endpoint;
use restate_sdk::hyper::HyperEndpoint;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::effects::Effects;
use super::engine::Engine;
use super::log::Log;
use super::quota::Quota;
use super::relay::{Outbox, Relays};
use super::run::Run;
use super::service::define;
use super::spend::Spend;
use super::step::Step;
use super::storage::Storage;
use super::store::EngineStore;
use super::thread::Thread;
use super::{log, quota, run, spend, step, storage, thread};
use crate::durable::{AgentHost, DriveOptions, Reader, ThreadStore};

/// Streams of one connection. A run in flight has one while it waits for its steps, which need others: few streams could
/// be taken by runs alone.
const STREAMS: u32 = 1 << 16;

/// Settings of a worker. Equal on all workers of a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerOptions {
    /// Settings of runs.
    pub drive: DriveOptions,
    /// Slow operations (models, tools) at work in this process, at most; others wait. Default 256.
    pub max_steps: usize,
    /// The longest deadline of an operation. The engine suspends a step that takes a minute longer. Default 1 hour.
    pub longest_step: Millis,
    /// Bytes of the records of threads that this process remembers, so that steps read only what is new. Default 64 MiB.
    pub remembers: usize,
    /// How long a worker that stops waits for requests at hand. The engine continues the rest elsewhere. Default 30 s.
    pub drain: Millis,
}

impl Default for WorkerOptions {
    fn default() -> Self {
        Self {
            drive: DriveOptions::default(),
            max_steps: 256,
            longest_step: Millis(3_600_000),
            remembers: Reader::<EngineStore>::BYTES,
            drain: Millis(30_000),
        }
    }
}

/// Reason why a worker cannot serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// A key is not the public key of an engine.
    #[error("invalid identity key `{key}`: {why}")]
    IdentityKey {
        /// Key as it was given.
        key: String,
        /// Problem with it.
        why: String,
    },
    /// Any client could call the worker.
    #[error(
        "{0} is not a loopback address, so the worker needs the engine's identity key; or permit calls by anybody"
    )]
    Open(SocketAddr),
    /// The listener failed.
    #[error("the worker cannot accept connections: {0}")]
    Listener(#[from] io::Error),
    /// The SDK does not accept a definition of this crate.
    #[error("invalid definition of a service: {0}")]
    Definition(String),
}

impl WorkerError {
    /// A stable code, for example `worker.identity_key`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::IdentityKey { .. } => "worker.identity_key",
            Self::Open(_) => "worker.open",
            Self::Listener(_) => "worker.listener",
            Self::Definition(_) => "worker.definition",
        }
    }

    pub(super) fn definition(error: impl fmt::Display) -> Self {
        Self::Definition(error.to_string())
    }
}

/// Makes a [`Worker`].
pub struct WorkerBuilder<H, S> {
    host: Arc<H>,
    store: S,
    clock: Arc<dyn Clock>,
    options: WorkerOptions,
    origin: Origin,
    redactor: Option<Redactor>,
    keys: Vec<String>,
    relays: Option<Relays>,
    is_open: bool,
}

impl<H, S> fmt::Debug for WorkerBuilder<H, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerBuilder").field("options", &self.options).finish_non_exhaustive()
    }
}

impl<H: AgentHost + 'static, S: ThreadStore + Clone + 'static> WorkerBuilder<H, S> {
    /// Reads logs from another place than the engine.
    pub fn store<T: ThreadStore + Clone + 'static>(self, store: T) -> WorkerBuilder<H, T> {
        let Self { host, clock, options, origin, redactor, keys, relays, is_open, .. } = self;
        WorkerBuilder { host, store, clock, options, origin, redactor, keys, relays, is_open }
    }

    /// Sets the settings.
    pub fn options(mut self, options: WorkerOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets descriptor, user and workspace of threads whose first message this worker receives. Default: none.
    pub fn origin(mut self, origin: Origin) -> Self {
        self.origin = origin;
        self
    }

    /// Removes secrets from requests of clients before the thread keeps them. Default: none.
    pub fn redactor(mut self, redactor: Redactor) -> Self {
        self.redactor = Some(redactor);
        self
    }

    /// Sets the public keys of engines that may call (`publickeyv1_…`). Default: none, for loopback addresses alone.
    pub fn identity_keys(mut self, keys: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.keys = keys.into_iter().map(Into::into).collect();
        self
    }

    /// Sends deltas of answers, and notices that threads changed, to front ends. Best effort: a front end that fails delays
    /// nothing. Default: none.
    #[must_use]
    pub fn relays(mut self, relays: Relays) -> Self {
        self.relays = Some(relays);
        self
    }

    /// Permits calls by every client that reaches the worker, on any address. For private networks.
    pub fn insecure(mut self) -> Self {
        self.is_open = true;
        self
    }

    /// Makes the worker.
    ///
    /// # Errors
    /// [`WorkerError::IdentityKey`].
    pub fn build(self) -> Result<Worker, WorkerError> {
        let Self { host, store, clock, options, origin, redactor, keys, relays, is_open } = self;
        let outbox = relays.is_some().then(Arc::<Outbox>::default);
        let reader = Reader::remembering(store, options.remembers);
        let steps = Step {
            host: Arc::clone(&host),
            reader: reader.clone(),
            effects: Effects::new(options.max_steps),
            process: SystemIds::new().run_id().as_str().into(),
            attempts: AtomicU64::new(0),
            outbox: outbox.clone(),
        };
        let (clock_of_runs, options_of_runs) = (Arc::clone(&clock), options.drive);
        let runs =
            Run { host, reader, clock: clock_of_runs, options: options_of_runs, outbox: outbox.clone() };
        let mut endpoint = Endpoint::builder()
            .bind(define(&thread::spec(), Thread { clock: Arc::clone(&clock), origin, redactor })?)
            .bind(define(&run::spec(), runs)?)
            .bind(define(&step::spec(options.longest_step.duration()), steps)?)
            .bind(define(&log::spec(), Log)?)
            .bind(define(&storage::spec(), Storage)?)
            .bind(define(&spend::spec(), Spend { clock: Arc::clone(&clock) })?)
            .bind(define(&quota::spec(), Quota { clock: Arc::clone(&clock) })?);
        for key in &keys {
            let invalid = |why: String| WorkerError::IdentityKey { key: key.clone(), why };
            endpoint = endpoint.identity_key(key).map_err(|error| invalid(error.to_string()))?;
        }
        let is_open = is_open || !keys.is_empty();
        let relays = relays.zip(outbox);
        Ok(Worker { endpoint: endpoint.build(), drain: options.drain.duration(), relays, is_open })
    }
}

/// Serves the durable services to an engine, which calls it over HTTP/2.
///
/// Workers have no state: any of them can continue any run, and each may be killed at any moment.
///
/// ```no_run
/// use harness::core::Cancel;
/// use harness_restate::durable::AgentHost;
/// use harness_restate::engine::restate::{Engine, Worker};
///
/// # async fn example(host: impl AgentHost + 'static) -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::new("http://127.0.0.1:8080")?.admin("http://127.0.0.1:9070")?;
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:9080").await?;
/// let worker = Worker::builder(host, engine.clone()).build()?;
/// let serving = tokio::spawn(worker.serve(listener, Cancel::never()));
/// engine.register("http://127.0.0.1:9080").await?;
/// serving.await??;
/// # Ok(())
/// # }
/// ```
pub struct Worker {
    endpoint: Endpoint,
    drain: Duration,
    relays: Option<(Relays, Arc<Outbox>)>,
    is_open: bool,
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("drain", &self.drain).finish_non_exhaustive()
    }
}

impl Worker {
    /// Begins a worker with these agents, which reads the logs of threads from the engine.
    pub fn builder<H: AgentHost + 'static>(host: H, engine: Engine) -> WorkerBuilder<H, EngineStore> {
        WorkerBuilder {
            host: Arc::new(host),
            store: EngineStore::new(engine),
            clock: Arc::new(SystemClock::new()),
            options: WorkerOptions::default(),
            origin: Origin::default(),
            redactor: None,
            keys: Vec::new(),
            relays: None,
            is_open: false,
        }
    }

    /// Serves until `cancel` fires and the requests at hand are done, or the time for them is over.
    ///
    /// # Errors
    /// When the address is open to others ([`WorkerError::Open`]), or the listener fails.
    ///
    /// # Cancel safety
    /// Dropping the future cuts all connections; the engine continues elsewhere.
    pub async fn serve(self, listener: TcpListener, cancel: Cancel) -> Result<(), WorkerError> {
        let address = listener.local_addr()?;
        if !self.is_open && !address.ip().is_loopback() {
            return Err(WorkerError::Open(address));
        }
        let mut sending = JoinSet::new();
        if let Some((relays, outbox)) = self.relays {
            sending.spawn(relays.send(outbox));
        }
        let (endpoint, graceful) = (HyperEndpoint::new(self.endpoint), GracefulShutdown::new());
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                () = cancel.cancelled() => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => drop(connections.spawn(connection(stream, &endpoint, &graceful))),
                    // One client's failure, or too many open files: others may succeed.
                    Err(error) => {
                        tracing::warn!(%error, "a connection of the engine was not accepted");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                },
            }
        }
        drop(tokio::time::timeout(self.drain, graceful.shutdown()).await);
        Ok(())
    }
}

/// Serves one connection. Small messages are sent at once.
fn connection(
    stream: TcpStream,
    endpoint: &HyperEndpoint,
    graceful: &GracefulShutdown,
) -> impl Future<Output = ()> + Send + use<> {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "messages of a connection may be delayed");
    }
    let mut http = http2::Builder::new(TokioExecutor::new());
    let connection =
        http.max_concurrent_streams(STREAMS).serve_connection(TokioIo::new(stream), endpoint.clone());
    let served = graceful.watch(connection);
    async move {
        if let Err(error) = served.await {
            tracing::debug!(%error, "a connection of the engine broke");
        }
    }
}
