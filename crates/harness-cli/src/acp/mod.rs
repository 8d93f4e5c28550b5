//! `harness acp`: conversations in an editor.

mod host;

use std::sync::Arc;

use harness::core::Cancel;
use harness::core::port::Clock;
use harness::system::SystemClock;
use harness_acp::{AcpError, AcpServer};
use tokio::io::BufReader;

use self::host::CommandLine;
use crate::args::AcpArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::run::block_on;
use crate::signal::Signals;
use crate::terminal;

impl From<AcpError> for CliError {
    fn from(error: AcpError) -> Self {
        Self::part(error.kind(), &error, None)
    }
}

/// Serves the editor that started this program.
pub(crate) fn acp(args: &AcpArgs) -> Result<Exit, CliError> {
    block_on(serve(args))
}

async fn serve(args: &AcpArgs) -> Result<Exit, CliError> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let signals = Signals::listen().map_err(|source| CliError::Io { action: "listen for Ctrl-C", source })?;
    let host = CommandLine::new(args.clone(), args.descriptor.find()?, clock);
    // What is wrong with the command line is told at once, and not in the editor's first conversation.
    host.try_out().await?;
    let stop = Cancel::new();
    let server = AcpServer::new(host).named("harness", env!("CARGO_PKG_VERSION")).stop_with(stop.clone());
    let ended = tokio::select! {
        biased;
        ended = server.serve(BufReader::new(tokio::io::stdin()), terminal::protocol()) => ended,
        () = signals.watch(stop) => return Ok(Exit::Cancelled),
    };
    ended?;
    Ok(Exit::Completed)
}
