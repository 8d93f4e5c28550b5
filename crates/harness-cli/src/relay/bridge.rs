//! `harness bridge`.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use harness::adapters::local::{LocalAgent, LocalRunner};
use harness::core::Cancel;
use harness::relay::{
    BridgeConfig, BridgeNote, BridgeReport, BridgeRunner, Connection, Registration, RelayTransport as _,
    WorkerBridge,
};

use super::attach;
use super::own::own;
use crate::args::BridgeArgs;
use crate::descriptor::at;
use crate::error::CliError;
use crate::exit::Exit;
use crate::run::block_on;
use crate::signal::Signals;
use crate::{env, terminal};

/// Answers requests until it is stopped.
pub(crate) fn bridge(args: &BridgeArgs) -> Result<Exit, CliError> {
    block_on(bridge_here(args))
}

async fn bridge_here(args: &BridgeArgs) -> Result<Exit, CliError> {
    let signals = Signals::listen().map_err(|source| CliError::Io { action: "listen for Ctrl-C", source })?;
    let (transport, connection) = attach(&args.broker)?;
    let (runner, registry) = match &args.descriptor {
        Some(descriptor) => {
            let (backend, registry) = own(args, &at(descriptor)?)?;
            (BridgeRunner::Backend(Arc::new(backend)), registry)
        }
        None => (program(args), None),
    };
    let bridge = WorkerBridge::new(Arc::clone(&transport) as _, runner, config(args, &connection));
    let bridge = bridge.notes(show);
    let (drain, stop) = (Cancel::new(), Cancel::new());
    let ended = tokio::select! {
        biased;
        ended = bridge.run(&drain, &stop) => ended,
        never = watch(signals, &drain, &stop) => match never {},
    };
    if let Some(registry) = registry {
        registry.close().await;
    }
    let shut = transport.shutdown().await;
    let report = ended?;
    shut?;
    let _ = writeln!(terminal::messages(), "{}", summary(report));
    Ok(Exit::Completed)
}

/// Drains at the first signal, stops at the second.
async fn watch(mut signals: Signals, drain: &Cancel, stop: &Cancel) -> std::convert::Infallible {
    signals.next().await;
    let _ = writeln!(terminal::messages(), "\nfinishing running requests; press Ctrl-C again to stop them");
    drain.cancel();
    signals.next().await;
    stop.cancel();
    std::future::pending().await
}

fn config(args: &BridgeArgs, connection: &Connection) -> BridgeConfig {
    let mut config = BridgeConfig::new(args.worker_name.clone());
    config.channel_id.clone_from(&args.channel);
    config.timeout = args.timeout_ms;
    config.model.clone_from(&args.model);
    config.cwd.clone_from(&args.cwd);
    config.concurrency = usize::from(args.concurrency);
    let lifeline = connection.state_directory().map(Path::to_owned);
    config.registration = Registration::Reader { lifeline };
    config
}

fn program(args: &BridgeArgs) -> BridgeRunner {
    let mut runner = LocalRunner::new(args.cli, &env::surroundings());
    if args.cli == LocalAgent::Bash
        && let Some(script) = args.cli_args.as_deref().filter(|script| !script.trim().is_empty())
    {
        runner = runner.script(script);
    }
    BridgeRunner::Cli(Arc::new(runner))
}

fn show(note: &BridgeNote) {
    // Nobody is left to be told when standard error is closed.
    let _ =
        writeln!(terminal::messages(), "{:5} {}", note.level.as_str(), note.to_string().replace('\n', " "));
}

fn summary(report: BridgeReport) -> String {
    let BridgeReport { completed, failed, refused, duplicates, unpublished, .. } = report;
    format!(
        "{completed} completed · {failed} failed · {refused} refused · {duplicates} repeated · \
         {unpublished} not delivered"
    )
}
