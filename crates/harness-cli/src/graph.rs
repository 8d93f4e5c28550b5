//! `harness graph`.

use harness::descriptor::{Graph, Registry, load_file};

use crate::args::{GraphArgs, GraphFormat};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;

/// Prints a graph as text that other programs make a picture of.
pub(crate) fn graph(args: &GraphArgs) -> Result<Exit, CliError> {
    let descriptor = load_file(&args.descriptor.find()?)?;
    // A picture shows tools by their ids, whatever they are bound to.
    let graph = Graph::build(&descriptor, &Registry::stand_in(&descriptor))?;
    let text = match args.format {
        GraphFormat::Mermaid => graph.to_mermaid(),
        GraphFormat::Dot => graph.to_dot(),
    };
    output::print_payload(&text, Exit::Completed)
}
