//! `harness resume`.

use crate::args::{ResumeArgs, UntilArgs};
use crate::error::CliError;
use crate::exit::Exit;

use super::session::{self, Begun};

/// Goes on with the run of a session: its descriptor, its contract and its mode are those of the run before,
/// its limits those that are given now.
pub(crate) fn resume(args: &ResumeArgs) -> Result<Exit, CliError> {
    let begun = session::begun(&args.session)?;
    let descriptor = args.descriptor.clone().or(begun.descriptor.clone());
    let Some(descriptor) = descriptor else {
        return Err(CliError::SessionWithoutDescriptor { session: args.session.clone() });
    };
    let until = until(args, &begun);
    super::run(&args.run(descriptor, begun.registry, until))
}

/// What is said now, and else what was said when the session was begun.
fn until(args: &ResumeArgs, begun: &Begun) -> UntilArgs {
    let mut until = args.until.clone();
    until.until_done |= begun.until_done;
    until.mode = until.mode.or(begun.mode);
    until.contract = until.contract.or_else(|| begun.contract.clone());
    until.workspace = until.workspace.or_else(|| begun.workspace.clone());
    until
}
