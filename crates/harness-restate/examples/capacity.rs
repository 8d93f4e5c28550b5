//! How many machines a load needs: the tables of `docs/explanation/scale.md`.
//!
//! `cargo run -p harness-restate --example capacity` prints them; `-- RUNS_PER_DAY` adds a row for your own load.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example prints what it shows")]

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use harness_restate::capacity::{Cluster, Load, nodes, simulate};

/// Runs per day of the table.
pub(crate) const LOADS: [u32; 4] = [10_000, 100_000, 1_000_000, 10_000_000];
/// Seconds of a day.
const DAY: f64 = 86_400.0;
/// The busiest moment of a day, beside its mean.
const PEAK: f64 = 5.0;
/// Steps that one worker performs at once.
const WORKER: usize = 256;
/// A run waits at most so long in 95 of 100 cases.
const WAITING: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let mut loads = LOADS.to_vec();
    if let Some(given) = std::env::args().nth(1) {
        match given.parse() {
            Ok(runs) if runs > 0 => loads.push(runs),
            _ => {
                eprintln!("`{given}` is not a number of runs per day, such as 250000");
                return ExitCode::FAILURE;
            }
        }
    }
    println!("{}\n{}", machines(&loads), losses());
    ExitCode::SUCCESS
}

/// Machines by runs per day.
pub(crate) fn machines(loads: &[u32]) -> String {
    let mut table = "| runs per day | at the peak | entries stored | nodes, one copy | nodes, two copies | steps at once | workers |\n\
                     |---|---|---|---|---|---|---|\n"
        .to_owned();
    for runs in loads {
        let load = Load { runs_per_second: f64::from(*runs) / DAY * PEAK, ..Load::default() };
        // Enough places for any of these loads: the simulation tells how many are used.
        let single = Cluster { copies: 1, steps: usize::MAX, ..Cluster::default() };
        let double = Cluster { copies: 2, ..single };
        let [one, two] = [single, double].map(|cluster| nodes(&load, &cluster, WAITING));
        let large = Cluster { nodes: two.unwrap_or(1), ..double };
        // Long enough for the number of steps to settle: a run takes 45 s.
        let settled = usize::try_from(runs / 115).unwrap_or(usize::MAX).max(5_000);
        let steps = simulate(&load, &large, settled, 1).steps;
        let [one, two] = [one, two].map(|nodes| nodes.map_or("-".to_owned(), |nodes| nodes.to_string()));
        let (peak, entries) = (load.runs_per_second, load.runs_per_second * load.entries_per_run());
        let workers = steps.div_ceil(WORKER);
        let _ = writeln!(
            table,
            "| {runs} | {peak:.1}/s | {entries:.0}/s | {one} | {two} | {steps} | {workers} |"
        );
    }
    table
}

/// What lost nodes and full workers do to the time of runs, at 10 runs in a second on three nodes.
pub(crate) fn losses() -> String {
    let load = Load { runs_per_second: 10.0, ..Load::default() };
    let calm = Cluster::default();
    let lost = |every| Cluster { loss_every: Some(every), ..calm };
    let recovers =
        |seconds| Cluster { recovery: Duration::from_secs(seconds), ..lost(Duration::from_mins(10)) };
    let rows = [
        ("no loss", calm),
        ("a node lost every 10 minutes, 3 s to recover", recovers(3)),
        ("the same, 12 s to recover", recovers(12)),
        ("a node lost every minute, 3 s to recover", lost(Duration::from_mins(1))),
        ("places for 480 steps", Cluster { steps: 480, ..calm }),
        ("places for 450 steps: as many as are needed on average", Cluster { steps: 450, ..calm }),
    ];
    let mut table = "| | p50 | p95 | longest | of it waiting, p95 |\n|---|---|---|---|---|\n".to_owned();
    for (name, cluster) in rows {
        let outcome = simulate(&load, &cluster, 20_000, 1);
        let [p50, p95, max, waiting] =
            [outcome.time.p50, outcome.time.p95, outcome.time.max, outcome.waiting.p95]
                .map(|time| time.as_secs_f64());
        let _ = writeln!(table, "| {name} | {p50:.0} s | {p95:.0} s | {max:.0} s | {waiting:.1} s |");
    }
    table
}
