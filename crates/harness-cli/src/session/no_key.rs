//! Keys in a build without encryption: there are none.

use std::path::Path;

use harness::session::OpenOptions;

use crate::args::KeyArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::left_out::left_out;

pub(crate) fn use_key(file: Option<&Path>) -> Result<(), CliError> {
    file.map_or(Ok(()), |_| Err(left_out("`--session-key`", "encryption")))
}

pub(super) fn with_key(options: OpenOptions) -> OpenOptions {
    options
}

pub(super) fn create(_: &KeyArgs) -> Result<Exit, CliError> {
    Err(left_out("`harness session key`", "encryption"))
}
