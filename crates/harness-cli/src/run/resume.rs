//! `harness resume`.

use crate::args::{ResumeArgs, UntilArgs};
use crate::descriptor;
use crate::error::CliError;
use crate::exit::Exit;

use super::session::{self, RunStart};

/// Resumes the run of a session with the descriptor, contract and mode of the previous run and the limits of the
/// command line.
pub(crate) fn resume(args: &ResumeArgs) -> Result<Exit, CliError> {
    let begun = session::begun(&args.session)?;
    let named = args.descriptor.as_deref().map(descriptor::at).transpose()?;
    let descriptor = named.or_else(|| begun.descriptor.clone());
    let Some(descriptor) = descriptor else {
        return Err(CliError::SessionWithoutDescriptor { session: args.session.clone() });
    };
    let until = until(args, &begun);
    super::run_descriptor(&args.run(begun.registry, until), &descriptor, args.message.as_ref())
}

/// The new message, or else the message that started the session.
fn until(args: &ResumeArgs, begun: &RunStart) -> UntilArgs {
    let mut until = args.options.until.clone();
    until.until_done |= begun.until_done;
    until.mode = until.mode.or(begun.mode);
    until.contract = until.contract.or_else(|| begun.contract.clone());
    until.workspace = until.workspace.or_else(|| begun.workspace.clone());
    until
}
