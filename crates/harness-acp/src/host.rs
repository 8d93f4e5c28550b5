//! Where the threads of sessions come from.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use agent_client_protocol::v1::schema::McpServer;
use harness::core::ThreadId;
use harness::core::port::{ApprovalAsk, Approver, Decision, Ids};
use harness::runtime::{Runtime, Thread};
use harness::tools::{StandingApprovals, ThreadMode};

use crate::error::HostFault;

/// Client settings of a session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SessionSetup {
    /// Working directory; absolute.
    pub cwd: PathBuf,
    /// The MCP servers whose tools the client wishes to be there.
    pub mcp_servers: Vec<WishedServer>,
}

/// An MCP server that a client wishes for. `Debug` shows no values of variables and headers: they may be secret.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WishedServer {
    /// A program that speaks over its stdin and stdout.
    Stdio {
        /// Name given by the client.
        name: String,
        /// Path of the program.
        command: PathBuf,
        /// Arguments of the program.
        args: Vec<String>,
        /// Variables of its environment.
        env: Vec<(String, String)>,
    },
    /// A server over streamable HTTP.
    Http {
        /// Name given by the client.
        name: String,
        /// Endpoint URL.
        url: String,
        /// Headers that go with every request.
        headers: Vec<(String, String)>,
    },
    /// A server that is reached in a way that is not known here.
    Other,
}

impl fmt::Debug for WishedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio { name, command, .. } => {
                f.debug_struct("Stdio").field("name", name).field("command", command).finish_non_exhaustive()
            }
            Self::Http { name, .. } => f.debug_struct("Http").field("name", name).finish_non_exhaustive(),
            Self::Other => f.write_str("Other"),
        }
    }
}

impl WishedServer {
    pub(crate) fn of(server: McpServer) -> Self {
        match server {
            McpServer::Stdio(stdio) => Self::Stdio {
                name: stdio.name,
                command: stdio.command,
                args: stdio.args,
                env: stdio.env.into_iter().map(|variable| (variable.name, variable.value)).collect(),
            },
            McpServer::Http(http) => Self::Http {
                name: http.name,
                url: http.url,
                headers: http.headers.into_iter().map(|header| (header.name, header.value)).collect(),
            },
            McpServer::Sse(_) | _ => Self::Other,
        }
    }
}

impl SessionSetup {
    /// Creates a setup for a directory, without MCP servers.
    pub fn new(cwd: impl Into<PathBuf>) -> Self {
        Self { cwd: cwd.into(), mcp_servers: Vec::new() }
    }
}

/// Asks the person in front of the editor, once its thread is opened for a session; denies before that. For threads
/// whose sub-agents shall ask, too: they are made with an approver, and keep it. Clones ask the same person.
#[derive(Clone, Debug, Default)]
pub struct EditorApprover(Arc<OnceLock<StandingApprovals>>);

impl EditorApprover {
    /// Creates an approver without a client.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether this was the first session that it asks.
    pub(crate) fn connect(&self, asks: StandingApprovals) -> bool {
        self.0.set(asks).is_ok()
    }
}

impl Approver for EditorApprover {
    async fn decide(&self, ask: ApprovalAsk) -> Decision {
        match self.0.get() {
            Some(asks) => asks.decide(ask).await,
            None => Decision::Denied {
                reason: "the client is not connected, so the call cannot be approved".to_owned(),
            },
        }
    }
}

/// A thread that was opened for a session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Opened {
    /// The thread. Its name is the name of the session.
    pub thread: Thread,
    /// The mode of this conversation, when it has any. The host sees to it that modes count: the gate, the tools.
    pub mode: Option<ThreadMode>,
    /// The approver that the thread was made with, when it is one that asks the editor. Without, the thread is given
    /// one, in place of what it has; sub-agents then keep theirs.
    pub approver: Option<EditorApprover>,
}

impl Opened {
    /// A thread without modes, which is given an approver.
    pub fn new(thread: Thread) -> Self {
        Self { thread, mode: None, approver: None }
    }
}

