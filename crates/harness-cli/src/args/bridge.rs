//! The arguments of `harness bridge`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use harness::adapters::local::LocalAgent;

use crate::env;

/// The programs, as they are named on the command line.
const CLIS: &str = "claude|codex|opencode|gemini|bash";

#[derive(Debug, Args)]
#[command(after_help = notes())]
pub(crate) struct BridgeArgs {
    /// The program that answers each request: claude, codex, opencode, gemini or bash
    #[arg(long, value_name = "CLI", default_value = "claude", value_parser = cli)]
    pub(crate) cli: LocalAgent,

    /// For bash: the script, which reads the prompt from standard input [default: cat]
    #[arg(long, value_name = "SCRIPT", allow_hyphen_values = true)]
    pub(crate) cli_args: Option<String>,

    /// The channel that the worker joins
    #[arg(long, value_name = "NAME", default_value = "specialists", env = env::RELAY_CHANNEL)]
    pub(crate) channel: String,

    /// The worker's name: requests for it are answered
    #[arg(long, value_name = "NAME", default_value = "specialist-worker", env = env::RELAY_WORKER)]
    pub(crate) worker_name: String,

    /// The folder that the program works in [default: this one]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: Option<PathBuf>,

    /// The model that the program should use
    #[arg(long, value_name = "MODEL", env = env::RELAY_MODEL)]
    pub(crate) model: Option<String>,

    /// How long one answer may take, in milliseconds
    #[arg(long, value_name = "MS", default_value = "120000", env = env::BRIDGE_TIMEOUT, value_parser = timeout)]
    pub(crate) timeout_ms: Duration,

    /// Answers made at the same time
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) concurrency: u16,

    /// Answer with the agents of this descriptor instead of a program
    #[arg(long, value_name = "FILE", conflicts_with_all = ["cli", "cli_args", "cwd"], value_hint = ValueHint::FilePath)]
    pub(crate) descriptor: Option<PathBuf>,

    /// What the descriptor's tool targets are [default: registry.yaml beside the descriptor]
    #[arg(long, value_name = "FILE", requires = "descriptor", value_hint = ValueHint::FilePath)]
    pub(crate) registry: Option<PathBuf>,

    /// For a descriptor: an OpenAI-compatible endpoint for all models; its key is read from HARNESS_API_KEY
    #[arg(long, value_name = "URL", requires = "descriptor", value_hint = ValueHint::Url)]
    pub(crate) base_url: Option<String>,

    #[command(flatten)]
    pub(crate) broker: BrokerArgs,
}

/// Where the broker is.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Relay")]
pub(crate) struct BrokerArgs {
    /// The folder of the project whose broker is used [default: this one]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) relay_dir: Option<PathBuf>,

    /// The directory of the broker's connection file [default: .agent-relay or .agentworkforce/relay in the
    /// folder]
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
    "The worker is made known to the Agent Relay broker of the folder, answers requests of \
     orchestrators, and tells on standard error what it does. Nothing that a message says is \
     interpreted: the prompt goes to the program's standard input.\n\n\
     Ctrl-C lets running answers come to their end, takes no further request and releases the \
     worker; a second one stops what runs."
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
