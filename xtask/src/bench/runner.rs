//! Measuring, one after another.

use std::path::{Path, PathBuf};

use super::peers::{PEERS, Place};
use super::{descriptor, ours, table};
use crate::fault::{Fault, Result};
use crate::repo::{Workspace, root};

/// What to measure.
#[derive(clap::Subcommand)]
pub(crate) enum Chore {
    /// Our turn loop and those of other projects, in one go; prints a markdown table.
    Peers {
        /// The folder with the peers' drivers.
        #[arg(long = "peers", value_name = "DIR")]
        drivers: Option<PathBuf>,
    },
    /// Loading, hashing and rendering a large descriptor, beside js-yaml and against the bars.
    Descriptor {
        /// The folder with `harness.yaml`, its prompts, `template.yaml` and `template-context.json`.
        ///
        /// Default: `../shared/bench/inputs/descriptor-big`, or one that is made.
        #[arg(long, value_name = "DIR")]
        input: Option<PathBuf>,
    },
}

/// Runs the chore. A peer that cannot be measured is named and left out.
pub(crate) fn run(chore: &Chore) -> Result<()> {
    match chore {
        Chore::Peers { drivers } => beside_peers(drivers.as_deref()),
        Chore::Descriptor { input } => descriptor::run(input.clone()),
    }
}

fn beside_peers(drivers: Option<&Path>) -> Result<()> {
    let place = Place {
        drivers: drivers.map_or_else(|| root().join("../shared/bench/peers"), Path::to_owned),
        installed: Workspace::load()?.target_directory.join("peers"),
    };
    if !place.drivers.is_dir() {
        return Err(Fault::new(format!(
            "no peers at {}; name their folder with --peers",
            place.drivers.display()
        )));
    }
    let ours = ours::measure()?;
    let mut figures = Vec::new();
    for (name, measure) in PEERS {
        println!("measuring {name}");
        match measure(&place) {
            Ok(found) => figures.extend(found),
            Err(fault) => println!("left out {name}: {fault}"),
        }
    }
    println!("\n{}", table::render(&ours, &figures));
    Ok(())
}
