//! Arguments for the backend that runs turns instead of a model.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use harness::adapters::local::{LocalAgent, Permission};
use harness::core::Millis;

use super::{BrokerArgs, values};

/// Options of the backend that runs turns instead of a model.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Backend")]
pub(crate) struct BackendArgs {
    /// Run turns in a backend: claude, codex, opencode or gemini as installed, relay:CHANNEL for an
    /// Agent Relay worker, or command:FILE for any program
    #[arg(long, value_name = "BACKEND", conflicts_with_all = ["base_url", "replay"])]
    pub(crate) backend: Option<BackendArg>,

    /// Set what the backend may do without approval
    #[arg(long, value_name = "WHAT", value_enum, requires = "backend", default_value_t = May::Read)]
    pub(crate) backend_may: May,

    /// Allow this tool of the backend, by the backend's name for it (claude: Bash, WebFetch)
    /// (repeatable)
    #[arg(long, value_name = "NAME", requires = "backend")]
    pub(crate) backend_tool: Vec<String>,

    /// Send requests only to this relay worker, and accept only its replies
    #[arg(long, value_name = "NAME", requires = "backend")]
    pub(crate) backend_worker: Option<String>,

    /// Limit one turn of the backend, for example 90s, 5m or 1h [default: 10m]
    #[arg(long, value_name = "TIME", requires = "backend", value_parser = values::time)]
    pub(crate) backend_timeout: Option<Millis>,

    #[command(flatten)]
    pub(crate) broker: BrokerArgs,
}

/// A `--backend` argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BackendArg {
    /// An installed agent.
    Agent(LocalAgent),
    /// Workers on a relay channel.
    Relay(String),
    /// A program described by a file.
    Command(PathBuf),
}

/// Permissions of an installed agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum May {
    /// Read files
    #[default]
    Read,
    /// Also change files in the directory
    Write,
    /// Anything, including commands; only for isolated machines
    Everything,
}

impl From<May> for Permission {
    fn from(may: May) -> Self {
        match may {
            May::Read => Self::ReadOnly,
            May::Write => Self::WriteFiles,
            May::Everything => Self::Everything,
        }
    }
}

impl FromStr for BackendArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "expected claude, codex, opencode, gemini, relay:CHANNEL or command:FILE";
        match text.split_once(':') {
            Some(("relay", channel)) if !channel.is_empty() => Ok(Self::Relay(channel.to_owned())),
            Some(("command", file)) if !file.is_empty() => Ok(Self::Command(PathBuf::from(file))),
            Some(("relay", _)) => Err(format!("the channel is missing; {expected}")),
            Some(("command", _)) => Err(format!("the file is missing; {expected}")),
            _ => match LocalAgent::parse(text) {
                Some(LocalAgent::Bash) | None => Err(expected.to_owned()),
                Some(agent) => Ok(Self::Agent(agent)),
            },
        }
    }
}

impl std::fmt::Display for BackendArg {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Agent(agent) => f.write_str(agent.id()),
            Self::Relay(channel) => write!(f, "relay:{channel}"),
            Self::Command(file) => write!(f, "command:{}", file.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let read = text.parse::<BackendArg>().map(|backend| backend.to_string());
        assert_eq!(read.unwrap_or_else(|fault| fault), expected);
    }

    #[test]
    fn backends_are_named_by_a_word_or_by_kind_and_name() {
        for text in ["claude", "codex", "opencode", "gemini", "relay:ops", "command:a:b.yaml"] {
            check(text, text);
        }
        let expected = "expected claude, codex, opencode, gemini, relay:CHANNEL or command:FILE";
        for text in ["bash", "Claude", "", "command", "docker:x"] {
            check(text, expected);
        }
        check("relay:", &format!("the channel is missing; {expected}"));
        check("command:", &format!("the file is missing; {expected}"));
    }
}
