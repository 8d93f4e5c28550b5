//! Chores of the package `checks`, which is built when one of them is asked for.

use std::process::Command;

use xtask::fault::{Fault, Result};
use xtask::process;
use xtask::repo::Workspace;

/// What follows the chore on the command line.
#[derive(clap::Args, Debug, Default)]
pub(crate) struct Arguments {
    #[arg(value_name = "ARGUMENT", num_args = 0.., trailing_var_arg = true, allow_hyphen_values = true)]
    given: Vec<String>,
}

/// Builds the package alone and runs the chore.
pub(crate) fn run(chore: &str, arguments: &Arguments) -> Result<()> {
    let mut cargo = process::cargo(["run", "--quiet", "--package", "checks", "--", chore]);
    shown(cargo.args(&arguments.given))
}

/// Runs the chore with the program that `cargo test --workspace` builds, so that nothing is compiled twice.
pub(crate) fn run_tested(chore: &str, arguments: &[String]) -> Result<()> {
    process::run(&mut process::cargo(["test", "--quiet", "--workspace", "--no-run"]))?;
    let program = Workspace::load()?.target_directory.join("debug").join("checks");
    shown(process::command(program).arg(chore).args(arguments))
}

/// The chore says itself what failed; its last line stays the last.
fn shown(command: &mut Command) -> Result<()> {
    process::run(command).map_err(|_| Fault::Shown)
}
