//! A database server, and the one connection of this process to a database.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;
use std::future::Future;
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, OnceLock, Weak, mpsc};
use std::time::Duration;

use parking_lot::Mutex;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Runtime;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::error::{Severity, SqlState};
use tokio_postgres::{Client, Config, Connection, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::schema::{self, Unusable};
use crate::error::{Action, Disturbance, Error, Store};
use crate::jsonl::Owner;

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(10);

/// How long a statement may take; the server ends it then.
const STATEMENT: Duration = Duration::from_secs(30);

/// How long an answer is waited for, the connection included.
const LONGEST: Duration = Duration::from_mins(1);

/// The databases that this process has open: all their sessions share one connection.
static OPEN: Mutex<BTreeMap<String, Weak<Inner>>> = Mutex::new(BTreeMap::new());

/// A database. Clones, and all values of one URL in a process, share one connection.
#[derive(Clone)]
pub(super) struct Server(Arc<Inner>);

struct Inner {
    url: String,
    config: Config,
    link: tokio::sync::Mutex<Option<Link>>,
    /// The threads that this process owns: to the server all of them are one owner's.
    owned: Mutex<BTreeSet<String>>,
}

/// A connection. The server frees what it holds when it breaks.
#[derive(Clone, Debug)]
pub(super) struct Link(pub(super) Arc<Client>);

/// Reason why work on a database failed.
pub(super) enum Failure {
    Refused(tokio_postgres::Error),
    Newer(i64),
    Disturbed,
    Late,
    Tls(String),
    Held(Option<Owner>),
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Refused(error)
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("url", &self.0.url).finish_non_exhaustive()
    }
}

impl Server {
    /// The database of a URL. Nothing is connected before the first use.
    pub(super) fn of(url: &str) -> Result<Self, Error> {
        let mut open = OPEN.lock();
        open.retain(|_, known| known.strong_count() > 0);
        if let Some(known) = open.get(url).and_then(Weak::upgrade) {
            return Ok(Self(known));
        }
        let (link, owned) = (tokio::sync::Mutex::default(), Mutex::default());
        let inner = Arc::new(Inner { url: url.to_owned(), config: config(url)?, link, owned });
        open.insert(url.to_owned(), Arc::downgrade(&inner));
        Ok(Self(inner))
    }

    /// Notes that this process owns a thread; false if it does already.
    pub(super) fn own(&self, name: &str) -> bool {
        self.0.owned.lock().insert(name.to_owned())
    }

    /// Notes that this process no longer owns a thread.
    pub(super) fn disown(&self, name: &str) {
        self.0.owned.lock().remove(name);
    }

    /// Runs `work` with the connection, which is made if there is none. Blocks the caller; never the runtime of the
    /// connection.
    pub(super) fn with<T, F>(
        &self,
        place: (Store, Action, &Path),
        work: impl FnOnce(Link) -> F + Send + 'static,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Failure>> + Send,
    {
        let inner = Arc::clone(&self.0);
        self.wait(place, async move { work(inner.link().await?).await })
    }

    /// As [`Self::with`], for work that may be done twice: if the connection breaks meanwhile, it is done once more over
    /// a new one.
    pub(super) fn with_retry<P, T, F>(
        &self,
        place: (Store, Action, &Path),
        parameters: P,
        work: impl Fn(Link, P) -> F + Send + Sync + 'static,
    ) -> Result<T, Error>
    where
        P: Clone + Send + Sync + 'static,
        T: Send + 'static,
        F: Future<Output = Result<T, Failure>> + Send,
    {
        let inner = Arc::clone(&self.0);
        self.wait(place, async move {
            let link = inner.link().await?;
            match work(link.clone(), parameters.clone()).await {
                Err(Failure::Refused(error)) if has_ended(&error) => {
                    inner.forget(&link).await;
                    work(inner.link().await?, parameters).await
                }
                done => done,
            }
        })
    }

    /// Waits for work in the runtime of the connection.
    fn wait<T: Send + 'static>(
        &self,
        (store, action, path): (Store, Action, &Path),
        work: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<T, Error> {
        let failed = |source| Error::Io { store, action, path: path.into(), source };
        let (give, take) = mpsc::sync_channel(1);
        let inner = Arc::clone(&self.0);
        runtime().map_err(failed)?.spawn(async move {
            let done = tokio::time::timeout(LONGEST, work).await.unwrap_or(Err(Failure::Late));
            if let Err(Failure::Late) = done {
                *inner.link.lock().await = None;
            }
            // Nobody waits any more if the caller's thread has panicked.
            drop(give.send(done));
        });
        let done = take.recv().map_err(|_| failed(io::Error::other("the work on the database panicked")))?;
        done.map_err(|failure| error(failure, store, action, path))
    }
}

impl Inner {
    async fn link(&self) -> Result<Link, Failure> {
        let mut link = self.link.lock().await;
        if let Some(link) = link.as_ref().filter(|link| !link.0.is_closed()) {
            return Ok(link.clone());
        }
        let mut client = self.connect().await?;
        schema::prepare(&mut client).await.map_err(|unusable| match unusable {
            Unusable::Refused(error) => Failure::Refused(error),
            Unusable::Newer(found) => Failure::Newer(found),
        })?;
        Ok(link.insert(Link(Arc::new(client))).clone())
    }

