//! The descriptor argument of the commands that use one.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::descriptor;
use crate::error::CliError;

/// Security note for commands that find a descriptor.
pub(super) const SECURITY: &str = "\
A descriptor from a parent directory also binds its tools to the programs in the registry.yaml next to it, so run \
harness only in directories that you trust.";

/// Descriptor of a command.
#[derive(Clone, Debug, Args)]
pub(crate) struct DescriptorArg {
    /// Descriptor file, or a directory with a `harness.yaml` [default: `harness.yaml` in the current or nearest
    /// parent directory]
    #[arg(value_name = "DESCRIPTOR", value_hint = ValueHint::AnyPath)]
    named: Option<PathBuf>,
}

impl DescriptorArg {
    /// Path of the given or the default descriptor.
    pub(crate) fn find(&self) -> Result<PathBuf, CliError> {
        descriptor::find(self.named.as_deref())
    }
}
