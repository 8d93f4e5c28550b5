//! The `harness` program: arguments, rendering, exit codes. Everything else is in the libraries.

#![cfg_attr(not(feature = "full"), allow(dead_code, reason = "what only the left-out parts use"))]

#[cfg(feature = "acp")]
mod acp;
mod agents;
mod args;
mod backend;
mod bind;
mod chat;
mod check;
mod completions;
mod descriptor;
#[cfg(feature = "restate")]
mod dev;
mod diff;
mod doctor;
#[cfg(feature = "restate")]
mod engine;
mod env;
mod error;
mod exit;
mod graph;
mod hash;
#[cfg(not(feature = "full"))]
mod left_out;
mod log;
mod model;
mod new;
mod output;
mod outputs;
mod pager;
mod paths;
mod private_file;
mod records;
#[cfg(feature = "relay")]
mod relay;
mod render;
mod report;
mod run;
mod schema;
mod secrets;
#[cfg(feature = "serve")]
mod serve;
mod session;
mod show;
mod signal;
mod telemetry;
mod terminal;
mod threads;
mod tools;

use std::io::Write as _;
use std::process::ExitCode;

use args::{Cli, Command};
use error::CliError;
use exit::Exit;
use paths::Paths;
use render::{BAD, JsonLines};

fn main() -> ExitCode {
    harness::host::process::supervise();
    signal::survive_size_limit();
    // From here on no other program of this user reads the keys in this process's memory and environment. Where
    // the system does not offer that, nothing is lost but this protection.
    let _ = harness::host::process::deny_inspection();
    env::learn_secrets();
    let cli = match Cli::of_process() {
        Ok(cli) => cli,
        Err(told) => return usage(&told),
    };
    let exit = match go(&cli) {
        // What was cancelled was so because of a signal, and a terminal that was closed cannot be written to.
        Ok(exit @ (Exit::Cancelled | Exit::Unwritten)) => signal::exit().unwrap_or(exit),
        Ok(exit) => exit,
        Err(error) => {
            report(&error, cli.command.json());
            signal::exit().unwrap_or_else(|| error.exit())
        }
    };
    exit.into()
}

fn go(cli: &Cli) -> Result<Exit, CliError> {
    if cli.no_color {
        anstream::ColorChoice::Never.write_global();
    }
    if cli.no_pager {
        pager::disable();
    }
    session::use_key(cli.session_key.as_deref())?;
    let finish = telemetry::start(cli.log.as_deref(), cli.command.spans())?;
    let done = carry_out(&cli.command);
    finish();
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
        #[cfg(feature = "acp")]
        Command::Acp(args) => acp::acp(args),
        #[cfg(not(feature = "acp"))]
        Command::Acp(_) => Err(left_out::left_out("`harness acp`", "acp")),
        #[cfg(feature = "relay")]
        Command::Bridge(args) => relay::bridge(args),
        #[cfg(not(feature = "relay"))]
        Command::Bridge(_) => Err(left_out::left_out("`harness bridge`", "relay")),
        #[cfg(feature = "serve")]
        Command::Serve(args) => serve::serve(args),
        #[cfg(not(feature = "serve"))]
        Command::Serve(_) => Err(left_out::left_out("`harness serve`", "serve")),
        #[cfg(feature = "restate")]
        Command::Worker(args) => engine::worker(args),
        #[cfg(feature = "restate")]
        Command::Engine(args) => engine::engine(args),
        #[cfg(feature = "restate")]
        Command::Dev(args) => dev::dev(args),
        #[cfg(not(feature = "restate"))]
        Command::Dev(_) => Err(left_out::left_out("`harness dev`", "restate")),
        #[cfg(not(feature = "restate"))]
        Command::Worker(_) => Err(left_out::left_out("`harness worker`", "restate")),
        #[cfg(not(feature = "restate"))]
        Command::Engine(_) => Err(left_out::left_out("`harness engine`", "restate")),
        Command::Session(args) => session::session(args),
        Command::Doctor(args) => doctor::doctor(args),
        Command::Completions(args) => completions::completions(args),
        Command::Man(args) => completions::man(args),
    }
}

/// Shows what was asked for, or says what is wrong with the arguments.
fn usage(told: &clap::Error) -> ExitCode {
    if !told.use_stderr() {
        // Nothing of it comes from the arguments.
        if std::env::args_os().any(|argument| argument == "--no-pager") {
            pager::disable();
        }
        let text = terminal::painted(&told.render().ansi().to_string());
        let printed = output::print_long(&text, Exit::Completed);
        return printed.unwrap_or_else(|error| error.exit()).into();
    }
    let text = told.render().to_string();
    let text = text.strip_prefix("error:").map_or(text.clone(), |rest| format!("{BAD}error:{BAD:#}{rest}"));
    let _ = terminal::messages().write_all(text.as_bytes());
    Exit::Refused.into()
}

/// Says on standard error what is wrong and what to do; with `--json` also as the last line of output.
fn report(error: &CliError, json: bool) {
    // Nothing is left to be done about a reader who went away.
    let _ = terminal::messages().write_all(error.render(&Paths::here()).as_bytes());
    if json {
        let _ = JsonLines::new(terminal::json()).error(error);
    }
}
