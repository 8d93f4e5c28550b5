//! `harness hash`.

use std::fmt::Write as _;

use harness::descriptor::{Descriptor, DescriptorHash, load_file};
use serde::Serialize;

use crate::args::HashArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;
use crate::render::one_line;

/// A hash of something that has a name.
#[derive(Serialize)]
struct Named {
    id: String,
    hash: String,
}

/// The output of `--json`.
#[derive(Serialize)]
struct Hashes {
    hash: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    agents: Option<Vec<Named>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<Vec<Named>>,
}

/// Prints the hash of a descriptor, and of its agents and parts if they are asked for.
pub(crate) fn hash(args: &HashArgs) -> Result<Exit, CliError> {
    let descriptor = load_file(&args.descriptor.find()?)?;
    let hashes = Hashes::of(&descriptor, args);
    if args.json {
        return output::print_json(&hashes, Exit::Completed);
    }
    output::print(&hashes.lines(), Exit::Completed)
}

impl Hashes {
    fn of(descriptor: &Descriptor, args: &HashArgs) -> Self {
        Self {
            hash: descriptor.hash().to_string(),
            agents: args.agents.then(|| named(descriptor.agent_hashes())),
            parts: args.parts.then(|| named(descriptor.part_hashes())),
        }
    }

    /// The hash alone, or lines that tools for columns can read: `hash  agent ID`.
    fn lines(&self) -> String {
        let mut text = self.hash.clone();
        let mut add = |kind: &str, list: &Option<Vec<Named>>| {
            for Named { id, hash } in list.iter().flatten() {
                let _ = write!(text, "\n{hash}  {kind} {}", one_line(id));
            }
        };
        add("agent", &self.agents);
        add("part", &self.parts);
        text.push('\n');
        text
    }
}

fn named<'a>(hashes: impl Iterator<Item = (&'a str, DescriptorHash)>) -> Vec<Named> {
    hashes.map(|(id, hash)| Named { id: id.to_owned(), hash: hash.to_string() }).collect()
}
