//! `harness worker`.

use std::convert::Infallible;
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;

use harness::core::Cancel;
use harness::core::port::Clock;
use harness::runtime::Approvals;
use harness::system::SystemClock;
use harness_restate::durable::EngineStorage;
use harness_restate::engine::restate::{
    Engine, EngineError, EngineQuota, EngineSpend, Relays, Worker, WorkerError, WorkerOptions,
};
use tokio::net::TcpListener;

use super::open;
use crate::args::{SpanArgs, WorkerArgs};
use crate::error::CliError;
use crate::exit::Exit;
use crate::signal::Signals;
use crate::threads::{Of, Threads};
use crate::{model, secrets, terminal};

/// Serves runs to an engine until it is stopped.
pub(crate) fn worker(args: &WorkerArgs) -> Result<Exit, CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|source| CliError::Io { action: "start the runtime", source })?;
    let done = runtime.block_on(Box::pin(worker_here(args)));
    // What still waits for a name service must not hold up the end.
    runtime.shutdown_background();
    done
}

async fn worker_here(args: &WorkerArgs) -> Result<Exit, CliError> {
    if !(args.listen.ip().is_loopback() || args.insecure || !args.identity_key.is_empty()) {
        return Err(WorkerError::Open(args.listen).into());
    }
    let engine = open(&args.engine)?;
    let signals = Signals::listen().map_err(|source| CliError::Io { action: "listen for Ctrl-C", source })?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let descriptor = args.descriptor.find()?;
    let (pools, storage) = (pools(engine.clone()), Arc::new(EngineStorage::new(engine.clone())));
    let of = Of { descriptor: Some(&descriptor), sessions: None, thread: None, pools: Some(pools) };
    // Decisions are the thread's; nobody asks this approver.
    // A worker writes no run records and no traces: events are in the log of the thread.
    let (spans, approver) = (SpanArgs::default(), Approvals::new());
    let threads =
        Threads::open(of, &args.agents, &spans, approver, &clock, |builder| builder.memory_storage(storage))
            .await?;
    model::announce(threads.notice.as_deref());
    warn_of_process_state(&threads);
    let worker = build(args, &threads, &engine)?;
    engine.check().await?;
    let listening = |source| CliError::Listen { address: args.listen, source };
    let listener = TcpListener::bind(args.listen).await.map_err(listening)?;
    let address = listener.local_addr().map_err(listening)?;

    let stop = Cancel::new();
    let serving = worker.serve(listener, stop.clone());
    let served = tokio::select! {
        biased;
        served = serving => served,
        failed = ready(args, &engine, address) => return failed.map(|never| match never {}),
        () = watch(signals, stop) => return Ok(Exit::Cancelled),
    };
    threads.close().await;
    served?;
    Ok(Exit::Completed)
}

/// Quotas and budgets, which all workers of the engine share.
fn pools(engine: Engine) -> model::Pools {
    let spending = Arc::new(EngineSpend::new(engine.clone()));
    model::Pools { quotas: Arc::new(move |name| Arc::new(EngineQuota::new(engine.clone(), name))), spending }
}

fn build(args: &WorkerArgs, threads: &Threads, engine: &Engine) -> Result<Worker, CliError> {
    let mut options = WorkerOptions::default();
    (options.max_steps, options.drain) = (usize::from(args.max_steps), args.drain);
    options.drive.park_after = args.park_after;
    let mut worker = Worker::builder(threads.runtime.clone(), engine.clone())
        .options(options)
        .origin(threads.runtime.origin().clone())
        .redactor(secrets::redactor())
        .identity_keys(&args.identity_key);
    if args.insecure {
        worker = worker.insecure();
    }
    if !args.relay.is_empty() {
        worker = worker.relays(relays(args)?);
    }
    Ok(worker.build()?)
}

/// The front ends that receive deltas.
fn relays(args: &WorkerArgs) -> Result<Relays, CliError> {
    let relays = Relays::new(&args.relay)?;
    Ok(match &args.relay_token_file {
        Some(path) => relays.token(secrets::token(path)?),
        None => relays,
    })
}

/// Registers the worker, or says that it is not registered, and says where it is. Never completes without an error.
async fn ready(args: &WorkerArgs, engine: &Engine, address: SocketAddr) -> Result<Infallible, CliError> {
    let url = match &args.advertise {
        Some(url) => url.clone(),
        None if args.listen.ip().is_loopback() => format!("http://{address}"),
        None => return Err(no_url(address)),
    };
    if args.register {
        engine.register(&url).await.map_err(|error| not_registered(&url, error))?;
    } else if let Some(note) = registration(engine, &url).await {
        let _ = writeln!(terminal::messages(), "{note}");
    }
    let mut out = terminal::text();
    writeln!(out, "listening on http://{address} as {url}")
        .and_then(|()| out.flush())
        .map_err(|source| CliError::NoOutput { source })?;
    std::future::pending().await
}

fn no_url(address: SocketAddr) -> CliError {
    CliError::Part {
        kind: "cli.no_advertised_url".to_owned(),
        message: format!("no URL under which the engine reaches {address}"),
        hint: Some("pass `--advertise URL`, for example http://workers.internal:9080".to_owned()),
    }
}

pub(super) fn not_registered(url: &str, error: EngineError) -> CliError {
    let EngineError::Failed { text, .. } = &error else { return error.into() };
    CliError::Part {
        kind: "cli.not_registered".to_owned(),
        message: format!("the engine did not register {url}: {text}"),
        hint: Some(
            "the engine must reach this URL: check `--advertise`, and the network between the two".to_owned(),
        ),
    }
}

/// A note about a URL that the engine does not know, or cannot be asked about.
async fn registration(engine: &Engine, url: &str) -> Option<String> {
    let known = match engine.status().await {
        Ok(status) => status.deployments,
        Err(error) => return Some(format!("cannot check the registration of {url}: {error}")),
    };
    let is_known = known.iter().any(|one| one.url.trim_end_matches('/') == url.trim_end_matches('/'));
    (!is_known).then(|| {
        format!("{url} is not registered, so the engine does not call it; register it with --register")
    })
}

/// Names parts of the agents that stay in the memory of one process.
fn warn_of_process_state(threads: &Threads) {
    let Some(registry) = &threads.registry else { return };
    if registry.memory().is_some_and(|memory| memory.facts.is_some()) {
        let text = "warning: facts of the registry file are kept in one process; a run that continues on another worker does \
                    not have them";
        let _ = writeln!(terminal::messages(), "{text}");
    }
}

/// Stops the worker at the first signal, and completes at the second.
async fn watch(mut signals: Signals, stop: Cancel) {
    signals.next().await;
    let _ =
        writeln!(terminal::messages(), "finishing requests at hand; press Ctrl-C again to exit immediately");
    stop.cancel();
    signals.next().await;
    let _ = writeln!(terminal::messages(), "exited; the engine continues the runs on other workers");
}
