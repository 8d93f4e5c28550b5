//! The MCP servers that an editor wishes for.

use std::path::Path;
use std::sync::Arc;

use futures_util::future::join_all;
use harness::core::port::{AgentConfig, AgentSource, Clock, DynAgentSource, PrepareAsk};
use harness::core::tool::Toolbox;
use harness::core::{Fault, ToolName};
use harness::host::process::{Environment, ProgramSpec};
use harness::runtime::Thread;
use harness::tools::mcp::{McpServer, McpSpec};
use harness::tools::{Combined, Source};

use crate::host::{SessionSetup, WishedServer};

/// How many servers of one session are connected; the others are passed over.
pub const MAX_SERVERS: usize = 32;

/// Connects a client's servers and adds their tools to all agents of a thread, from its next run
/// on. A tool is named `editor-SERVER__TOOL`, as far as providers allow, and each call requires
/// approval, because its server comes from the editor and not from the author of the agents. Gates,
/// modes and limits apply as for any other tool.
///
/// Programs run in the session's directory, with the standard variables of `surroundings` and those
/// that the client names. A server that cannot be reached within 30 s, or has an unsupported
/// transport, is skipped with a log message. The caller [closes](McpServer::close) the servers when
/// it closes the thread.
pub async fn connect(
    thread: &Thread,
    setup: &SessionSetup,
    surroundings: &Environment,
    clock: &Arc<dyn Clock>,
) -> Vec<McpServer> {
    let wished = setup.mcp_servers.iter().take(MAX_SERVERS);
    let reached = wished.filter_map(|wished| server(wished, &setup.cwd, surroundings)).map(async |server| {
        let server = server.with_clock(Arc::clone(clock));
        match server.tools().await {
            Ok(tools) => Some((server, tools)),
            Err(error) => {
                tracing::warn!(server = server.id(), %error, "an MCP server of the editor is passed over");
                None
            }
        }
    });
    let reached: Vec<_> = join_all(reached).await.into_iter().flatten().collect();
    if reached.is_empty() {
        return Vec::new();
    }
    let names: Arc<[ToolName]> =
        reached.iter().flat_map(|(_, tools)| tools.iter().map(|def| def.name.clone())).collect();
    let servers: Vec<McpServer> = reached.into_iter().map(|(server, _)| server).collect();
    thread.configure(|config| {
        // Every name that no server owns is one of the thread's own.
        let own = Source::new("", Arc::clone(&config.ports.tools));
        let sources = servers.iter().map(McpServer::source).chain([own]);
        config.ports.tools = Arc::new(Combined::new(Toolbox::default(), sources));
        let agents = Arc::clone(&config.ports.agents);
        config.ports.agents = Arc::new(WithServers { agents, names });
    });
    servers
}

fn server(wished: &WishedServer, cwd: &Path, surroundings: &Environment) -> Option<McpServer> {
    let (name, mut spec) = match wished {
        WishedServer::Stdio { name, command, args, env } => {
            let mut program = ProgramSpec::new(command).args(args).cwd(cwd).pass(surroundings, []);
            program.env = env.iter().map(|(name, value)| (name, value)).collect();
            (name, McpSpec::stdio(program))
        }
        WishedServer::Http { name, url, headers } => {
            (name, headers.iter().fold(McpSpec::http(url), |spec, (name, value)| spec.header(name, value)))
        }
        WishedServer::Other => {
            tracing::warn!("an MCP server of the editor is passed over: it is not reached by stdio or HTTP");
            return None;
        }
    };
    spec.requires_approval = true;
    Some(McpServer::new(format!("editor-{name}"), spec))
}

/// Agents who may call what the servers offer, too.
struct WithServers {
    agents: Arc<dyn DynAgentSource>,
    names: Arc<[ToolName]>,
}

impl AgentSource for WithServers {
    async fn prepare(&self, ask: &PrepareAsk) -> Result<AgentConfig, Fault> {
        let mut config = self.agents.prepare_boxed(ask).await?;
        if let Some(own) = &config.tools {
            config.tools = Some(own.iter().chain(&*self.names).cloned().collect());
        }
        Ok(config)
    }
}
