//! `cargo xtask conformance [DIR…]`: every vector below each directory, whatever its kind.

use std::path::PathBuf;

use harness_conformance::Selection;
use xtask::fault::{Fault, Result};

/// What to run and how much to say.
#[derive(clap::Args, Debug)]
pub(crate) struct Options {
    /// Directories with vectors; the project's own when absent.
    #[arg(value_name = "DIR")]
    directories: Vec<PathBuf>,
    /// Only vectors of this kind.
    #[arg(long)]
    kind: Option<String>,
    /// Only the vector with this id.
    #[arg(long, value_name = "ID")]
    only: Option<String>,
    /// A line for every vector, not only for failures.
    #[arg(long)]
    verbose: bool,
}

/// Runs the chore; any failed vector is a fault.
pub(crate) fn run(options: Options) -> Result<()> {
    let mut selection = Selection::default();
    selection.directories = options.directories;
    selection.kind = options.kind;
    selection.id = options.only;
    selection.verbose = options.verbose;
    #[expect(clippy::disallowed_methods, reason = "a chore's output is its result")]
    let mut output = std::io::stdout();
    match harness_conformance::run(&selection, &mut output) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Fault::Shown),
        Err(fault) => Err(Fault::new(fault)),
    }
}
