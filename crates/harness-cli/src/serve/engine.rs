//! Threads on a durable engine.

use harness::core::AgentId;
use harness::descriptor::{Graph, Registry, load_file};
use harness_restate::engine::restate::DurableThreads;

use crate::args::ServeArgs;
use crate::engine::ingress;
use crate::error::CliError;
use crate::secrets;

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
