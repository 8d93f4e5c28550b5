//! The `harness` program: arguments, rendering, exit codes. Everything else is in the libraries.

mod acp;
mod args;
mod backend;
mod bind;
mod chat;
mod check;
mod completions;
mod diff;
mod doctor;
mod env;
mod error;
mod exit;
mod graph;
mod hash;
mod log;
mod model;
mod new;
mod output;
mod paths;
mod records;
mod relay;
mod render;
mod report;
mod run;
mod schema;
mod serve;
mod session;
mod show;
mod signal;
mod telemetry;
mod threads;
mod tools;

use std::io::{Write as _, stdout};
use std::process::ExitCode;

use clap::Parser as _;

use args::{Cli, Command};
use error::CliError;
use exit::Exit;
use paths::Paths;
use render::JsonLines;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match go(&cli) {
        Ok(exit) => exit.into(),
        Err(error) => {
            report(&error, cli.command.json());
            Exit::Refused.into()
        }
    }
}

fn go(cli: &Cli) -> Result<Exit, CliError> {
    let emitting = telemetry::start(cli.log.as_deref(), cli.command.spans())?;
    let done = carry_out(&cli.command);
    emitting.finish();
    done
}

fn carry_out(command: &Command) -> Result<Exit, CliError> {
    match command {
        Command::Run(args) => run::run(args),
        Command::Chat(args) => chat::chat(args),
        Command::Resume(args) => run::resume(args),
        Command::Check(args) => check::check(args),
        Command::Hash(args) => hash::hash(args),
        Command::Show(args) => show::show(args),
        Command::Graph(args) => graph::graph(args),
        Command::Diff(args) => diff::diff(args),
        Command::Schema(args) => schema::schema(args),
        Command::New(args) => new::new(args),
        Command::Replay(args) => records::replay(args),
        Command::Regress(args) => records::regress(args),
        Command::Inspect(args) => records::inspect(args),
        Command::Tools(args) => tools::tools(args),
        Command::Acp(args) => acp::acp(args),
        Command::Bridge(args) => relay::bridge(args),
        Command::Serve(args) => serve::serve(args),
        Command::Session(args) => session::session(args),
        Command::Doctor(args) => doctor::doctor(args),
        Command::Completions(args) => completions::completions(args),
    }
}

/// Says on standard error what is wrong and what to do; with `--json` also as the last line of output.
fn report(error: &CliError, json: bool) {
    let mut err = anstream::stderr();
    // Nothing is left to be done about a reader who went away.
    let _ = err.write_all(error.render(&Paths::here()).as_bytes());
    if json {
        let _ = JsonLines::new(stdout()).error(error);
    }
}
