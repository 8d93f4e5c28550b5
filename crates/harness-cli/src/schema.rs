//! `harness schema`.

use harness::descriptor::schema;

use crate::args::SchemaArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;

/// Prints the JSON Schema of descriptors, or the line that makes an editor use it.
pub(crate) fn schema(args: &SchemaArgs) -> Result<Exit, CliError> {
    let text = if args.header { format!("{}\n", schema::HEADER) } else { schema::text() };
    output::print_payload(&text, Exit::Completed)
}
