//! The arguments of `harness engine`, and those of an engine.

use clap::{Args, Subcommand, ValueHint};

/// URLs of an engine.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Engine")]
pub(crate) struct EngineArgs {
    /// URL of the ingress of the engine; several servers of a cluster are tried in turn (repeatable)
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080", value_hint = ValueHint::Url)]
    pub(crate) engine: Vec<String>,

    #[command(flatten)]
    pub(crate) admin: AdminArg,
}

/// URL of the admin API.
#[derive(Clone, Debug, Args)]
pub(crate) struct AdminArg {
    /// URL of the admin API of the engine
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:9070", value_hint = ValueHint::Url)]
    pub(crate) admin: String,
}

#[derive(Debug, Args)]
#[command(after_help = CODES)]
pub(crate) struct EngineCommandArgs {
    #[command(subcommand)]
    pub(crate) verb: EngineVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum EngineVerb {
    /// Print the version of the engine, its deployments and the runs at work
    Status(EngineStatusArgs),
    /// List the runs that need a person: paused, lost, or failing again and again
    Stuck(EngineStatusArgs),
    /// Resume the paused run of a thread, after its cause was corrected
    Resume(EngineResumeArgs),
    /// Send new work to the workers of a URL, also when others were registered later
    Register(EngineRegisterArgs),
    /// End the run of a thread that does not end by itself, and free the thread
    Settle(EngineSettleArgs),
}

impl EngineVerb {
    /// Whether the output is JSON, including errors.
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::Status(args) | Self::Stuck(args) => args.json,
            Self::Resume(args) => args.json,
            Self::Register(args) => args.json,
            Self::Settle(args) => args.json,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct EngineStatusArgs {
    #[command(flatten)]
    pub(crate) admin: AdminArg,

    /// List at most so many runs, the oldest first
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) limit: u32,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EngineResumeArgs {
    /// Thread of the run
    #[arg(value_name = "THREAD", required_unless_present = "all")]
    pub(crate) thread: Option<String>,

    /// Resume all paused runs, at most 1,000
    #[arg(long, conflicts_with = "thread")]
    pub(crate) all: bool,

    /// Move the run to the workers that were registered last, instead of those that it started with
    #[arg(long)]
    pub(crate) latest: bool,

    #[command(flatten)]
    pub(crate) admin: AdminArg,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EngineRegisterArgs {
    /// URL under which the engine reaches the workers, which must be running
    #[arg(value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) workers: String,

    #[command(flatten)]
    pub(crate) admin: AdminArg,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EngineSettleArgs {
    /// Thread of the run
    #[arg(value_name = "THREAD")]
    pub(crate) thread: String,

    /// Reason, stored as the result of the run
    #[arg(long, value_name = "TEXT", default_value = "ended by an operator")]
    pub(crate) reason: String,

    /// Settle a run that is at work, too
    #[arg(long)]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) engine: EngineArgs,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

const CODES: &str = "\
A settled run keeps what it wrote. Calls without a result count as interrupted, because they may have happened, and \
messages that the run had not read wait for the next one.

Exit codes:
    0  done; `stuck` found nothing
    1  `stuck` found a run that needs a person
    2  invalid arguments, an unreachable engine, or a request that it rejects";
