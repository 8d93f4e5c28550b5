//! The arguments of `harness bridge`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use harness::adapters::local::LocalAgent;

use crate::env;

/// Supported programs, by their name on the command line.
const CLIS: &str = "claude|codex|opencode|gemini|bash";

#[derive(Debug, Args)]
#[command(after_help = notes())]
pub(crate) struct BridgeArgs {
    /// Program that answers requests: claude, codex, opencode, gemini or bash
    #[arg(long, value_name = "CLI", default_value = "claude", value_parser = cli)]
    pub(crate) cli: LocalAgent,

    /// Script for bash, which reads the prompt from standard input [default: cat]
    #[arg(long, value_name = "SCRIPT", allow_hyphen_values = true)]
    pub(crate) cli_args: Option<String>,

    /// Join this channel
    #[arg(long, value_name = "NAME", default_value = "specialists", env = env::RELAY_CHANNEL)]
    pub(crate) channel: String,

    /// Answer requests for this worker name
    #[arg(long, value_name = "NAME", default_value = "specialist-worker", env = env::RELAY_WORKER)]
    pub(crate) worker_name: String,

    /// Run the program in this directory [default: the current one]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: Option<PathBuf>,

    /// Model for the program
    #[arg(long, value_name = "MODEL", env = env::RELAY_MODEL)]
    pub(crate) model: Option<String>,

    /// Limit the time of one response, in milliseconds
    #[arg(long, value_name = "MS", default_value = "120000", env = env::BRIDGE_TIMEOUT, value_parser = timeout)]
    pub(crate) timeout_ms: Duration,

    /// Maximum number of concurrent requests
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) concurrency: u16,

    /// Answer with the agents of this descriptor instead of a program
    #[arg(long, value_name = "FILE", conflicts_with_all = ["cli", "cli_args", "cwd"], value_hint = ValueHint::FilePath)]
    pub(crate) descriptor: Option<PathBuf>,

    /// Bind tools with this registry file [default: `registry.yaml` next to the descriptor]
    #[arg(long, value_name = "FILE", requires = "descriptor", value_hint = ValueHint::FilePath)]
    pub(crate) registry: Option<PathBuf>,

    /// Send model requests of the descriptor to this OpenAI-compatible endpoint; its API key is
    /// read from HARNESS_API_KEY
    #[arg(long, value_name = "URL", requires = "descriptor", value_hint = ValueHint::Url)]
    pub(crate) base_url: Option<String>,

    #[command(flatten)]
    pub(crate) broker: BrokerArgs,
}

/// Location of the broker.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Relay")]
pub(crate) struct BrokerArgs {
    /// Use the broker of this project directory [default: the current one]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) relay_dir: Option<PathBuf>,

    /// Directory of the broker's connection file [default: .agent-relay or .agentworkforce/relay in
    /// the project directory]
    #[arg(long, value_name = "DIR", env = env::RELAY_STATE, value_hint = ValueHint::DirPath)]
    pub(crate) relay_state_dir: Option<PathBuf>,
}

fn cli(text: &str) -> Result<LocalAgent, String> {
    LocalAgent::parse(text).ok_or_else(|| format!("--cli must be one of {CLIS} (got '{text}')"))
}

fn timeout(text: &str) -> Result<Duration, String> {
    let ms = text.trim().parse().ok().filter(|ms| *ms > 0);
    ms.map(Duration::from_millis).ok_or_else(|| "--timeout-ms must be a positive integer".to_owned())
}

fn notes() -> &'static str {
    "The worker registers with the Agent Relay broker of the project, answers requests of \
     orchestrators, and logs to standard error. No part of a message is \
     interpreted: the prompt goes to the program's standard input.\n\n\
     Ctrl-C waits for running requests, accepts no new ones and releases the \
     worker; a second Ctrl-C stops running requests."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_values_name_the_flag_and_what_it_takes() {
        let text = "--cli must be one of claude|codex|opencode|gemini|bash (got 'x')";
        assert_eq!(cli("x").unwrap_err(), text);
        assert_eq!(cli("codex").unwrap(), LocalAgent::Codex);
        for wrong in ["0", "-1", "1.5", "x", ""] {
            assert_eq!(timeout(wrong).unwrap_err(), "--timeout-ms must be a positive integer", "{wrong}");
        }
        assert_eq!(timeout("1500").unwrap(), Duration::from_millis(1_500));
    }
}
