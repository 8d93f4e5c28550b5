//! Our own benchmark.

use serde::Deserialize;

use crate::fault::{Fault, Result};
use crate::process;

/// One line of `cargo bench --bench turn -- --json`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Case {
    /// Such as `loop20-fold`.
    #[serde(rename = "case")]
    pub(super) name: String,
    /// Microseconds for one iteration: a model call and a tool call.
    pub(super) us_per_iteration: Option<f64>,
    /// Highest resident memory of the process, in MiB.
    pub(super) peak_rss_mib: Option<f64>,
    /// Resident memory before the work, in MiB.
    pub(super) idle_rss_mib: Option<f64>,
    /// Time of one wave of concurrent turns, in milliseconds.
    pub(super) wall_ms: Option<f64>,
    /// Time of as many tasks that only sleep, in milliseconds.
    pub(super) baseline_ms: Option<f64>,
}

/// Builds and runs it.
pub(super) fn measure() -> Result<Vec<Case>> {
    let mut cargo = process::cargo(["bench", "--package", "harness", "--bench", "turn", "--", "--json"]);
    parse(&process::capture(&mut cargo)?)
}

fn parse(output: &str) -> Result<Vec<Case>> {
    let lines = output.lines().filter(|line| line.starts_with('{'));
    let cases: Vec<Case> = lines
        .map(|line| {
            serde_json::from_str(line).map_err(|e| Fault::because(format!("benchmark line {line}"), e))
        })
        .collect::<Result<_>>()?;
    if cases.is_empty() { Err(Fault::new("the benchmark printed no case")) } else { Ok(cases) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_read_and_other_lines_are_not() {
        let cases =
            parse("running\n{\"case\":\"loop20\",\"us_per_iteration\":1.25,\"peak_rss_mib\":9}\n").unwrap();
        let expected = Case {
            name: "loop20".into(),
            us_per_iteration: Some(1.25),
            peak_rss_mib: Some(9.0),
            ..Case::default()
        };
        assert_eq!(cases, [expected]);
        assert_eq!(parse("nothing").unwrap_err().to_string(), "the benchmark printed no case");
    }
}
