//! The pictures of all sound descriptors under `fixtures/`: Mermaid's own parser takes them, and finds
//! in them as many agents as the descriptor has.
//!
//! The parser comes from the package registry of Node. Where it cannot be had, the check says so and
//! does not fail: the texts themselves are snapshots.

use std::fs;
use std::path::{Path, PathBuf};

use harness_descriptor::check::{CheckOptions, check_file};
use serde::{Deserialize, Serialize};

use super::npm;
use super::program::Program;
use xtask::fault::{Fault, Result};
use xtask::process;
use xtask::repo::{Workspace, root};

const SCRIPT: &str = include_str!("parse_graphs.mjs");
const PACKAGES: [&str; 2] = ["mermaid@11.12.0", "jsdom@26.1.0"];

/// A graph as text.
#[derive(Serialize)]
struct Picture {
    name: String,
    text: String,
    #[serde(skip)]
    agents: usize,
}

/// What Mermaid found in a graph.
#[derive(Deserialize)]
struct Found {
    name: String,
    agents: usize,
    handoffs: usize,
}

pub(super) fn run(program: &Program) -> Result<String> {
    let folder = Workspace::load()?.target_directory.join("e2e").join("mermaid");
    if let Err(fault) = npm::install(&folder, &PACKAGES) {
        return Ok(format!("skipped, because Mermaid's parser cannot be had: {fault}"));
    }
    let pictures = descriptors()?.into_iter().filter_map(|path| picture(program, &path).transpose());
    let pictures: Vec<Picture> = pictures.collect::<Result<_>>()?;
    let input = folder.join("graphs.json");
    let text = serde_json::to_string(&pictures).map_err(|e| Fault::because("graphs", e))?;
    write(&input, &text)?;
    write(&folder.join("parse.mjs"), SCRIPT)?;
    let mut node = process::command("node");
    let lines = process::capture(node.current_dir(&folder).arg("parse.mjs").arg(&input))?;
    let found: Vec<Found> = lines
        .lines()
        .map(|line| serde_json::from_str(line).map_err(|e| Fault::because(line, e)))
        .collect::<Result<_>>()?;
    for (picture, found) in pictures.iter().zip(&found) {
        if (&picture.name, picture.agents) != (&found.name, found.agents) {
            let Picture { name, agents, .. } = picture;
            return Err(Fault::new(format!("the graph of {name} shows {} of {agents} agents", found.agents)));
        }
    }
    if found.len() != pictures.len() {
        return Err(Fault::new(format!("{} of {} graphs were read", found.len(), pictures.len())));
    }
    let handoffs: usize = found.iter().map(|found| found.handoffs).sum();
    Ok(format!("{} graphs, {handoffs} handoffs", found.len()))
}

/// The graph of a descriptor; `None` if the descriptor is faulty.
fn picture(program: &Program, path: &Path) -> Result<Option<Picture>> {
    let report = check_file(path, &CheckOptions::default());
    let Some(graph) = report.graph() else { return Ok(None) };
    let name = path.to_string_lossy().into_owned();
    let text = process::capture(&mut program.command(["graph", &name]))?;
    Ok(Some(Picture { name, text, agents: graph.agents().len() }))
}

/// All descriptors under `fixtures/`, sorted.
fn descriptors() -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for (folder, file) in [("descriptors", "descriptor.yaml"), ("examples", "harness.yaml")] {
        let folder = root().join("fixtures").join(folder);
        let cases = fs::read_dir(&folder).map_err(|e| Fault::because(folder.display(), e))?;
        found.extend(cases.flatten().map(|case| case.path().join(file)).filter(|path| path.is_file()));
    }
    found.sort();
    Ok(found)
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(|e| Fault::because(path.display(), e))
}