    /// Lets the next use make a new connection, unless that has happened.
    async fn forget(&self, broken: &Link) {
        let mut link = self.link.lock().await;
        if link.as_ref().is_some_and(|link| link.is(broken)) {
            *link = None;
        }
    }

    async fn connect(&self) -> Result<Client, Failure> {
        let client = if self.config.get_ssl_mode() == SslMode::Disable {
            let (client, connection) = self.config.connect(NoTls).await?;
            self.keep(connection);
            client
        } else {
            let (client, connection) = self.config.connect(tls()?).await?;
            self.keep(connection);
            client
        };
        // A server that lost a client without a word frees what it held within about half a minute.
        let settings = format!(
            "SET statement_timeout = {}; SET idle_in_transaction_session_timeout = {}; SET lock_timeout = {}; \
             SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3",
            STATEMENT.as_millis(),
            STATEMENT.as_millis(),
            STATEMENT.as_millis(),
        );
        client.batch_execute(&settings).await?;
        Ok(client)
    }

    /// Lets a connection work until it ends.
    fn keep<S, T>(&self, connection: Connection<S, T>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let url = self.url.clone();
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::warn!(%url, error = %text(&error), "the connection to the database broke");
            }
        });
    }
}

impl Link {
    /// Whether both are one connection.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}

/// The settings in a URL, with the password from the environment.
fn config(url: &str) -> Result<Config, Error> {
    let bad = |reason: String| Error::PostgresUrl { reason };
    let mut config: Config = url.parse().map_err(|error: tokio_postgres::Error| bad(text(&error)))?;
    if config.get_password().is_some() {
        return Err(bad("it has a password, which messages would show; set PGPASSWORD instead".to_owned()));
    }
    if config.get_hosts().is_empty() {
        return Err(bad("it names no host".to_owned()));
    }
    if let Some(password) = password() {
        config.password(password.as_encoded_bytes());
    }
    let is_local = config.get_hosts().iter().all(|host| match host {
        Host::Tcp(name) => name == "localhost" || name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback()),
        Host::Unix(_) => true,
    });
    if config.get_ssl_mode() == SslMode::Prefer {
        config.ssl_mode(if is_local { SslMode::Disable } else { SslMode::Require });
    }
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    config.application_name(format!("harness {}@{host}", std::process::id()));
    config.connect_timeout(CONNECT).tcp_user_timeout(STATEMENT);
    Ok(config)
}

/// The password, as all clients of PostgreSQL take it.
#[expect(
    clippy::disallowed_methods,
    reason = "a URL is all that a session is opened with, and holds no password"
)]
fn password() -> Option<OsString> {
    std::env::var_os("PGPASSWORD")
}

/// TLS with the certificates that the system trusts.
fn tls() -> Result<MakeRustlsConnect, Failure> {
    let found = rustls_native_certs::load_native_certs();
    for error in found.errors {
        tracing::debug!(%error, "certificates of the system cannot be read");
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| Failure::Tls(error.to_string()))?;
    Ok(MakeRustlsConnect::new(config.with_root_certificates(roots).with_no_client_auth()))
}

/// The runtime of all connections: callers may be in another runtime, or in none.
fn runtime() -> io::Result<&'static Runtime> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let made = builder.worker_threads(1).thread_name("harness-postgres").enable_all().build()?;
    Ok(RUNTIME.get_or_init(|| made))
}

/// Whether the connection ended with an error.
fn has_ended(error: &tokio_postgres::Error) -> bool {
    use std::error::Error as _;
    match error.as_db_error() {
        Some(error) => matches!(error.parsed_severity(), Some(Severity::Fatal | Severity::Panic)),
        None => error.is_closed() || error.source().is_some_and(<dyn std::error::Error>::is::<io::Error>),
    }
}

/// A failure as an error of this crate.
fn error(failure: Failure, store: Store, action: Action, path: &Path) -> Error {
    let io = |kind, text: String| {
        let source = io::Error::new(kind, text);
        Error::Io { store, action, path: path.into(), source }
    };
    match failure {
        Failure::Newer(found) => {
            Error::NewerVersion { path: path.into(), found: found.unsigned_abs(), supported: schema::VERSION }
        }
        Failure::Disturbed => Error::Disturbed { path: path.into(), how: Disturbance::Written },
        Failure::Held(owner) => Error::Locked { path: path.into(), owner },
        Failure::Tls(text) => io(ErrorKind::Other, text),
        Failure::Late => io(ErrorKind::TimedOut, format!("no answer within {} s", LONGEST.as_secs())),
        Failure::Refused(error) => {
            let kind = match error.code() {
                Some(code) if *code == SqlState::DISK_FULL => ErrorKind::StorageFull,
                Some(code) if *code == SqlState::INSUFFICIENT_PRIVILEGE => ErrorKind::PermissionDenied,
                Some(code) if *code == SqlState::READ_ONLY_SQL_TRANSACTION => ErrorKind::ReadOnlyFilesystem,
                Some(code) if *code == SqlState::QUERY_CANCELED => ErrorKind::TimedOut,
                Some(_) => ErrorKind::Other,
                None => ErrorKind::NotConnected,
            };
            io(kind, text(&error))
        }
    }
}

/// The text of an error. It never quotes values: a detail of the server may.
fn text(error: &tokio_postgres::Error) -> String {
    use std::error::Error as _;
    match error.as_db_error() {
        Some(error) => format!("{} ({})", error.message(), error.code().code()),
        None => error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}")),
    }
}
