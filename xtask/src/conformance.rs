//! `cargo xtask conformance`: the program of `harness-conformance`, which is built when it is asked for.

use std::process::Command;

use crate::fault::{Fault, Result};
use crate::process;
use crate::repo::{Workspace, root};

/// What follows the chore on the command line.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    #[arg(value_name = "ARGUMENT", num_args = 0.., trailing_var_arg = true, allow_hyphen_values = true)]
    given: Vec<String>,
}

/// Builds the program alone and runs it.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut cargo = process::cargo(["run", "--quiet", "--package", "harness-conformance", "--"]);
    shown(cargo.args(&arguments.given))
}

/// The project's own vectors, and the full collections where they lie beside the checkout, run by the program that
/// `cargo test --workspace` builds, so that nothing is compiled twice.
pub(crate) fn run_tested() -> Result<()> {
    process::run(&mut process::cargo(["test", "--quiet", "--workspace", "--no-run"]))?;
    let beside =
        ["turn", "descriptor", "workspace-tools"].map(|kind| root().join("../shared/vectors").join(kind));
    let folders = std::iter::once(root().join("fixtures/conformance")).chain(beside);
    let program = Workspace::load()?.target_directory.join("debug").join("conformance");
    shown(process::command(program).args(folders.filter(|folder| folder.is_dir())))
}

/// The program says itself what failed; its last line stays the last.
fn shown(command: &mut Command) -> Result<()> {
    process::run(command).map_err(|_| Fault::Shown)
}
