//! Figures beside their bars.
//!
//! A bar is the highest permitted ratio of two figures of one run. Of figures that were measured several
//! times the least counts: a busy machine can only add to a time.

use serde::de::DeserializeOwned;

use crate::fault::{Fault, Result};

/// One line of the table.
#[derive(Debug)]
pub(super) struct Row {
    /// What was measured of ours.
    pub(super) ours: String,
    /// What it stands beside.
    pub(super) against: String,
    /// The first divided by the second.
    pub(super) ratio: f64,
    /// The highest permitted ratio.
    pub(super) bar: f64,
}

/// A markdown table.
pub(super) fn table(rows: &[Row]) -> String {
    let mut lines = vec!["| ours | against | ratio | bar | |".to_owned(), "|---|---|---|---|---|".to_owned()];
    lines.extend(rows.iter().map(|Row { ours, against, ratio, bar }| {
        let verdict = if ratio <= bar { "met" } else { "not met" };
        format!("| {ours} | {against} | {ratio:.2} | {bar:.2} | {verdict} |")
    }));
    lines.join("\n")
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
