//! The arguments of `harness worker`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use harness::core::Millis;

use super::{AgentArgs, DescriptorArg, EngineArgs, values};

#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(crate) struct WorkerArgs {
    #[command(flatten)]
    pub(crate) descriptor: DescriptorArg,

    #[command(flatten)]
    pub(crate) engine: EngineArgs,

    /// Listen for the engine on this address; port 0 chooses a free port, printed in the first line
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9080")]
    pub(crate) listen: SocketAddr,

    /// URL under which the engine reaches this worker; workers of one build share a URL of a load balancer
    /// [default: that of a loopback --listen]
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) advertise: Option<String>,

    /// Register the URL at the engine; new runs then use workers of this URL
    #[arg(long)]
    pub(crate) register: bool,

    /// Accept requests signed by the engine with this public key (publickeyv1_…) (repeatable); mandatory on
    /// non-loopback addresses unless --insecure is set
    #[arg(long, value_name = "KEY")]
    pub(crate) identity_key: Vec<String>,

    /// Accept unsigned requests on any address, in a private network
    #[arg(long)]
    pub(crate) insecure: bool,

    /// Send deltas of answers to the front end at this URL of its --relay-listen; a host name with several addresses is as
    /// many front ends (repeatable)
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) relay: Vec<String>,

    /// Send the bearer token in this file, which must be private, to front ends
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "relay")]
    pub(crate) relay_token_file: Option<PathBuf>,

    /// Limit the models and tools at work in this process; others wait
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) max_steps: u16,

    /// Park a run that has waited so long for a decision; it then holds no worker
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = values::time)]
    pub(crate) park_after: Millis,

    /// Wait so long for requests at hand after Ctrl-C; the engine continues the rest elsewhere
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = values::time)]
    pub(crate) drain: Millis,

    #[command(flatten)]
    pub(crate) agents: AgentArgs,
}

const NOTES: &str = "\
The engine is a server of Restate, a separate program (npm: @restatedev/restate-server). It stores threads and \
calls workers over HTTP/2; clients send messages to a front end, never to a worker. API keys stay on the workers. \
Workers have no state: start several, and stop or kill each at any time.

Ctrl-C finishes requests at hand; a second Ctrl-C exits immediately, and the engine continues elsewhere.";
