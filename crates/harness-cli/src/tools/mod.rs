//! `harness tools`: what a registry file offers, and trying one of its tools.

mod call;
mod list;

use std::io::Write as _;

use harness::tools::Registry;

use crate::args::ToolsArgs;
use crate::error::CliError;
use crate::exit::Exit;

/// Lists the tools of a registry file, or calls one.
pub(crate) fn tools(args: &ToolsArgs) -> Result<Exit, CliError> {
    let registry = Registry::load(&args.registry)?;
    if let Some(name) = &args.call {
        return call::call(args, &registry, name);
    }
    let mut err = anstream::stderr();
    for problem in registry.problems() {
        let _ = writeln!(err, "{problem}");
    }
    list::list(&registry, args.json)
}
