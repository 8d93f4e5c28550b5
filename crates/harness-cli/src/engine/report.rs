//! An engine and its runs as text.

use std::fmt::Write as _;

use harness::core::{Millis, Time};
use harness_restate::engine::restate::{EngineStatus, Failure, RunAtWork};

use crate::render::counted;

/// Characters of an error, at most.
const ERROR: usize = 300;

/// Version, deployments and how many runs there are.
pub(super) fn status(status: &EngineStatus, now: Time) -> String {
    let mut text = format!("engine {}\n", status.version);
    if status.deployments.is_empty() {
        text.push_str("no workers are registered; start one: harness worker --register\n");
    }
    for one in &status.deployments {
        let latest = if one.is_latest { ", latest" } else { "" };
        let (runs, since) = (count(one.runs, "run"), age(Some(one.since), now));
        let _ =
            writeln!(text, "deployment {} at {}: registered {since} ago, {runs}{latest}", one.id, one.url);
    }
    let runs: Vec<_> = status.runs.iter().map(|(state, count)| format!("{count} {state}")).collect();
    let runs = if runs.is_empty() { "none".to_owned() } else { runs.join(", ") };
    let _ = writeln!(text, "runs: {runs}");
    text
}

/// One line for each run, and one for each of its failures.
pub(super) fn runs(runs: &[RunAtWork], now: Time) -> String {
    let mut text = String::new();
    for run in runs {
        let deployment = run.deployment.as_deref().map(|id| format!(" on {id}")).unwrap_or_default();
        let since = run.since.map(|since| format!(" for {}", age(Some(since), now))).unwrap_or_default();
        let _ = writeln!(text, "{}: {}{since}{deployment}", run.thread, run.state);
        for failure in &run.failures {
            text.push_str(&failure_line(failure));
        }
    }
    text
}

fn failure_line(failure: &Failure) -> String {
    let what = if failure.is_step { "a step fails" } else { "it fails" };
    let error = failure.error.as_deref().unwrap_or("no error is known");
    let error: String = error.lines().collect::<Vec<_>>().join(" ").chars().take(ERROR).collect();
    format!("  {what}, {}: {error}\n", count(failure.attempts, "attempt"))
}

fn count(number: u64, one: &str) -> String {
    counted(usize::try_from(number).unwrap_or(usize::MAX), one)
}

/// The time from one moment to another, in its largest unit.
fn age(since: Option<Time>, now: Time) -> String {
    let Some(since) = since else { return "unknown time".to_owned() };
    let Millis(ms) = now.since(since);
    match ms / 1_000 {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds @ 7_200..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(ms: i64, expected: &str) {
        assert_eq!(age(Some(Time(0)), Time(ms)), expected);
    }

    #[test]
    fn ages_are_in_their_largest_unit() {
        check(-5, "0 s");
        check(119_999, "119 s");
        check(120_000, "2 min");
        check(7_200_000, "2 h");
        check(172_800_000, "2 days");
    }
}
