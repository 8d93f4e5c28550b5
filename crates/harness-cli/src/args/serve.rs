//! The arguments of `harness serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, ValueHint};

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

    /// List threads and approvals through this URL of the admin API of the engine, which must be kept private
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url, requires = "engine")]
    pub(crate) admin: Option<String>,

    /// Receive deltas of answers from workers on this address, which must be private: their --relay names it
    #[arg(long, value_name = "ADDRESS:PORT", requires = "engine")]
    pub(crate) relay_listen: Option<SocketAddr>,

    /// Require the bearer token in this file, which must be private, from workers; mandatory with --relay-listen on
    /// non-loopback addresses
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "relay_listen")]
    pub(crate) relay_token_file: Option<PathBuf>,

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
Open http://ADDRESS:PORT/ in a browser to chat, and /docs for the routes. Clients of OpenAI use the base \
URL http://ADDRESS:PORT/v1 and the model harness. --log info logs each request to standard error.

Ctrl-C ends streams and runs and saves the sessions; a second Ctrl-C exits immediately.";

/// Options that a front end of an engine takes, too, by their ids.
#[cfg(test)]
const FRONT_END: [&str; 10] = [
    "named",
    "listen",
    "sessions",
    "engine",
    "admin",
    "relay_listen",
    "relay_token_file",
    "token_file",
    "allow_host",
    "allow_origin",
];

/// Options of agents, models and limits: with an engine, they are those of its workers.
const WORKERS: [&str; 27] = [
    "registry",
    "allow_changed",
    "context",
    "model",
    "keys",
    "base_url",
    "record",
    "replay",
    "backend",
    "backend_may",
    "backend_tool",
    "backend_worker",
    "backend_timeout",
    "relay_dir",
    "relay_state_dir",
    "max_turns",
    "max_iterations",
    "max_tool_calls",
    "max_tokens",
    "max_cost",
    "timeout",
    "compact",
    "memory",
    "window",
    "skills",
    "context_files",
    "no_context_files",
];

/// Options that work only where runs are at work in the process itself.
const PROCESS: [&str; 4] = ["run_record", "no_prompts", "otlp", "otlp_content"];

/// Rejects options that `harness serve --engine` does not use.
pub(super) fn check(matches: &ArgMatches) -> Result<(), clap::Error> {
    let Some(("serve", given)) = matches.subcommand() else { return Ok(()) };
    let is_given = |id: &&str| given.value_source(id) == Some(ValueSource::CommandLine);
    if !is_given(&"engine") {
        return Ok(());
    }
    let named = |ids: &[&str]| {
        let names: Vec<_> = ids.iter().filter(|id| is_given(id)).map(|id| option(id)).collect();
        (!names.is_empty()).then(|| names.join(" and "))
    };
    if let Some(names) = named(&WORKERS) {
        return Err(refused(&format!(
            "pass {names} to `harness worker`: with `--engine`, agents, models and limits are those of the workers"
        )));
    }
    if let Some(names) = named(&PROCESS) {
        return Err(refused(&format!(
            "{names} cannot be used with `--engine`: no runs are at work in this process, and the log of a thread has its \
             events"
        )));
    }
    Ok(())
}

fn option(id: &str) -> String {
    format!("`--{}`", id.replace('_', "-"))
}

fn refused(message: &str) -> clap::Error {
    let mut command = super::command();
    let serve = command.find_subcommand_mut("serve").map(std::mem::take).unwrap_or_default();
    serve.bin_name("harness serve").error(ErrorKind::ArgumentConflict, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_refused(options: &[&str], expected: &str) {
        let line = [&["harness", "serve", "--engine", "http://engine:8080"], options].concat();
        let matches = super::super::command().try_get_matches_from(line).unwrap();
        let refused = check(&matches).unwrap_err().to_string();
        assert!(refused.contains(expected), "{options:?}: {refused}");
    }

    #[test]
    fn an_option_of_workers_is_refused_with_its_name() {
        let options: [&[&str]; 27] = [
            &["--registry", "registry.yaml"],
            &["--allow-changed"],
            &["--context", "customer.premium=true"],
            &["--model", "demo"],
            &["--keys", "keys.yaml"],
            &["--base-url", "http://127.0.0.1:1/v1"],
            &["--record", "recording.jsonl"],
            &["--replay", "recording.jsonl"],
            &["--backend", "claude"],
            &["--backend-may", "write", "--backend", "claude"],
            &["--backend-tool", "Bash", "--backend", "claude"],
            &["--backend-worker", "one", "--backend", "claude"],
            &["--backend-timeout", "90s", "--backend", "claude"],
            &["--relay-dir", "project"],
            &["--relay-state-dir", "project/.agent-relay"],
            &["--max-turns", "2"],
            &["--max-iterations", "2"],
            &["--max-tool-calls", "2"],
            &["--max-tokens", "2000"],
            &["--max-cost", "0.25"],
            &["--timeout", "90s"],
            &["--compact", "ladder"],
            &["--memory", "facts.db"],
            &["--window", "8000"],
            &["--skills", "skills"],
            &["--context-files"],
            &["--no-context-files"],
        ];
        let mut ids: Vec<_> = options.iter().map(|words| words[0][2..].replace('-', "_")).collect();
        ids.sort_unstable();
        let mut expected = WORKERS.to_vec();
        expected.sort_unstable();
        assert_eq!(ids, expected, "each option has an example");
        for words in options {
            check_refused(words, &format!("`{}`", words[0]));
            check_refused(words, "to `harness worker`");
        }
        check_refused(&["--model", "demo", "--max-turns", "2"], "pass `--model` and `--max-turns` to");
    }

    #[test]
    fn records_and_traces_are_refused() {
        check_refused(
            &["--run-record", "records", "--no-prompts"],
            "`--run-record` and `--no-prompts` cannot",
        );
        check_refused(
            &["--otlp", "http://127.0.0.1:4318", "--otlp-content"],
            "`--otlp` and `--otlp-content`",
        );
    }

    #[test]
    fn every_option_is_for_front_ends_or_for_workers_or_for_one_process() {
        let mut command = super::super::command();
        command.build();
        let serve = command.find_subcommand("serve").unwrap();
        let others = serve.get_arguments().filter(|of| !of.is_global_set() && of.get_id() != "help");
        let mut ids: Vec<_> = others.map(|of| of.get_id().as_str()).collect();
        ids.sort_unstable();
        let mut known = [&FRONT_END[..], &WORKERS, &PROCESS].concat();
        known.sort_unstable();
        assert_eq!(ids, known, "each option is in one of the lists");
    }

    #[test]
    fn what_is_not_given_is_not_refused() {
        let lines: [&[&str]; 3] = [
            &["harness", "serve", "--engine", "http://engine:8080", "--listen", "127.0.0.1:0"],
            &["harness", "serve", "--model", "demo"],
            &["harness", "worker", "--engine", "http://engine:8080", "--model", "demo"],
        ];
        for line in lines {
            let matches = super::super::command().try_get_matches_from(line).unwrap();
            assert!(check(&matches).is_ok(), "{line:?}");
        }
    }
}
