//! How long the program takes to start: measured and printed, not judged, because a shared
//! machine's times prove nothing.

use std::time::Duration;

use crate::support::{harness, root};
use crate::{EXAMPLE, ran, timed};

const RUNS: usize = 20;

#[test]
fn the_program_starts() {
    let (version, check) = (median(&["--version"]), median(&["check", EXAMPLE]));
    println!("median of {RUNS}: --version {version:.1?}, check {check:.1?}");
}

fn median(arguments: &[&str]) -> Duration {
    let mut times: Vec<_> = (0..RUNS).map(|_| timed(|| ran(harness(&root(), arguments))).1).collect();
    times.sort_unstable();
    times[RUNS / 2]
}
