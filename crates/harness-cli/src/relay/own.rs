//! Our own harness as the program behind a bridge.

use std::path::Path;
use std::sync::Arc;

use harness::core::port::Clock;
use harness::system::SystemClock;
use harness::tools::Registry;
use harness::{Builder, Harness, HarnessExecution};

use crate::args::{BridgeArgs, ModelArgs};
use crate::bind;
use crate::error::CliError;
use crate::model;

/// The graph as a backend, and the registry that its tools come from. What a request's instructions say goes
/// with the prompt: the agents keep their own.
pub(super) fn own(
    args: &BridgeArgs,
    descriptor: &Path,
) -> Result<(HarnessExecution, Option<Registry>), CliError> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let bound = bind::bind(descriptor, args.registry.as_deref(), &clock)?;
    let asked = ModelArgs {
        model: args.model.clone(),
        keys: None,
        base_url: args.base_url.clone(),
        record: None,
        replay: None,
    };
    let source = model::choose(&asked, Some(&bound.graph), bound.registry.as_ref(), &clock)?;
    let needs = bind::Needs::of(bound.registry.as_ref());
    let (graph, model) = (bound.graph, source.model);
    let backend = HarnessExecution::new(move |_| {
        let builder = needs.meet(Harness::new(Arc::clone(&model)).graph(graph.clone()));
        Ok(needs.memory.iter().cloned().fold(builder, Builder::memory_setting))
    });
    Ok((backend.clock(clock), bound.registry))
}
