//! `harness hash`.

use harness::descriptor::load_file;

use crate::args::HashArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;

/// Prints the hash.
pub(crate) fn hash(args: &HashArgs) -> Result<Exit, CliError> {
    output::print(&format!("{}\n", load_file(&args.descriptor)?.hash()), Exit::Completed)
}
