//! The steps, in their order.
//!
//! The steps of the gate share one target folder. Everything that only has to compile goes through clippy, so that
//! the builds of single crates reuse its metadata and still refuse warnings.

use crate::fault::{Fault, Result};
use crate::process;
use crate::repo::Workspace;

use super::features;
use super::plan::Progress;
use super::readme;
use crate::{bench, conformance, docs, e2e, fuzz, sim};

/// One step.
pub(super) struct Step {
    /// Its name on the command line.
    pub(super) name: &'static str,
    /// What it checks.
    pub(super) what: &'static str,
    /// Does it.
    pub(super) run: fn(&mut Progress) -> Result<()>,
}

const fn step(name: &'static str, what: &'static str, run: fn(&mut Progress) -> Result<()>) -> Step {
    Step { name, what, run }
}

/// What every change passes: cheap steps first, and none that needs what a later one builds.
pub(super) const GATE: &[Step] = &[
    step("fmt", "formatting", fmt),
    step("clippy", "lints, all targets and features", clippy),
    step("tests", "tests and doc tests of all crates", tests),
    step("docs", "documentation without warnings", documentation),
    step("features", "a sample of crates and features alone", sampled_features),
    step("conformance", "golden vectors", vectors),
    step("deny", "licenses, duplicates and sources of dependencies", deny),
    step("readme", "the README's first command in a fresh clone", first_command),
    step("e2e", "the program end to end", end_to_end),
];

/// What takes too long for every change.
pub(super) const NIGHTLY: &[Step] = &[
    step("features", "every crate and every feature alone", all_features),
    step("fuzz", "ten minutes of changed documents and streams, from a fresh seed", long_fuzz),
    step("sim", "10,000 simulated timelines, from a fresh seed", simulations),
    step("release", "the release program end to end", release),
    step("dist", "the program as it is shipped, and its size", shipped),
    step("kills", "2,000 runs killed at random moments", kills),
    step("cluster", "ten minutes of a cluster whose nodes are killed", cluster),
    step("agents", "four agents of other makers, installed and driven", |progress| only("agents", progress)),
    step("local-model", "a small model on this machine", |progress| only("local-model", progress)),
    step("peers", "benchmarks beside other projects", peers),
];

fn fmt(_: &mut Progress) -> Result<()> {
    process::run(&mut process::cargo(["fmt", "--all", "--check"]))
}

fn clippy(_: &mut Progress) -> Result<()> {
    // A target that only `cargo xtask e2e` runs is not among all targets.
    for targets in [&["--all-targets"][..], &["--test", "e2e"]] {
        let mut cargo = process::cargo(["clippy", "--workspace", "--all-features"]);
        process::run(cargo.args(targets).args(["--", "-D", "warnings"]))?;
    }
    Ok(())
}

fn tests(progress: &mut Progress) -> Result<()> {
    // A pending snapshot is a failure, never a file to be found later.
    let mut cargo = process::cargo(["test", "--workspace", "--no-fail-fast"]);
    process::run_watching(cargo.env("INSTA_UPDATE", "no"), &mut |line| progress.tests.see(line))
}

fn documentation(_: &mut Progress) -> Result<()> {
    let mut cargo = process::cargo(["doc", "--no-deps", "--workspace", "--all-features"]);
    process::run(cargo.env("RUSTDOCFLAGS", "-D warnings"))?;
    docs::build_if_installed()
}

fn sampled_features(_: &mut Progress) -> Result<()> {
    features::build_sample(&Workspace::load()?)
}

fn all_features(_: &mut Progress) -> Result<()> {
    features::build_all(&Workspace::load()?)
}

fn vectors(_: &mut Progress) -> Result<()> {
    conformance::run_tested()
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

fn release(progress: &mut Progress) -> Result<()> {
    e2e::run(&e2e::Options::default().of_release(), &mut progress.tests)
}

/// Bytes that the shipped program may have.
const LARGEST: u64 = 25_000_000;

fn shipped(_: &mut Progress) -> Result<()> {
    process::run(&mut process::cargo(["build", "--profile", "dist", "--package", "harness-cli"]))?;
    let program = Workspace::load()?.target_directory.join("dist").join("harness");
    let size = std::fs::metadata(&program).map_err(|e| Fault::because(program.display(), e))?.len();
    println!("{}: {size} bytes", program.display());
    if size <= LARGEST {
        Ok(())
    } else {
        Err(Fault::new(format!("the program has more than {LARGEST} bytes")))
    }
}

fn end_to_end(progress: &mut Progress) -> Result<()> {
    e2e::run(&e2e::Options::default(), &mut progress.tests)
}

fn only(check: &str, progress: &mut Progress) -> Result<()> {
    e2e::run(&e2e::Options::only(check).of_release(), &mut progress.tests)
}

fn kills(progress: &mut Progress) -> Result<()> {
    let options = e2e::Options { kills: Some(2000), ..e2e::Options::only("kill") };
    e2e::run(&options.of_release(), &mut progress.tests)
}

fn cluster(progress: &mut Progress) -> Result<()> {
    let options = e2e::Options { seconds: Some(600), ..e2e::Options::only("cluster") };
    e2e::run(&options.of_release(), &mut progress.tests)
}

fn long_fuzz(_: &mut Progress) -> Result<()> {
    fuzz::run(&fuzz::Options::fresh(600))
}

fn simulations(_: &mut Progress) -> Result<()> {
    sim::run(&sim::Options::fresh(10_000))
}

fn peers(_: &mut Progress) -> Result<()> {
    bench::peers()
}
