//! `harness check` and `harness hash`.

use std::io::Write as _;
use std::sync::Arc;

use harness::descriptor::load_file;
use harness::system::SystemClock;
use harness::tools::Registry;

use crate::args::{CheckArgs, HashArgs};
use crate::bind;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;

/// Says what a descriptor and its registry hold, or what is wrong with them.
pub(crate) fn check(args: &CheckArgs) -> Result<Exit, CliError> {
    let clock = Arc::new(SystemClock::new());
    let bound = bind::bind(&args.descriptor, args.registry.as_deref(), &(clock as _))?;
    let mut err = anstream::stderr();
    for warning in bound.descriptor.warnings() {
        let _ = writeln!(err, "{}: warning: {} ({})", warning.place, warning.kind, warning.kind.code());
    }
    let problems = bound.registry.as_ref().map(Registry::problems).unwrap_or_default();
    for problem in &problems {
        let _ = writeln!(err, "{problem}");
    }
    if !problems.is_empty() {
        return Ok(Exit::Refused);
    }
    let (agents, tools) = (bound.graph.graph().agents().len(), bound.graph.tools().len());
    let entry = bound.graph.graph().entry_agent().id();
    let text = format!(
        "{} is sound: {agents} agents from `{entry}` on, {tools} tools\n{}\n",
        args.descriptor.display(),
        bound.graph.hash(),
    );
    output::print(&text, Exit::Completed)
}

/// Prints the hash.
pub(crate) fn hash(args: &HashArgs) -> Result<Exit, CliError> {
    output::print(&format!("{}\n", load_file(&args.descriptor)?.hash()), Exit::Completed)
}
