//! The arguments of `harness doctor`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use harness::core::Millis;

use super::values;

#[derive(Debug, Args)]
#[command(after_help = CODES)]
pub(crate) struct DoctorArgs {
    /// Check this directory for sessions
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) folder: PathBuf,

    /// Read API keys from this file [default: the environment, then ~/.config/harness/keys.yaml]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) keys: Option<PathBuf>,

    /// Also check this endpoint
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) base_url: Option<String>,

    /// Also check this ingress of a durable engine (repeatable)
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) engine: Vec<String>,

    /// Also check the durable engine with this admin API: its workers, its clock, and the runs that need a person
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) admin: Option<String>,

    /// Limit the response time of an endpoint or an engine
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = values::time)]
    pub(crate) timeout: Millis,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

const CODES: &str = "\
Exit codes:
    0  no problems found; optional components may be missing
    1  something does not work; its line has a fix
    2  invalid arguments; nothing was checked";
