//! Measuring, one after another.

use std::path::PathBuf;

use super::peers::{PEERS, Place};
use super::{ours, table};
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
}

/// Runs the chore. A peer that cannot be measured is named and left out.
pub(crate) fn run(chore: &Chore) -> Result<()> {
    let Chore::Peers { drivers } = chore;
    let place = Place {
        drivers: drivers.clone().unwrap_or_else(|| root().join("../shared/bench/peers")),
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
