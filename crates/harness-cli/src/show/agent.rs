//! `harness show --agent`.

use std::io::Write as _;
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

/// Prints what an agent would get in a turn with the given context.
pub(super) fn show(args: &ShowArgs, id: &str) -> Result<Exit, CliError> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let graph = graph(args, &clock)?;
    if graph.agent(id).is_none() {
        let known = graph.agents().map(Agent::id).map(str::to_owned).collect();
        let descriptor = args.descriptor.clone();
        return Err(CliError::NoAgent { agent: id.to_owned(), descriptor, known });
    }
    let input = ContextInput::new(clock.now().iso())
        .message(args.message.clone().unwrap_or_default())
        .overrides(context::overrides(&args.context)?);
    let context = graph.create_context(&input)?;
    let preview = graph.preview(id, &context)?;
    let exit = print(args, &preview, &context)?;
    match preview.offer {
        Ok(_) => Ok(exit),
        Err(fault) => Err(CliError::NoTurn { agent: id.to_owned(), fault }),
    }
}

/// The graph with the tools of the registry, or with stand-ins where there is none.
fn graph(args: &ShowArgs, clock: &Arc<dyn Clock>) -> Result<Arc<Graph>, CliError> {
    if args.registry.is_some() || bind::beside(&args.descriptor).exists() {
        let bound = bind::bind(&args.descriptor, args.registry.as_deref(), clock)?;
        return Ok(Arc::clone(bound.graph.graph()));
    }
    let descriptor = load_file(&args.descriptor)?;
    let graph = Graph::build(&descriptor, &Registry::stand_in(&descriptor))?;
    if graph.agents().any(|agent| !agent.tools().is_empty()) {
        let mut err = anstream::stderr();
        let _ = writeln!(
            err,
            "{NOTE}note{NOTE:#}: there is no registry file, so tools have the names of the descriptor"
        );
    }
    Ok(Arc::new(graph))
}

fn print(args: &ShowArgs, preview: &Preview<'_>, context: &Value) -> Result<Exit, CliError> {
    if args.json {
        output::print_json(&json::Shown::of(preview, context), Exit::Completed)
    } else {
        output::print_styled(&human::text(preview), Exit::Completed)
    }
}
