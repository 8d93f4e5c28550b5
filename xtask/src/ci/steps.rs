//! The steps, in their order.
//!
//! Steps share one target folder. Everything that only has to compile goes through clippy, so that
//! the builds of single crates reuse its metadata and still refuse warnings.

use super::alone::builds;
use super::plan::Progress;
use super::readme;
use crate::fault::Result;
use crate::repo::{Workspace, root};
use crate::{conformance, e2e, fuzz, process};

/// One step.
pub(super) struct Step {
    /// Its name on the command line.
    pub(super) name: &'static str,
    /// What it checks.
    pub(super) what: &'static str,
    /// Does it.
    pub(super) run: fn(&mut Progress) -> Result<()>,
}

/// All steps: cheap ones first, and none that needs what a later one builds.
pub(super) const STEPS: &[Step] = &[
    Step { name: "fmt", what: "formatting", run: fmt },
    Step { name: "clippy", what: "lints, all targets and features", run: clippy },
    Step { name: "tests", what: "tests and doc tests of all crates", run: tests },
    Step { name: "docs", what: "documentation without warnings", run: docs },
    Step { name: "alone", what: "each crate and each feature alone", run: alone },
    Step { name: "conformance", what: "golden vectors", run: vectors },
    Step { name: "fuzz", what: "a minute of changed descriptors", run: fuzz },
    Step { name: "deny", what: "licences, duplicates and sources of dependencies", run: deny },
    Step { name: "readme", what: "the README's first command in a fresh clone", run: first_command },
    Step { name: "e2e", what: "the release program end to end", run: end_to_end },
];

fn fmt(_: &mut Progress) -> Result<()> {
    process::run(&mut process::cargo(["fmt", "--all", "--check"]))
}

fn clippy(_: &mut Progress) -> Result<()> {
    process::run(&mut process::cargo([
        "clippy",
        "--workspace",
        "--all-targets",
        "--all-features",
        "--",
        "-D",
        "warnings",
    ]))
}

fn tests(progress: &mut Progress) -> Result<()> {
    // A pending snapshot is a failure, never a file to be found later.
    let mut cargo = process::cargo(["test", "--workspace", "--no-fail-fast"]);
    process::run_watching(cargo.env("INSTA_UPDATE", "no"), &mut |line| progress.tests.see(line))
}

fn docs(_: &mut Progress) -> Result<()> {
    let mut cargo = process::cargo(["doc", "--no-deps", "--workspace", "--all-features"]);
    process::run(cargo.env("RUSTDOCFLAGS", "-D warnings"))
}

fn alone(_: &mut Progress) -> Result<()> {
    for build in builds(&Workspace::load()?) {
        println!("{build}");
        process::run(&mut build.command())?;
    }
    Ok(())
}

/// The project's own vectors, and the full collections where they lie beside the checkout.
fn vectors(_: &mut Progress) -> Result<()> {
    let beside =
        ["turn", "descriptor", "workspace-tools"].map(|kind| root().join("../shared/vectors").join(kind));
    let mut folders = vec![root().join("fixtures/conformance")];
    folders.extend(beside.into_iter().filter(|folder| folder.is_dir()));
    conformance::run_folders(folders)
}

fn fuzz(_: &mut Progress) -> Result<()> {
    fuzz::run(&fuzz::Options::default())
}

fn deny(_: &mut Progress) -> Result<()> {
    if !process::succeeds(&mut process::cargo(["deny", "--version"])) {
        process::run(&mut process::cargo(["install", "--locked", "cargo-deny"]))?;
    }
    process::run(&mut process::cargo(["deny", "--all-features", "check", "licenses", "bans", "sources"]))
}

fn first_command(_: &mut Progress) -> Result<()> {
    readme::try_first_command(&Workspace::load()?)
}

fn end_to_end(_: &mut Progress) -> Result<()> {
    e2e::run(&e2e::Options::default())
}
