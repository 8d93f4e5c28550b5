//! How long the program takes to start: measured and printed, not judged, because a shared
//! machine's times prove nothing.

use std::time::Duration;

use super::program::Program;
use xtask::fault::Result;
use xtask::process;
use xtask::stopwatch::Stopwatch;

const RUNS: usize = 20;

/// The descriptor that the start of `check` is measured with.
const EXAMPLE: &str = "fixtures/examples/customer-support/harness.yaml";

pub(super) fn run(program: &Program) -> Result<String> {
    let version = median(|| process::capture(&mut program.command(["--version"])))?;
    let check = median(|| process::capture(&mut program.command(["check", EXAMPLE])))?;
    Ok(format!("median of {RUNS}: --version {version:.1?}, check {check:.1?}"))
}

fn median<T>(mut start: impl FnMut() -> Result<T>) -> Result<Duration> {
    let mut times = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let watch = Stopwatch::start();
        start()?;
        times.push(watch.elapsed());
    }
    times.sort_unstable();
    Ok(times.get(RUNS / 2).copied().unwrap_or_default())
}
