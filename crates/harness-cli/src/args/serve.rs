//! The arguments of `harness serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::{DescriptorArg, ThreadArgs};

#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) descriptor: DescriptorArg,

    /// Listen on this address; port 0 chooses a free port, printed in the first line
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8787")]
    pub(crate) listen: SocketAddr,

    /// Store threads in this directory or database (chats.db, postgres://HOST/DATABASE), and continue those in it
    /// [default: in memory]
    #[arg(long, value_name = "DIR|DB", value_hint = ValueHint::AnyPath)]
    pub(crate) sessions: Option<PathBuf>,

    /// Serve threads on the durable engine at this URL of its ingress, in place of threads of this process; several
    /// servers of a cluster are tried in turn (repeatable). Agents, models and limits are those of its workers
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url, conflicts_with = "sessions")]
    pub(crate) engine: Vec<String>,

    /// Require the bearer token in this file, which must be private; mandatory on non-loopback
    /// addresses
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) token_file: Option<PathBuf>,

    /// Accept requests for this host name, in addition to loopback names (repeatable) [default with
    /// a non-loopback --listen: all names]
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_host: Vec<String>,

    /// Accept requests from web pages of this origin, for example https://app.example.com
    /// (repeatable) [default: none]
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) allow_origin: Vec<String>,

    #[command(flatten)]
    pub(crate) threads: ThreadArgs,
}

const NOTES: &str = "\
Open http://ADDRESS:PORT/ in a browser to chat, and /docs for the routes. Clients of OpenAI use the base
URL http://ADDRESS:PORT/v1 and the model harness. --log info logs each request to standard error.

Ctrl-C ends streams and runs and saves the sessions; a second Ctrl-C exits immediately.";
