//! How a server is reached, and how its tools are treated.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use harness_core::port::BoxFuture;
use harness_core::redact::KnownSecrets;
use harness_host::process::{PASSED, ProgramSpec};
use tokio::io::{AsyncRead, AsyncWrite};

use super::fault::McpFault;

/// The shortest value that is taken for a secret: shorter ones are words of ordinary text.
const SHORTEST_SECRET: usize = 6;

/// A server and the bounds of its use.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct McpSpec {
    /// How it is reached.
    pub transport: McpTransport,
    /// How long it may take from its start until it has listed its tools. Default 30 s.
    pub connect_timeout: Duration,
    /// How long a call may take before it is cancelled. Default 30 s.
    pub timeout: Duration,
    /// How long its program may take to end after its stdin was closed, and again after SIGTERM, before
    /// SIGKILL. Default 500 ms.
    pub grace: Duration,
    /// How many bytes of a result's text are kept: the beginning and the end. Default 64 KiB.
    pub max_output: usize,
    /// Whether the hints that it gives about its tools decide their retry class: `readOnlyHint` makes a
    /// tool `pure`, `idempotentHint` makes it `idempotent`. Default false: all are `unsafe`, because a
    /// server that is not trusted can claim anything.
    pub trust_annotations: bool,
    /// Whether each call of its tools waits for approval. Default false.
    pub requires_approval: bool,
    /// Whether its tools run alone in their batch. Default false.
    pub sequential: bool,
}

/// How a server is reached.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum McpTransport {
    /// A program that speaks over its stdin and stdout.
    Stdio(ProgramSpec),
    /// Streamable HTTP.
    Http(McpHttp),
    /// A pair of streams from elsewhere: a server in this process, or behind a socket.
    Streams(McpStreams),
}

/// A server over HTTP. `Debug` shows neither the values of headers nor the query of the URL.
#[derive(Clone)]
#[non_exhaustive]
pub struct McpHttp {
    /// URL of the server.
    pub url: String,
    /// Headers that go with every request.
    pub headers: Vec<(String, String)>,
    /// Variables from which a header should come, and which are not set.
    pub(crate) missing: Vec<String>,
}

type Dialled = io::Result<(Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>)>;

/// Opens streams to a server, again after each end of the connection.
#[derive(Clone)]
pub struct McpStreams(Arc<dyn Fn() -> BoxFuture<'static, Dialled> + Send + Sync>);

impl McpSpec {
    /// A server that is reached in this way, with the default bounds.
    pub fn new(transport: McpTransport) -> Self {
        Self {
            transport,
            connect_timeout: Duration::from_secs(30),
            timeout: Duration::from_secs(30),
            grace: Duration::from_millis(500),
            max_output: 64 * 1024,
            trust_annotations: false,
            requires_approval: false,
            sequential: false,
        }
    }

    /// A server that is a program.
    pub fn stdio(program: ProgramSpec) -> Self {
        Self::new(McpTransport::Stdio(program))
    }

    /// A server over streamable HTTP, without headers.
    pub fn http(url: impl Into<String>) -> Self {
        Self::new(McpTransport::Http(McpHttp { url: url.into(), headers: Vec::new(), missing: Vec::new() }))
    }

    /// A server behind a pair of streams: `dial` opens what is read from it and what is written to it.
    pub fn streams<R, W, F, Fut>(dial: F) -> Self
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = io::Result<(R, W)>> + Send + 'static,
    {
        Self::new(McpTransport::Streams(McpStreams(Arc::new(move || {
            let dialling = dial();
            Box::pin(async move {
                let (read, write) = dialling.await?;
                Ok((Box::new(read) as _, Box::new(write) as _))
            })
        }))))
    }

    /// With one more header, over HTTP.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        if let McpTransport::Http(http) = &mut self.transport {
            http.headers.push((name.into(), value.into()));
        }
        self
    }

    /// Values that must not be printed.
    pub(super) fn secrets(&self) -> KnownSecrets {
        let mut secrets = KnownSecrets::new(SHORTEST_SECRET, "[hidden]");
        let mut add = |secret: &str| secrets.add(secret.trim());
        match &self.transport {
            McpTransport::Stdio(program) => {
                let env = program.environment();
                let own = env.iter().filter(|(name, _)| !PASSED.iter().any(|passed| *name == *passed));
                own.filter_map(|(_, value)| value.to_str()).for_each(&mut add);
            }
            McpTransport::Http(http) => {
                if let Ok(url) = reqwest::Url::parse(&http.url) {
                    let hidden = [url.password(), url.query(), url.fragment()];
                    hidden.into_iter().flatten().for_each(&mut add);
                }
                for (_, value) in &http.headers {
                    add(value);
                    // A token is one also without the word before it.
                    add(value.trim_start_matches("Bearer "));
                }
            }
            McpTransport::Streams(_) => {}
        }
        secrets
    }
}

impl McpHttp {
    /// The address without user, password, query and fragment.
    pub(crate) fn shown(&self) -> String {
        let Ok(mut url) = reqwest::Url::parse(&self.url) else { return "(no URL)".to_owned() };
        // Neither fails for an address that has a host.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_query(None);
        url.set_fragment(None);
        url.into()
    }
}

impl McpStreams {
    /// Opens them.
    pub(super) async fn dial(
        &self,
    ) -> Result<(Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>), McpFault> {
        let dialled = (self.0)().await;
        dialled.map_err(|error| McpFault::NotOpened { problem: error.to_string() })
    }
}

impl fmt::Debug for McpHttp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("McpHttp").field("url", &self.shown()).field("headers", &names).finish_non_exhaustive()
    }
}

impl fmt::Debug for McpStreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpStreams").finish_non_exhaustive()
    }
}
