//! The cost of a descriptor against its bars.
//!
//! Rounds alternate between our benchmark and the peer.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::bars::{least, parse_line, row, table};
use crate::fault::{Fault, Result};
use crate::npm;
use crate::process;
use crate::repo::{Workspace, root};

const ROUNDS: usize = 5;
const PEER: &str = "js-yaml@4.1.1";

/// One line of either benchmark; each case has some of these figures.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Case {
    #[serde(rename = "case")]
    name: String,
    best_ms: f64,
    cpu_ms: f64,
    ns_per_byte_1: f64,
    ns_per_byte_16: f64,
    input_bytes: f64,
    peak_bytes: f64,
}

/// Measures everything and prints a table.
pub(super) fn run(input: Option<PathBuf>) -> Result<()> {
    let target = Workspace::load()?.target_directory;
    let folder = match input {
        Some(folder) => folder,
        None => default_input(&target)?,
    };
    println!("measuring {}", folder.display());
    let peer = Peer::install(&target.join("peers/js-yaml"))?;
    let yaml = folder.join("harness.yaml");
    let (mut load, mut parse) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        load.push(ours("descriptor", &folder, &["--only", "load"])?);
        parse.push(peer.measure(&yaml)?);
    }
    let figures = Figures {
        load: least(&load, |case| case.best_ms),
        parse: least(&parse, |case| case.best_ms),
        renders: ours("descriptor", &folder, &["--only", "renders"])?.cpu_ms,
        linear: ours("descriptor", &folder, &["--only", "linear"])?,
        heap: ours("heap", &folder, &[])?,
    };
    println!("\n{}", figures.table());
    Ok(())
}

/// The folder beside the checkout, or one made below the target folder.
fn default_input(target: &Path) -> Result<PathBuf> {
    let beside = root().join("../shared/bench/inputs/descriptor-big");
    if beside.is_dir() {
        return Ok(beside);
    }
    let made = target.join("bench/descriptor");
    let mut cargo = bench("descriptor");
    process::run(cargo.arg("--make").arg(&made))?;
    Ok(made)
}

fn bench(name: &str) -> std::process::Command {
    process::cargo(["bench", "--quiet", "--package", "harness-descriptor", "--bench", name, "--"])
}

fn ours(name: &str, folder: &Path, more: &[&str]) -> Result<Case> {
    let mut cargo = bench(name);
    cargo.arg("--json").arg("--input").arg(folder).args(more);
    parse_line(&process::capture(&mut cargo)?)
}

struct Peer {
    folder: PathBuf,
}

impl Peer {
    fn install(folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder).map_err(|e| Fault::because(folder.display(), e))?;
        let script = folder.join("parse.mjs");
        std::fs::write(&script, include_str!("js_yaml.mjs"))
            .map_err(|e| Fault::because(script.display(), e))?;
        npm::install(folder, &["--ignore-scripts", PEER])?;
        Ok(Self { folder: folder.to_owned() })
    }

    fn measure(&self, yaml: &Path) -> Result<Case> {
        let yaml = std::path::absolute(yaml).map_err(|e| Fault::because(yaml.display(), e))?;
        let mut node = process::command("node");
        parse_line(&process::capture(node.current_dir(&self.folder).arg("parse.mjs").arg(yaml))?)
    }
}

#[derive(Debug)]
struct Figures {
    load: f64,
    parse: f64,
    renders: f64,
    linear: Case,
    heap: Case,
}

impl Figures {
    fn table(&self) -> String {
        let Self { load, parse, renders, linear, heap } = self;
        let mebibytes = |bytes: f64| bytes / f64::from(1 << 20);
        table(&[
            row(
                &format!("load, materialize, hash: {load:.2} ms"),
                &format!("{PEER} parses: {parse:.2} ms"),
                load / parse,
                1.5,
            ),
            row(&format!("10,000 renders: {renders:.1} ms of CPU"), "20 ms", renders / 20.0, 1.0),
            row(
                &format!("peak heap: {:.2} MiB", mebibytes(heap.peak_bytes)),
                &format!("YAML and prompts: {:.2} MiB", mebibytes(heap.input_bytes)),
                heap.peak_bytes / heap.input_bytes,
                3.0,
            ),
            row(
                &format!("16 times the text: {:.2} ns per byte", linear.ns_per_byte_16),
                &format!("once: {:.2} ns per byte", linear.ns_per_byte_1),
                linear.ns_per_byte_16 / linear.ns_per_byte_1,
                1.25,
            ),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_stand_beside_their_bars() {
        let linear: Case =
            parse_line("x\n{\"case\":\"linear\",\"ns_per_byte_1\":4,\"ns_per_byte_16\":6}\n").unwrap();
        let heap: Case =
            parse_line(r#"{"case":"heap","hash":"h","peak_bytes":4194304,"input_bytes":2097152}"#).unwrap();
        let figures = Figures { load: 8.0, parse: 10.0, renders: 12.0, linear, heap };
        insta::assert_snapshot!(figures.table(), @r"
        | ours | against | ratio | bar | |
        |---|---|---|---|---|
        | load, materialize, hash: 8.00 ms | js-yaml@4.1.1 parses: 10.00 ms | 0.80 | 1.50 | met |
        | 10,000 renders: 12.0 ms of CPU | 20 ms | 0.60 | 1.00 | met |
        | peak heap: 4.00 MiB | YAML and prompts: 2.00 MiB | 2.00 | 3.00 | met |
        | 16 times the text: 6.00 ns per byte | once: 4.00 ns per byte | 1.50 | 1.25 | not met |
        ");
        assert_eq!(parse_line::<Case>("nothing").unwrap_err().to_string(), "the benchmark printed no case");
    }
}