/// An earlier session, as a client lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionHead {
    /// Id of the session.
    pub id: ThreadId,
    /// Working directory; absolute.
    pub cwd: PathBuf,
    /// Short title.
    pub title: Option<String>,
    /// When it last changed, as RFC 3339.
    pub updated_at: Option<String>,
}

impl SessionHead {
    /// Creates an entry for a session in a directory.
    pub fn new(id: impl Into<ThreadId>, cwd: impl Into<PathBuf>) -> Self {
        Self { id: id.into(), cwd: cwd.into(), title: None, updated_at: None }
    }
}

/// Opens the threads of sessions. [`Threads`] is one for a [`Runtime`].
pub trait Host: Send + Sync + 'static {
    /// Creates a thread for a new session.
    ///
    /// # Errors
    /// The error for the client.
    fn begin(&self, setup: SessionSetup) -> impl Future<Output = Result<Opened, HostFault>> + Send;

    /// Whether MCP servers that a client wishes for are connected, over HTTP too. Default not: [`begin`](Self::begin)
    /// refuses or passes over them.
    fn connects_servers(&self) -> bool {
        false
    }

    /// Whether sessions outlive the connection, so that [`load`](Self::load) can find them. Default not.
    fn keeps_sessions(&self) -> bool {
        false
    }

    /// Loads the thread of an earlier session; `None` if there is none with this id.
    ///
    /// # Errors
    /// The error for the client.
    fn load(
        &self,
        _id: &ThreadId,
        _setup: SessionSetup,
    ) -> impl Future<Output = Result<Option<Opened>, HostFault>> + Send {
        std::future::ready(Ok(None))
    }

    /// Whether [`list`](Self::list) is supported. Default: `false`.
    fn lists_sessions(&self) -> bool {
        false
    }

    /// Lists earlier sessions, the latest first.
    ///
    /// # Errors
    /// The error for the client.
    fn list(&self) -> impl Future<Output = Result<Vec<SessionHead>, HostFault>> + Send {
        std::future::ready(Ok(Vec::new()))
    }

    /// Closes a session whose run has ended and whose thread is no longer used. The default closes
    /// the thread; its session is kept.
    fn close(&self, thread: Thread) -> impl Future<Output = ()> + Send {
        async move { thread.close().await }
    }
}

/// The threads of one [`Runtime`], named by `ids`. Sessions last as long as the connection, working
/// directories are ignored, and MCP servers are rejected. A program that binds tools to the
/// session's directory implements [`Host`] itself.
#[derive(Clone)]
pub struct Threads {
    runtime: Runtime,
    ids: Arc<dyn Ids>,
    keeps: bool,
}

impl fmt::Debug for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Threads").field("runtime", &self.runtime).finish_non_exhaustive()
    }
}

impl Threads {
    /// The threads of this runtime.
    pub fn new(runtime: Runtime, ids: Arc<dyn Ids>) -> Self {
        Self { runtime, ids, keeps: false }
    }

    /// Allows clients to load any thread with a nonempty session, for a runtime with persistent
    /// sessions.
    #[must_use]
    pub fn keeping_sessions(mut self) -> Self {
        self.keeps = true;
        self
    }
}

impl Host for Threads {
    async fn begin(&self, setup: SessionSetup) -> Result<Opened, HostFault> {
        without_servers(&setup)?;
        Ok(Opened::new(self.runtime.thread(self.ids.run_id().as_str())))
    }

    fn keeps_sessions(&self) -> bool {
        self.keeps
    }

    async fn load(&self, id: &ThreadId, setup: SessionSetup) -> Result<Option<Opened>, HostFault> {
        without_servers(&setup)?;
        let known = self.runtime.existing(id).is_some();
        let thread = self.runtime.thread(id.clone());
        let messages = thread.messages().await;
        let messages = messages.map_err(|error| HostFault::failed(error.to_string()))?;
        if messages.is_empty() && !known {
            thread.close().await;
            return Ok(None);
        }
        Ok(Some(Opened::new(thread)))
    }
}

fn without_servers(setup: &SessionSetup) -> Result<(), HostFault> {
    if setup.mcp_servers.is_empty() {
        return Ok(());
    }
    let count = setup.mcp_servers.len();
    Err(HostFault::refused(format!("{count} MCP servers are wished for, and none can be connected here")))
}
