//! Measuring, one after another.

use std::path::{Path, PathBuf};

use super::peers::{PEERS, Place};
use super::{adapters, descriptor, ours, session, table, threads};
use crate::fault::Result;

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
    /// Reading streamed answers: assembly alone, and what an adapter adds to a connection, against the bars.
    Adapters,
    /// Appending to and loading a session file of 100,000 messages, beside pi and against the bars.
    Session {
        /// The folder with the peers' drivers.
        #[arg(long = "peers", value_name = "DIR")]
        drivers: Option<PathBuf>,
    },
    /// Threads: a turn beside slow readers, how late events come, an abort, idle ones; against the bars.
    Threads,
}

/// Runs the chore. A peer that cannot be measured is named and left out.
pub(crate) fn run(chore: &Chore) -> Result<()> {
    match chore {
        Chore::Peers { drivers } => beside_peers(drivers.as_deref()),
        Chore::Descriptor { input } => descriptor::run(input.clone()),
        Chore::Adapters => adapters::run(),
        Chore::Threads => threads::run(),
        Chore::Session { drivers } => session::run(&Place::find(drivers.as_deref())?),
    }
}

/// Our turn loop and those of other projects, with the drivers that lie beside the checkout.
pub(crate) fn peers() -> Result<()> {
    beside_peers(None)
}

fn beside_peers(drivers: Option<&Path>) -> Result<()> {
    let place = Place::find(drivers)?;
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
