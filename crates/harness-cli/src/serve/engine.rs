//! Threads on a durable engine.

use harness::core::AgentId;
use harness::descriptor::{Graph, Registry, load_file};
use harness_restate::engine::restate::{DurableThreads, Engine, EngineError};

use crate::args::ServeArgs;
use crate::error::CliError;
use crate::secrets;

/// The threads of an engine, and the agents that requests may start with.
pub(super) fn open(args: &ServeArgs) -> Result<(DurableThreads, Vec<AgentId>), CliError> {
    let descriptor = load_file(&args.descriptor.find()?)?;
    let graph = Graph::build(&descriptor, &Registry::stand_in(&descriptor))?;
    let agents = graph.agents().map(|agent| agent.id().into()).collect();
    let wrong = |error: EngineError| {
        CliError::part(
            error.kind(),
            &error,
            Some("pass the URL of the ingress, for example http://127.0.0.1:8080"),
        )
    };
    let mut servers = args.engine.iter();
    let first = Engine::new(servers.next().map_or("", |url| url)).map_err(wrong)?;
    let engine = servers.try_fold(first, |engine, url| engine.or(url)).map_err(wrong)?;
    Ok((DurableThreads::new(engine).redactor(secrets::redactor()), agents))
}
