//! Server configuration.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderValue;
use harness::core::AgentId;
use harness::core::port::Ids;
use harness::record::{DynRecordSource, RecentRuns, RecordSource};
use harness::system::SystemIds;
use secrecy::SecretString;

use crate::error::ServerError;
use crate::guard::Hosts;
use crate::stored::{DynStoredThreads, StoredThreads};

/// Limits of a server. Limits of threads (queued messages, buffered events) are configured on the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bounds {
    /// Open connections of [`serve`](crate::serve); more connections wait in the backlog of the system.
    /// More than `streams` and `requests` together leaves room for rejections. Zero accepts no
    /// connections. Default: 4,096.
    pub connections: usize,
    /// Time limit for the head of a request on a connection of [`serve`](crate::serve), counted from the start of the
    /// connection or the end of the previous response. Event streams are responses and have no such limit.
    /// Default: 10 s.
    pub head: Duration,
    /// Time limit for the body of a request; exceeding it is rejected with 408. Default: 60 s.
    pub body_time: Duration,
    /// Size limit of a request body in bytes; larger ones are rejected with 413. Default: 4 MiB.
    pub body: usize,
    /// Threads in this process; more are rejected with 503. Default: 10,000.
    pub threads: usize,
    /// Concurrent event streams; more are rejected with 503. Default: 1,024.
    pub streams: usize,
    /// Concurrent event streams per client address; more are rejected with 429. Not limited if the router is
    /// mounted without client addresses. Default: 256.
    pub streams_per_client: usize,
    /// Concurrent requests without event streams; more are rejected with 503. Default: 1,024.
    pub requests: usize,
    /// Responses of the OpenAI routes that can be read and continued; the oldest are dropped, with threads that no other
    /// response needs. Default: 1,000.
    pub responses: usize,
    /// Size limit of all these responses in bytes of JSON. Default: 64 MiB.
    pub response_bytes: usize,
    /// Silence after which a stream sends a comment to keep the connection alive. Default: 15 s.
    pub keep_alive: Duration,
    /// Time for open connections to finish after all runs have ended. Default: 5 s.
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
            responses: 1_000,
            response_bytes: 64 * 1024 * 1024,
            keep_alive: Duration::from_secs(15),
            drain: Duration::from_secs(5),
        }
    }
}

/// Server configuration. By default there is no bearer token, and only clients on this machine that are not web
/// pages have access.
#[derive(Clone)]
#[must_use = "options do nothing until they are given to `router` or `serve`"]
pub struct ServerOptions {
    pub(crate) token: Option<SecretString>,
    pub(crate) hosts: Hosts,
    pub(crate) origins: Vec<HeaderValue>,
    pub(crate) bounds: Bounds,
    pub(crate) stored: Option<Arc<dyn DynStoredThreads>>,
    pub(crate) recent_runs: Option<RecentRuns>,
    pub(crate) recorded_runs: Option<Arc<dyn DynRecordSource>>,
    pub(crate) ids: Arc<dyn Ids>,
    pub(crate) agents: Vec<AgentId>,
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
            stored: None,
            recent_runs: None,
            recorded_runs: None,
            ids: Arc::new(SystemIds::new()),
            agents: Vec::new(),
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

    /// Accepts requests for any host name. Use it with a bearer token behind a proxy that chooses the name.
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

    /// Sets the source of threads that an earlier process stored. Default: none, so only threads of
    /// this process are known.
    pub fn stored(mut self, stored: impl StoredThreads + 'static) -> Self {
        self.stored = Some(Arc::new(stored));
        self
    }

    /// Sets the memory of runs that trace pages show. The recording of the runtime's threads must fill it
    /// ([`Recording::recent`](harness::record::Recording::recent)). Default: none, so trace pages have no runs.
    pub fn recent_runs(mut self, runs: RecentRuns) -> Self {
        self.recent_runs = Some(runs);
        self
    }

    /// Sets the source of run records of earlier processes, for trace pages: those of a thread with a stored session
    /// ([`stored`](Self::stored)) since its creation. The recording of the runtime's threads must fill it, for example
    /// with a [`FolderSink`](harness::record::FolderSink) for a [`FolderSource`](harness::record::FolderSource).
    /// Default: none, so trace pages show runs of this process only.
    pub fn recorded_runs(mut self, source: impl RecordSource + 'static) -> Self {
        self.recorded_runs = Some(Arc::new(source));
        self
    }

    /// Sets the limits.
    pub fn bounds(mut self, change: impl FnOnce(&mut Bounds)) -> Self {
        change(&mut self.bounds);
        self
    }

    /// Sets the generator of ids for threads without a name. Default: [`SystemIds`].
    pub fn ids(mut self, ids: impl Ids + 'static) -> Self {
        self.ids = Arc::new(ids);
        self
    }

    /// Names the agents that a request of the OpenAI routes can start with, as the models `harness:AGENT`. Default:
    /// none, so the only model is `harness`, the graph with its entry agent.
    pub fn agents<A: Into<AgentId>>(mut self, agents: impl IntoIterator<Item = A>) -> Self {
        self.agents = agents.into_iter().map(Into::into).collect();
        self
    }

    /// Checks the address to listen on: without a bearer token, only the loopback interface is allowed.
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
