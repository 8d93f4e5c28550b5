//! How a server is set up.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderValue;
use harness::core::port::Ids;
use harness::runtime::Approvals;
use harness::system::SystemIds;
use secrecy::SecretString;

use crate::error::ServerError;
use crate::guard::Hosts;
use crate::stored::{DynStoredThreads, StoredThreads};

/// The bounds of a server. The bounds of its threads (waiting messages, kept events) are those of its runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bounds {
    /// Open connections of [`serve`](crate::serve); further ones wait in the queue of the system.
    /// More than `streams` and `requests` together leaves room for rejections. Zero accepts no
    /// connections. Default: 4,096.
    pub connections: usize,
    /// Time of a connection of [`serve`](crate::serve) from its beginning, or from the end of its last answer, until the
    /// head of a request is there as a whole; then it is closed. Streams are answers: they may be silent for as long
    /// as they like. Default 10 s.
    pub head: Duration,
    /// Time for reading a request's body; slower ones are refused with 408. Default 60 s.
    pub body_time: Duration,
    /// Bytes of a request's body; more are refused with 413. Default 4 MiB.
    pub body: usize,
    /// Threads that the runtime knows; more are refused with 503. Default 10,000.
    pub threads: usize,
    /// Streams of events at once; more are refused with 503. Default 1,024.
    pub streams: usize,
    /// Streams of events of one client address at once; more are refused with 429. Not known, and not bounded,
    /// where the router is mounted without the addresses of its clients. Default 256.
    pub streams_per_client: usize,
    /// Requests that are being answered at once, streams left out; more are refused with 503. Default 1,024.
    pub requests: usize,
    /// Silence after which a stream sends a comment to keep the connection alive. Default: 15 s.
    pub keep_alive: Duration,
    /// Time that open connections have to end after all runs have. Default 5 s.
    pub drain: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections: 4_096,
            head: Duration::from_secs(10),
            body_time: Duration::from_mins(1),
            body: 4 * 1024 * 1024,
            threads: 10_000,
            streams: 1_024,
            streams_per_client: 256,
            requests: 1_024,
            keep_alive: Duration::from_secs(15),
            drain: Duration::from_secs(5),
        }
    }
}

/// How a server is set up. The default has no token, answers this machine alone, and lets no web page in.
#[derive(Clone)]
#[must_use = "options do nothing until they are given to `router` or `serve`"]
pub struct ServerOptions {
    pub(crate) token: Option<SecretString>,
    pub(crate) hosts: Hosts,
    pub(crate) origins: Vec<HeaderValue>,
    pub(crate) bounds: Bounds,
    pub(crate) approvals: Option<Approvals>,
    pub(crate) stored: Option<Arc<dyn DynStoredThreads>>,
    pub(crate) ids: Arc<dyn Ids>,
}

impl std::fmt::Debug for ServerOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerOptions")
            .field("token", &self.token)
            .field("hosts", &self.hosts)
            .field("origins", &self.origins)
            .field("bounds", &self.bounds)
            .finish_non_exhaustive()
    }
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            token: None,
            hosts: Hosts::default(),
            origins: Vec::new(),
            bounds: Bounds::default(),
            approvals: None,
            stored: None,
            ids: Arc::new(SystemIds::new()),
        }
    }
}

impl ServerOptions {
    /// Default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Requires this bearer token: `Authorization: Bearer TOKEN`. Default: none.
    ///
    /// # Errors
    /// [`ServerError::WeakToken`] for fewer than 16 characters, or characters other than visible
    /// ASCII.
    pub fn token(mut self, token: impl Into<String>) -> Result<Self, ServerError> {
        let token = token.into();
        if token.len() < 16 || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(ServerError::WeakToken);
        }
        self.token = Some(token.into());
        Ok(self)
    }

    /// Accepts requests for this host name, without a port (`agents.example.com`). Default:
    /// `localhost` and the loopback addresses. Other names are rejected to prevent DNS rebinding.
    pub fn allow_host(mut self, host: impl Into<String>) -> Self {
        self.hosts.allow(host.into());
        self
    }

    /// Clients may ask under any name. Right where a token is needed, and others decide what the name is.
    pub fn allow_any_host(mut self) -> Self {
        self.hosts = Hosts::Any;
        self
    }

    /// Accepts requests from web pages of this origin, for example `https://app.example.com`.
    /// Default: none, so browsers block all pages.
    ///
    /// # Errors
    /// [`ServerError::Origin`] for an invalid origin, including `*`.
    pub fn allow_origin(mut self, origin: &str) -> Result<Self, ServerError> {
        let fault = || ServerError::Origin { origin: origin.to_owned() };
        let rest = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
        let is_origin =
            rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(['/', '*', '?', '#', '@']));
        if !is_origin {
            return Err(fault());
        }
        self.origins.push(HeaderValue::from_str(origin).map_err(|_| fault())?);
        Ok(self)
    }

    /// Sets the approver of the runtime's threads. Default: none, so approvals are not available
    /// over HTTP.
    pub fn approvals(mut self, approvals: Approvals) -> Self {
        self.approvals = Some(approvals);
        self
    }

    /// Sets the source of threads that an earlier process stored. Default: none, so only threads of
    /// this process are known.
    pub fn stored(mut self, stored: impl StoredThreads + 'static) -> Self {
        self.stored = Some(Arc::new(stored));
        self
    }

    /// Other bounds.
    pub fn bounds(mut self, change: impl FnOnce(&mut Bounds)) -> Self {
        change(&mut self.bounds);
        self
    }

    /// Sets the generator of ids for threads without a name. Default: [`SystemIds`].
    pub fn ids(mut self, ids: impl Ids + 'static) -> Self {
        self.ids = Arc::new(ids);
        self
    }

    /// Whether a server may listen there: without a token on the loopback interface only.
    ///
    /// # Errors
    /// [`ServerError::TokenRequired`].
    pub fn check(&self, address: SocketAddr) -> Result<(), ServerError> {
        if self.token.is_none() && !address.ip().is_loopback() {
            return Err(ServerError::TokenRequired { address });
        }
        Ok(())
    }
}
