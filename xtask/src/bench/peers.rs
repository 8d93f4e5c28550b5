//! The benchmarks of other projects.
//!
//! Each peer's driver is copied into a folder of its own below the target folder, where its
//! dependencies are installed; the collection of drivers is never written to.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::fault::{Fault, Result};
use crate::npm;
use crate::process;
use crate::repo::{Workspace, copy_folder, root};

/// One figure of a peer, and the case of ours that does the same work.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Figure {
    /// The project, and what differs between its figures.
    pub(super) peer: &'static str,
    /// Our case of the same work.
    pub(super) ours: &'static str,
    /// What was measured.
    pub(super) value: Value,
    /// Of it, what the scripted model and tool take themselves, in microseconds per iteration.
    pub(super) scripted: Option<f64>,
    /// Highest resident memory of the process, in MiB.
    pub(super) peak_rss_mib: f64,
}

/// A measured time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value {
    /// Microseconds for one iteration.
    PerIteration(f64),
    /// Milliseconds for a wave of 1,000 concurrent turns.
    Wave(f64),
}

/// A peer: its name on the command line and what measures it.
pub(super) type Peer = (&'static str, fn(&Place) -> Result<Vec<Figure>>);

/// All peers, in the order of the table.
pub(super) const PEERS: &[Peer] =
    &[("agent-assistant", agent_assistant), ("pi-agent-core", pi_agent_core), ("rig", rig)];

/// Where a peer's driver comes from and where it is installed.
#[derive(Debug)]
pub(super) struct Place {
    /// The folder with one folder of drivers per peer.
    pub(super) drivers: PathBuf,
    /// The folder to install below.
    pub(super) installed: PathBuf,
}

impl Place {
    /// The drivers at `drivers`, by default those beside the checkout.
    pub(super) fn find(drivers: Option<&Path>) -> Result<Self> {
        let drivers = drivers.map_or_else(|| root().join("../shared/bench/peers"), Path::to_owned);
        if !drivers.is_dir() {
            let place = drivers.display();
            return Err(Fault::new(format!("no peers at {place}; name their folder with --peers")));
        }
        Ok(Self { drivers, installed: Workspace::load()?.target_directory.join("peers") })
    }

    /// Copies a peer's folder and returns the copy.
    pub(super) fn copy(&self, peer: &str) -> Result<PathBuf> {
        let (from, to) = (self.drivers.join(peer), self.installed.join(peer));
        copy_folder(&from, &to).map_err(|e| Fault::because(from.display(), e))?;
        Ok(to)
    }
}

fn agent_assistant(place: &Place) -> Result<Vec<Figure>> {
    const VERSION: &str = "0.10.4";
    let folder = place.copy("agent-assistant")?;
    npm::install(&folder, &["--ignore-scripts", &format!("@agent-assistant/harness@{VERSION}")])?;
    let cases = [
        ("agent-assistant, trace sink", "b", None, "loop20-fold"),
        ("agent-assistant", "b", Some("notrace"), "loop20"),
        ("agent-assistant, 1,000 turns", "c", Some("notrace"), "concurrent1000"),
    ];
    let scripted = Some(scripted_alone(&folder)?);
    let measure = |(peer, case, sink, ours): (_, &str, Option<&str>, _)| {
        let mut node = process::command("node");
        node.current_dir(&folder).args(["--expose-gc", "bench-turn.mjs"]);
        node.args(["./node_modules/@agent-assistant/harness/dist/index.js", case, VERSION]).args(sink);
        let line = process::capture(&mut node)?;
        let (value, peak_rss_mib) = agent_assistant_line(&line)?;
        Ok(Figure { peer, ours, value, scripted, peak_rss_mib })
    };
    cases.into_iter().map(measure).collect()
}

/// The scripted model and tool of that driver, in microseconds per iteration.
fn scripted_alone(folder: &Path) -> Result<f64> {
    let script = folder.join("scripted.mjs");
    std::fs::write(&script, include_str!("scripted.mjs")).map_err(|e| Fault::because(script.display(), e))?;
    let line = process::capture(process::command("node").arg("--expose-gc").arg(&script))?;
    match agent_assistant_line(&line)? {
        (Value::PerIteration(us), _) => Ok(us),
        (Value::Wave(_), _) => Err(Fault::new(format!("unexpected output of the scripted model: {line}"))),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AgentAssistantLine {
    us_per_iteration: Option<f64>,
    median_wall_ms: Option<f64>,
    #[serde(rename = "peakRssMiB")]
    peak_rss_mib: f64,
}

fn agent_assistant_line(line: &str) -> Result<(Value, f64)> {
    let unreadable = || Fault::new(format!("unexpected output of the peer: {line}"));
    let read: AgentAssistantLine = serde_json::from_str(line.trim()).map_err(|_| unreadable())?;
    let value = read.us_per_iteration.map(Value::PerIteration).or(read.median_wall_ms.map(Value::Wave));
    Ok((value.ok_or_else(unreadable)?, read.peak_rss_mib))
}

fn pi_agent_core(place: &Place) -> Result<Vec<Figure>> {
    let folder = place.copy("pi-agent-core")?;
    npm::install(&folder, &["--ignore-scripts", "@mariozechner/pi-agent-core@0.73.1"])?;
    let mut node = process::command("node");
    let line = process::capture(node.current_dir(&folder).args(["bench.mjs", "500", "20"]))?;
    Ok(vec![key_value_figure("pi-agent-core", &line)?])
}

fn rig(place: &Place) -> Result<Vec<Figure>> {
    let folder = place.copy("rig")?;
    let mut cargo = process::cargo(["run", "--quiet", "--release", "--", "500", "20"]);
    // Its own target folder: the peer's dependencies must not mix with ours.
    let line = process::capture(cargo.current_dir(&folder).env("CARGO_TARGET_DIR", folder.join("target")))?;
    Ok(vec![key_value_figure("rig", &line)?])
}

/// Reads `peer=… us_per_iteration=… peak_rss_kib=…`.
fn key_value_figure(peer: &'static str, line: &str) -> Result<Figure> {
    let number = |key: &str| -> Result<f64> {
        let word = line.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        let missing = || Fault::new(format!("no `{key}` in the peer's output: {line}"));
        word.and_then(|text| text.parse().ok()).ok_or_else(missing)
    };
    let value = Value::PerIteration(number("us_per_iteration")?);
    let peak_rss_mib = number("peak_rss_kib")? / 1024.0;
    Ok(Figure { peer, ours: "loop20-fold", value, scripted: None, peak_rss_mib })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_peers_are_read() {
        let line = "peer=rig-agent turns=500 iterations=20 turns_per_s=1.0 us_per_iteration=86.5 peak_rss_kib=8192\n";
        let figure = key_value_figure("rig", line).unwrap();
        assert_eq!(figure.value, Value::PerIteration(86.5));
        assert_eq!(figure.peak_rss_mib.to_string(), "8");
    }

    #[test]
    fn the_lines_of_agent_assistant_are_read() {
        let line = r#"{"case":"b","usPerIteration":6.8,"peakRssMiB":75.1}"#;
        assert_eq!(agent_assistant_line(line), Ok((Value::PerIteration(6.8), 75.1)));
        let line = r#"{"case":"c","medianWallMs":409.5,"peakRssMiB":113}"#;
        assert_eq!(agent_assistant_line(line), Ok((Value::Wave(409.5), 113.0)));
        assert!(agent_assistant_line("oops").unwrap_err().to_string().ends_with("of the peer: oops"));
    }
}
