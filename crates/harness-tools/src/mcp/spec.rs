//! How a server is reached, and how its tools are treated.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use harness_core::port::BoxFuture;
use harness_core::redact::KnownSecrets;
use harness_host::process::{Environment, PASSED};
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
    Stdio(McpCommand),
    /// Streamable HTTP.
    Http(McpHttp),
    /// A pair of streams from elsewhere: a server in this process, or behind a socket.
    Streams(McpStreams),
}

/// The program of a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct McpCommand {
    /// The program: a path, or a name that is looked up in `PATH`.
    pub program: OsString,
    /// Its arguments, passed as they are: there is no shell. Default none.
    pub args: Vec<OsString>,
    /// Working directory; `None` is that of this process.
    pub cwd: Option<PathBuf>,
    /// Its whole environment. Default empty: not even `PATH` is inherited.
    pub env: Environment,
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

    /// A server that is a program, without arguments and with an empty environment.
    pub fn stdio(program: impl Into<OsString>) -> Self {
        let command =
            McpCommand { program: program.into(), args: Vec::new(), cwd: None, env: Environment::default() };
        Self::new(McpTransport::Stdio(command))
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

    /// With these arguments of its program.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        if let McpTransport::Stdio(command) = &mut self.transport {
            command.args = args.into_iter().map(Into::into).collect();
        }
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn cwd(mut self, folder: impl Into<PathBuf>) -> Self {
        if let McpTransport::Stdio(command) = &mut self.transport {
            command.cwd = Some(folder.into());
        }
        self
    }

    /// With the variables of [`PASSED`] that `surroundings` has, for its program.
    #[must_use]
    pub fn env_from(mut self, surroundings: &Environment) -> Self {
        if let McpTransport::Stdio(command) = &mut self.transport {
            command.env = surroundings.share(PASSED.into_iter());
        }
        self
    }

    /// With one more variable of its program.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        if let McpTransport::Stdio(command) = &mut self.transport {
            command.env.set(name, value);
        }
        self
    }

    /// With one more header, over HTTP.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        if let McpTransport::Http(http) = &mut self.transport {
            http.headers.push((name.into(), value.into()));
        }
        self
    }

    /// Ready within this time.
    #[must_use]
    pub fn connect_timeout(mut self, span: Duration) -> Self {
        self.connect_timeout = span;
        self
    }

    /// With calls cancelled after this time.
    #[must_use]
    pub fn timeout(mut self, span: Duration) -> Self {
        self.timeout = span;
        self
    }

    /// Killed this long after it was asked to end.
    #[must_use]
    pub fn grace(mut self, span: Duration) -> Self {
        self.grace = span;
        self
    }

    /// With this many bytes of a result's text kept.
    #[must_use]
    pub fn max_output(mut self, bytes: usize) -> Self {
        self.max_output = bytes;
        self
    }

    /// Trusts the annotations of the server.
    #[must_use]
    pub fn trust_annotations(mut self) -> Self {
        self.trust_annotations = true;
        self
    }

    /// With each call waiting for approval.
    #[must_use]
    pub fn needs_approval(mut self) -> Self {
        self.requires_approval = true;
        self
    }

    /// Values that must not be printed.
    pub(super) fn secrets(&self) -> KnownSecrets {
        let mut secrets = KnownSecrets::new(SHORTEST_SECRET, "[hidden]");
        let mut add = |secret: &str| secrets.add(secret.trim());
        match &self.transport {
            McpTransport::Stdio(command) => {
                let own =
                    command.env.iter().filter(|(name, _)| !PASSED.iter().any(|passed| *name == *passed));
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
