//! `harness dev`: what helps to try harness on one machine.

mod balancer;
mod cluster;
mod part;
mod place;

pub(crate) use cluster::cluster;

use crate::args::{DevArgs, DevVerb};
use crate::error::CliError;
use crate::exit::Exit;

/// Carries out `harness dev`.
pub(crate) fn dev(args: &DevArgs) -> Result<Exit, CliError> {
    let DevVerb::Cluster(args) = &args.verb;
    cluster(args)
}
