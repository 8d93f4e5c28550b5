//! Figures beside their bars.
//!
//! A bar is the highest permitted ratio of two figures of one run. Of figures that were measured several
//! times the least counts: a busy machine can only add to a time.

use serde::de::DeserializeOwned;

use crate::fault::{Fault, Result};

/// One line of the table: what was measured of ours, what it stands beside, the first divided by the second, and the
/// highest permitted ratio.
pub(super) fn row(ours: &str, against: &str, ratio: f64, bar: f64) -> String {
    let verdict = if ratio <= bar { "met" } else { "not met" };
    format!("| {ours} | {against} | {ratio:.2} | {bar:.2} | {verdict} |")
}

/// A markdown table.
pub(super) fn table(rows: &[String]) -> String {
    ["| ours | against | ratio | bar | |\n|---|---|---|---|---|", &rows.join("\n")].join("\n")
}

/// Reads the first case that a benchmark printed as JSON.
pub(super) fn parse_line<T: DeserializeOwned>(output: &str) -> Result<T> {
    let line = output.lines().find(|line| line.starts_with('{'));
    let line = line.ok_or_else(|| Fault::new("the benchmark printed no case"))?;
    serde_json::from_str(line).map_err(|e| Fault::because(format!("benchmark line {line}"), e))
}

/// The least of a figure over all rounds.
pub(super) fn least<T>(cases: &[T], figure: impl Fn(&T) -> f64) -> f64 {
    cases.iter().map(figure).fold(f64::INFINITY, f64::min)
}
