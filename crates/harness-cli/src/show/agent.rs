//! `harness show --agent`.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use harness::core::port::Clock;
use harness::descriptor::{Agent, ContextInput, Graph, Preview, Registry, Value, load_file};
use harness::system::SystemClock;

use super::{human, json};
use crate::args::ShowArgs;
use crate::bind;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;
use crate::render::NOTE;
use crate::run::context;
use crate::terminal;

/// Prints what an agent would get in a turn with the given context.
pub(super) fn show(args: &ShowArgs, descriptor: &Path, id: &str) -> Result<Exit, CliError> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let has_registry = args.registry.is_some() || bind::beside(descriptor).exists();
    let graph = graph(args, descriptor, has_registry, &clock)?;
    let Some(agent) = graph.agent(id) else {
        let known = graph.agents().map(Agent::id).map(str::to_owned).collect();
        let descriptor = descriptor.to_owned();
        return Err(CliError::NoAgent { agent: id.to_owned(), descriptor, known });
    };
    if !has_registry && !agent.tools().is_empty() {
        let mut err = terminal::messages();
        let _ = writeln!(err, "{NOTE}note{NOTE:#}: no registry file; tools have the names of the descriptor");
    }
    let overrides = context::overrides(&args.context)?;
    graph.check_values(&overrides)?;
    let input = ContextInput::new(clock.now().iso())
        .message(args.message.clone().unwrap_or_default())
        .overrides(overrides);
    let context = graph.create_context(&input)?;
    let preview = graph.preview(id, &context)?;
    let exit = print(args, &preview, &context)?;
    match preview.resolved {
        Ok(_) => Ok(exit),
        // The fault is part of what was printed.
        Err(_) if args.json => Ok(Exit::Refused),
        Err(fault) => Err(CliError::NoTurn { agent: id.to_owned(), fault }),
    }
}

/// The graph with the tools of the registry, or with stand-ins where there is none.
fn graph(
    args: &ShowArgs,
    descriptor: &Path,
    has_registry: bool,
    clock: &Arc<dyn Clock>,
) -> Result<Arc<Graph>, CliError> {
    if has_registry {
        let bound = bind::bind(descriptor, args.registry.as_deref(), clock)?;
        return Ok(Arc::clone(bound.graph.graph()));
    }
    let descriptor = load_file(descriptor)?;
    Ok(Arc::new(Graph::build(&descriptor, &Registry::stand_in(&descriptor))?))
}

fn print(args: &ShowArgs, preview: &Preview<'_>, context: &Value) -> Result<Exit, CliError> {
    if args.json {
        output::print_json(&json::Shown::of(preview, context), Exit::Completed)
    } else {
        output::print(&human::text(preview), Exit::Completed)
    }
}
