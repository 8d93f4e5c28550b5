//! The pictures of all sound descriptors under `fixtures/`: Mermaid's own parser takes them, and finds
//! in them as many agents as the descriptor has.

use std::fs;
use std::path::{Path, PathBuf};

use harness::descriptor::check::{CheckOptions, check_file};
use serde::{Deserialize, Serialize};

use crate::support::{harness, root};
use crate::{installed, other, ran};

const SCRIPT: &str = include_str!("parse_graphs.mjs");

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

#[test]
fn mermaid_finds_every_agent_in_a_graph() {
    let folder = installed("mermaid");
    let pictures: Vec<Picture> = descriptors().iter().filter_map(|path| picture(path)).collect();
    fs::write(folder.join("graphs.json"), serde_json::to_string(&pictures).unwrap()).unwrap();
    fs::write(folder.join("parse.mjs"), SCRIPT).unwrap();
    let mut node = other("node", &folder);
    node.args(["parse.mjs", "graphs.json"]);
    let found: Vec<Found> = ran(node).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ours: Vec<_> = pictures.iter().map(|picture| (&picture.name, picture.agents)).collect();
    let theirs: Vec<_> = found.iter().map(|found| (&found.name, found.agents)).collect();
    assert_eq!(ours, theirs);
    let handoffs: usize = found.iter().map(|found| found.handoffs).sum();
    println!("{} graphs, {handoffs} handoffs", found.len());
}

/// The graph of a descriptor; `None` if the descriptor is faulty.
fn picture(path: &Path) -> Option<Picture> {
    let report = check_file(path, &CheckOptions::default());
    let agents = report.graph()?.agents().len();
    let name = path.to_str().unwrap().to_owned();
    let text = ran(harness(&root(), &["graph", &name]));
    Some(Picture { name, text, agents })
}

/// All descriptors under `fixtures/`, sorted.
fn descriptors() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for (folder, file) in [("descriptors", "descriptor.yaml"), ("examples", "harness.yaml")] {
        let cases = fs::read_dir(root().join("fixtures").join(folder)).unwrap();
        found.extend(cases.map(|case| case.unwrap().path().join(file)).filter(|path| path.is_file()));
    }
    found.sort();
    assert!(!found.is_empty(), "there are descriptors");
    found
}
