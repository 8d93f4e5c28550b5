//! `cargo xtask sim`: timelines of threads that a number alone decides, one again or as many as one likes.

use crate::fault::{Fault, Result};
use crate::process;

/// Which timelines.
#[derive(clap::Args, Debug)]
pub(crate) struct Options {
    /// The seed of the first timeline; each further one adds one.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How many timelines.
    #[arg(long, value_name = "M", default_value_t = 1)]
    count: u64,
}

impl Options {
    /// So many timelines, from a seed that nobody has tried.
    pub(crate) fn fresh(count: u64) -> Self {
        Self { seed: crate::fuzz::fresh_seed(), count }
    }
}

/// The test that plays them.
const TEST: &str = "sim::whatever_happens_when_the_laws_hold";

/// Plays the timelines. The first that breaks a law is shown, with its seed.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut cargo = process::cargo(["test", "--quiet", "--package", "harness-runtime", "--test", "it"]);
    cargo.args(["--", "--exact", TEST]);
    cargo.env("HARNESS_SIM_SEED", options.seed.to_string());
    cargo.env("HARNESS_SIM_COUNT", options.count.to_string());
    process::run(&mut cargo).map_err(|fault| {
        let again = format!("cargo xtask sim --seed {} --count {}", options.seed, options.count);
        Fault::new(format!("a law is broken: {fault}; again with `{again}`"))
    })?;
    println!("{} timelines from seed {}: every law holds", options.count, options.seed);
    Ok(())
}
