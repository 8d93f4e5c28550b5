//! `cargo xtask fuzz`: reading changed documents and streams for as long as one likes.

use std::time::Duration;

use crate::fault::{Fault, Result};
use crate::process;
use crate::stopwatch::Stopwatch;

/// How long, and from where.
#[derive(clap::Args, Debug)]
pub(crate) struct Options {
    /// Starts no further round after this many seconds.
    #[arg(long, value_name = "N", default_value_t = 60)]
    seconds: u64,
    /// The seed of the first round; each further round adds one.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Inputs of each test in a round.
    #[arg(long, value_name = "N", default_value_t = 4000)]
    cases: u64,
}

impl Options {
    /// So many seconds, from a seed that nobody has tried.
    pub(crate) fn fresh(seconds: u64) -> Self {
        Self { seconds, seed: fresh_seed(), cases: 4000 }
    }
}

/// A seed that differs from run to run; whoever uses it prints it.
pub(crate) fn fresh_seed() -> u64 {
    use std::hash::{BuildHasher as _, RandomState};
    // Short enough to be typed again.
    RandomState::new().hash_one("seed") % 1_000_000_000
}

/// The fuzz tests: a package and a test of its integration binary.
const TARGETS: [(&str, &str); 2] =
    [("harness-descriptor", "fuzz::changed_documents"), ("harness-adapters", "fuzz::changed_streams")];

/// Runs rounds of every fuzz test. A round depends on its seed alone.
pub(crate) fn run(options: &Options) -> Result<()> {
    let watch = Stopwatch::start();
    let mut rounds = 0;
    while rounds == 0 || watch.elapsed() < Duration::from_secs(options.seconds) {
        let seed = options.seed + rounds;
        for (package, test) in TARGETS {
            let mut cargo = process::cargo(["test", "--quiet", "--package", package, "--test", "it"]);
            cargo.args(["--", "--exact", test]);
            cargo.env("HARNESS_FUZZ_SEED", seed.to_string());
            cargo.env("HARNESS_FUZZ_CASES", options.cases.to_string());
            process::capture(&mut cargo).map_err(|fault| {
                let again = format!("cargo xtask fuzz --seconds 0 --seed {seed} --cases {}", options.cases);
                Fault::new(format!("{test}, seed {seed}: {fault}; again with `{again}`"))
            })?;
        }
        rounds += 1;
    }
    println!("{} inputs of each test from seed {}", rounds * options.cases, options.seed);
    Ok(())
}
