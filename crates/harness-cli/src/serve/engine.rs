//! Threads on a durable engine.

use std::io::Write as _;

use harness::core::{AgentId, Cancel};
use harness::descriptor::{Graph, Registry, load_file};
use harness_restate::engine::restate::{DurableThreads, RelayHub};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::args::ServeArgs;
use crate::engine::ingress;
use crate::error::CliError;
use crate::{secrets, terminal};

/// The threads of an engine, and the agents that requests may start with.
pub(super) fn open(args: &ServeArgs) -> Result<(DurableThreads, Vec<AgentId>), CliError> {
    let descriptor = load_file(&args.descriptor.find()?)?;
    let graph = Graph::build(&descriptor, &Registry::stand_in(&descriptor))?;
    let agents = graph.agents().map(|agent| agent.id().into()).collect();
    let mut engine = ingress(&args.engine)?;
    if let Some(admin) = &args.admin {
        engine = engine.admin(admin)?;
    }
    Ok((DurableThreads::new(engine).redactor(secrets::redactor()), agents))
}

/// Listens for deltas of workers, if that is wanted. Dropping the second value ends it.
pub(super) async fn relay(
    args: &ServeArgs,
    threads: DurableThreads,
) -> Result<(DurableThreads, JoinSet<()>), CliError> {
    let mut serving = JoinSet::new();
    let Some(address) = args.relay_listen else { return Ok((threads, serving)) };
    let token = args.relay_token_file.as_deref().map(secrets::token).transpose()?;
    RelayHub::check(address, token.as_deref())?;
    let listening = |source| CliError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(listening)?;
    let at = listener.local_addr().map_err(listening)?;
    let _ = writeln!(terminal::messages(), "receiving deltas of workers on http://{at}");
    let hub = RelayHub::new();
    let threads = threads.relay(hub.clone());
    serving.spawn(async move {
        if let Err(error) = hub.serve(listener, token, Cancel::never()).await {
            let _ = writeln!(
                terminal::messages(),
                "warning: no deltas of workers are received any longer: {error}"
            );
        }
    });
    Ok((threads, serving))
}
