//! `harness schema`.

use harness::descriptor::schema;

use crate::args::SchemaArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::{output, render};

/// Prints the JSON Schema of descriptors or of events, or the line that makes an editor use that of descriptors.
pub(crate) fn schema(args: &SchemaArgs) -> Result<Exit, CliError> {
    let text = match args {
        SchemaArgs { header: true, .. } => format!("{}\n", schema::HEADER),
        SchemaArgs { events: true, .. } => format!("{:#}\n", render::schema().to_value()),
        _ => schema::text(),
    };
    output::print_payload(&text, Exit::Completed)
}
