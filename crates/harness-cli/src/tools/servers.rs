//! The tools of MCP servers.

use std::sync::Arc;

use harness::core::tool::ToolDef;
use harness::tools::mcp::McpServer;
use harness::tools::{Registry, ToolsError};
use tokio::task::JoinSet;

use super::Offered;

/// The tools of all servers of a registry, and the errors of failed servers.
pub(super) async fn all(registry: &Registry) -> (Vec<Offered>, Vec<ToolsError>) {
    asked(registry.servers()).await
}

/// The tools of the server that a tool of this name or target would belong to.
pub(super) async fn that_may_have(registry: &Registry, name: &str) -> (Vec<Offered>, Vec<ToolsError>) {
    let owns = |server: &&McpServer| {
        let below = |id: &str| name.strip_prefix(id).is_some_and(|rest| rest.starts_with('.'));
        name.starts_with(server.namespace()) || below(server.id())
    };
    asked(registry.servers().filter(owns)).await
}

/// Queries the servers in parallel.
async fn asked<'r>(servers: impl Iterator<Item = &'r McpServer>) -> (Vec<Offered>, Vec<ToolsError>) {
    let mut asked = JoinSet::new();
    for (at, server) in servers.cloned().enumerate() {
        asked.spawn(async move { (at, server.tools().await, server) });
    }
    let mut answers = asked.join_all().await;
    answers.sort_by_key(|(at, ..)| *at);
    let (mut tools, mut faults) = (Vec::new(), Vec::new());
    for (_, answer, server) in answers {
        match answer {
            Ok(defs) => tools.extend(defs.iter().map(|def| offered(&server, def))),
            Err(fault) => faults.push(fault),
        }
    }
    (tools, faults)
}

fn offered(server: &McpServer, def: &ToolDef) -> Offered {
    let name = def.name.as_str();
    let name = name.strip_prefix(server.namespace()).unwrap_or(name);
    Offered {
        target: format!("{}.{name}", server.id()),
        def: def.clone(),
        registry: Arc::new(server.clone()),
    }
}
