//! `harness serve`.

#[cfg(feature = "restate")]
mod engine;

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;

use harness::core::Cancel;
use harness::core::port::Clock;
use harness::record::{FolderSource, RecentRuns};
use harness::runtime::{Approvals, ThreadService};
use harness::system::SystemClock;
use harness::{Builder, SessionStore};
use harness_server::{ServerError, ServerOptions};
use tokio::net::TcpListener;

use crate::args::ServeArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::records::recording::service_recording;
use crate::signal::Signals;
use crate::terminal;
use crate::threads::{Of, Threads};
use crate::{model, secrets, session};

impl From<ServerError> for CliError {
    fn from(error: ServerError) -> Self {
        let token = "pass `--token-file FILE`, or listen on 127.0.0.1";
        let needs_token = matches!(error, ServerError::TokenRequired { .. });
        Self::part(error.kind(), &error, if needs_token { Some(token) } else { error.hint() })
    }
}

/// Serves threads until it is stopped.
pub(crate) fn serve(args: &ServeArgs) -> Result<Exit, CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|source| CliError::Io { action: "start the runtime", source })?;
    let done = runtime.block_on(Box::pin(serve_here(args)));
    // What still waits for a name service must not hold up the end.
    runtime.shutdown_background();
    done
}

async fn serve_here(args: &ServeArgs) -> Result<Exit, CliError> {
    let options = options(args)?;
    options.check(args.listen)?;
    let signals = Signals::listen().map_err(|source| CliError::Io { action: "listen for Ctrl-C", source })?;
    if args.engine.is_empty() {
        serve_runtime(args, options, signals).await
    } else {
        serve_engine(args, options, signals).await
    }
}

/// Serves threads of this process.
async fn serve_runtime(
    args: &ServeArgs,
    mut options: ServerOptions,
    signals: Signals,
) -> Result<Exit, CliError> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let approvals = Approvals::new();
    let sessions = args.sessions.as_ref().map(|place| SessionStore::new(place).options(session::options()));
    if let Some(sessions) = sessions.clone() {
        options = options.stored(sessions);
    }
    let descriptor = args.descriptor.find()?;
    let runs = RecentRuns::new();
    let recording = service_recording(&args.threads, Some(&descriptor))?.recent(runs.clone());
    if let Some(folder) = &args.threads.recorded.run_record {
        options = options.recorded_runs(FolderSource::new(folder));
    }
    let change = |builder: Builder| builder.record(recording);
    let of = Of { descriptor: Some(&descriptor), sessions, thread: None, pools: None };
    let threads =
        Threads::open(of, &args.threads.agents, &args.threads.spans, approvals.clone(), &clock, change)
            .await?;
    model::announce(threads.notice.as_deref());
    let options = options.recent_runs(runs).agents(threads.agents.iter().cloned());
    let served =
        listen(args.listen, threads.runtime.clone().with_approvals(approvals), options, signals).await;
    if !matches!(served, Ok(Exit::Cancelled)) {
        threads.close().await;
    }
    served
}

/// Serves threads on an engine, whose workers have the agents.
#[cfg(feature = "restate")]
async fn serve_engine(args: &ServeArgs, options: ServerOptions, signals: Signals) -> Result<Exit, CliError> {
    let (threads, agents) = engine::open(args)?;
    let (threads, _relay) = engine::relay(args, threads).await?;
    listen(args.listen, threads, options.agents(agents), signals).await
}

#[cfg(not(feature = "restate"))]
fn serve_engine(
    _: &ServeArgs,
    _: ServerOptions,
    _: Signals,
) -> impl Future<Output = Result<Exit, CliError>> + use<> {
    std::future::ready(Err(crate::left_out::left_out("`--engine`", "restate")))
}

/// Serves threads at an address until a signal.
async fn listen(
    address: SocketAddr,
    threads: impl ThreadService + 'static,
    options: ServerOptions,
    signals: Signals,
) -> Result<Exit, CliError> {
    let listening = |source| CliError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(listening)?;
    announce(listener.local_addr().map_err(listening)?)?;
    let stop = Cancel::new();
    let stopped = {
        let stop = stop.clone();
        async move { stop.cancelled().await }
    };
    let serving = harness_server::serve(listener, threads, options, stopped);
    let served = tokio::select! {
        biased;
        served = serving => served,
        // What runs is dropped, and with it every program that it has started.
        () = signals.watch(stop) => return Ok(Exit::Cancelled),
    };
    served?;
    Ok(Exit::Completed)
}

fn options(args: &ServeArgs) -> Result<ServerOptions, CliError> {
    let mut options = ServerOptions::new();
    if let Some(path) = &args.token_file {
        options = options.token(secrets::token(path)?)?;
    }
    if !args.listen.ip().is_loopback() && args.allow_host.is_empty() {
        options = options.allow_any_host();
    }
    for host in &args.allow_host {
        options = options.allow_host(host);
    }
    for origin in &args.allow_origin {
        options = options.allow_origin(origin)?;
    }
    Ok(options)
}

/// Says where the server is; for programs the first line of standard output.
fn announce(address: SocketAddr) -> Result<(), CliError> {
    let mut out = terminal::text();
    writeln!(out, "listening on http://{address}")
        .and_then(|()| out.flush())
        .map_err(|source| CliError::NoOutput { source })
}
