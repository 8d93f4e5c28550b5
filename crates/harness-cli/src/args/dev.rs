//! The arguments of `harness dev`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::DescriptorArg;
use crate::env;

#[derive(Debug, Args)]
pub(crate) struct DevArgs {
    #[command(subcommand)]
    pub(crate) verb: DevVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DevVerb {
    /// Start an engine, workers and a front end on this machine, to try them
    Cluster(ClusterArgs),
}

#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(crate) struct ClusterArgs {
    #[command(flatten)]
    pub(crate) descriptor: DescriptorArg,

    /// Start so many workers
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=16))]
    pub(crate) workers: u8,

    /// Use this program as the server of the engine [default: restate-server in PATH]
    #[arg(long, value_name = "FILE", env = env::RESTATE_SERVER, hide_env_values = true, value_hint = ValueHint::FilePath)]
    pub(crate) server: Option<PathBuf>,

    /// Keep data and addresses in this directory, and continue those in it [default: a temporary one, which is removed at
    /// the end]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) data: Option<PathBuf>,

    /// Options for the workers, such as `-- --model demo`
    #[arg(last = true, value_name = "OPTIONS", allow_hyphen_values = true)]
    pub(crate) worker_options: Vec<OsString>,
}

const NOTES: &str = "\
The engine is a server of Restate, a separate program under its own license: npm install --global \
@restatedev/restate-server. All of it listens on 127.0.0.1 only, at free ports. Logs go to standard error, each line with \
the name of its process. A worker that ends is reported and not replaced, so kill one in the middle of a run to see the \
run continue on another.

Ctrl-C ends everything; a second Ctrl-C kills everything.

Exit codes:
    0  ended by Ctrl-C
    1  the engine, the front end or the last worker ended by itself
    2  invalid arguments, or a part did not start";
