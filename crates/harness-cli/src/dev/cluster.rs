//! `harness dev cluster`.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use harness::host::process::ProgramSpec;
use harness_restate::engine::restate::{Engine, EngineError};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::balancer::balance;
use super::part::Parts;
use super::place::{Place, Ports, free, here, server};
use crate::args::ClusterArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::run::block_on;
use crate::signal::Signals;
use crate::terminal;

/// How long the engine may take to start, and the pause between two looks.
const STARTS: (Duration, Duration) = (Duration::from_mins(1), Duration::from_millis(100));

/// Runs a cluster until it is stopped.
pub(crate) fn cluster(args: &ClusterArgs) -> Result<Exit, CliError> {
    block_on(cluster_here(args))
}

async fn cluster_here(args: &ClusterArgs) -> Result<Exit, CliError> {
    let descriptor = args.descriptor.find()?;
    let program = server(args.server.as_deref())?;
    let place = Place::open(args.data.as_deref())?;
    let mut signals =
        Signals::listen().map_err(|source| CliError::Io { action: "listen for Ctrl-C", source })?;
    let mut cluster = Cluster::new(&place)?;
    let done = tokio::select! {
        biased;
        () = signals.next() => Ok(Exit::Completed),
        done = cluster.run(args, program, &descriptor) => done,
    };
    let _ = writeln!(terminal::messages(), "ending the cluster; press Ctrl-C again to kill it");
    tokio::select! {
        biased;
        () = cluster.parts.end() => {}
        () = signals.next() => return Ok(Exit::Cancelled),
    }
    done
}

/// The processes of a cluster, and its balancer.
struct Cluster<'p> {
    place: &'p Place,
    engine: Engine,
    parts: Parts,
    balancer: Option<AbortHandle>,
    /// Port of the front end for workers.
    relay: u16,
}

impl Drop for Cluster<'_> {
    fn drop(&mut self) {
        if let Some(balancer) = &self.balancer {
            balancer.abort();
        }
    }
}

impl<'p> Cluster<'p> {
    fn new(place: &'p Place) -> Result<Self, CliError> {
        let engine = Engine::new(&url(place.ports.ingress))?.admin(&url(place.ports.admin))?;
        let [relay] = free().map_err(|source| CliError::Listen { address: here(0), source })?;
        Ok(Self { place, engine, parts: Parts::default(), balancer: None, relay })
    }

    /// Starts everything, and watches it until a part ends.
    async fn run(
        &mut self,
        args: &ClusterArgs,
        server: OsString,
        descriptor: &Path,
    ) -> Result<Exit, CliError> {
        let version = self.start_engine(server).await?;
        let workers = self.start_workers(args, descriptor).await?;
        let front_end = self.start_front_end(descriptor).await?;
        self.announce(&version, &workers)?;
        let mut left = workers.len();
        loop {
            let (at, why) = self.parts.ended().await;
            let (name, mut out) = (self.parts.name(at), terminal::messages());
            if !workers.contains(&at) {
                let what =
                    if at == front_end { "the cluster cannot be reached" } else { "nothing can be stored" };
                let _ = writeln!(out, "{name} {why}: {what} without it");
                return Ok(Exit::Failed);
            }
            left -= 1;
            if left == 0 {
                let _ = writeln!(out, "{name} {why}: no worker is left");
                return Ok(Exit::Failed);
            }
            let _ = writeln!(out, "{name} {why}: its runs continue on the other workers");
        }
    }

    async fn start_engine(&mut self, server: OsString) -> Result<String, CliError> {
        let words = ["--no-logo", "--listen-mode", "tcp", "-c", "config.toml"];
        let program = ProgramSpec::new(server).args(words).cwd(&self.place.folder);
        self.parts.start("engine", program.env("RESTATE_DISABLE_TELEMETRY", "true")).await?;
        let engine = &self.engine;
        let started = async {
            loop {
                let error = match engine.version().await {
                    Ok(version) => match engine.check().await {
                        Ok(()) => return Ok(version),
                        Err(error) => error,
                    },
                    Err(error) => error,
                };
                if !matches!(error, EngineError::Unreachable { .. } | EngineError::Failed { .. }) {
                    return Err(CliError::from(error));
                }
                tokio::time::sleep(STARTS.1).await;
            }
        };
        let in_time = async {
            let late = |_| {
                CliError::from(EngineError::Unreachable {
                    url: engine.to_string(),
                    why: format!("it did not start within {} s", STARTS.0.as_secs()),
                })
            };
            tokio::time::timeout(STARTS.0, started).await.map_err(late)?
        };
        self.parts.before_an_end(in_time).await
    }

    /// Starts the workers behind one address; their numbers.
    async fn start_workers(&mut self, args: &ClusterArgs, descriptor: &Path) -> Result<Vec<usize>, CliError> {
        let Ports { ingress, admin, workers: shared, .. } = self.place.ports;
        let listening = |source| CliError::Listen { address: here(shared), source };
        let listener = TcpListener::bind(here(shared)).await.map_err(listening)?;
        let mut ports = Vec::new();
        for _ in 0..args.workers {
            ports.extend(free::<1>().map_err(listening)?);
        }
        let balancing = balance(listener, ports.iter().map(|port| here(*port)).collect());
        self.balancer = Some(tokio::spawn(balancing).abort_handle());
        let mut workers = Vec::new();
        for port in ports {
            let values = [url(ingress), url(admin), here(port).to_string(), url(shared), url(self.relay)];
            let options = ["--engine", "--admin", "--listen", "--advertise", "--relay"];
            let words = options.into_iter().zip(values);
            let mut words: Vec<_> =
                words.flat_map(|(option, value)| [OsString::from(option), value.into()]).collect();
            if workers.is_empty() {
                words.push("--register".into());
            }
            let is_set = |option: &OsString| option.to_string_lossy().starts_with("--drain");
            if !args.worker_options.iter().any(is_set) {
                words.extend(["--drain", "2s"].map(OsString::from));
            }
            words.extend(args.worker_options.iter().cloned());
            let name = format!("worker-{}", workers.len() + 1);
            workers.push(self.start_harness(&name, "worker", descriptor, words).await?);
        }
        Ok(workers)
    }

    async fn start_front_end(&mut self, descriptor: &Path) -> Result<usize, CliError> {
        let Ports { ingress, admin, front_end, .. } = self.place.ports;
        let (ingress, admin) = (url(ingress), url(admin));
        let (address, relay) = (here(front_end).to_string(), here(self.relay).to_string());
        let words = ["--engine", &ingress, "--admin", &admin, "--listen", &address, "--relay-listen", &relay];
        self.start_harness("front end", "serve", descriptor, words.map(OsString::from).into()).await
    }

    /// Starts this program once more, and waits until it listens.
    async fn start_harness(
        &mut self,
        name: &str,
        command: &str,
        descriptor: &Path,
        words: Vec<OsString>,
    ) -> Result<usize, CliError> {
        let own = std::env::current_exe();
        let own = own.map_err(|source| CliError::Io { action: "find the program itself", source })?;
        let words = [command.into(), descriptor.as_os_str().to_owned()].into_iter().chain(words);
        let (at, first) = self.parts.start(name, ProgramSpec::new(own).args(words)).await?;
        self.parts.before_an_end(said(first)).await?;
        Ok(at)
    }

    fn announce(&self, version: &str, workers: &[usize]) -> Result<(), CliError> {
        let Ports { ingress, admin, front_end, .. } = self.place.ports;
        let (ingress, admin, front_end) = (url(ingress), url(admin), url(front_end));
        let number = |at: &usize| self.parts.id(*at).map(|id| id.to_string());
        let numbers: Vec<_> = workers.iter().filter_map(number).collect();
        let end = if self.place.temporary.is_some() { ", removed at the end" } else { "" };
        let folder = self.place.folder.display();
        let victim = numbers.first().map(String::as_str).unwrap_or_default();
        let mut out = terminal::text();
        writeln!(
            out,
            "front end: {front_end}\nengine {version}: {ingress}, admin API {admin}\nworkers: processes {}\n\
             data: {folder}{end}\n\n\
             Open {front_end} in a browser, or try:\n  \
             curl -X POST '{front_end}/v1/threads' -H 'content-type: application/json' -d '{{\"id\":\"ada\"}}'\n  \
             curl -X POST '{front_end}/v1/threads/ada/prompt?wait' -H 'content-type: application/json' -d '{{\"text\":\"Hello\"}}'\n  \
             kill -9 {victim}    # a worker at work: its runs continue on the others\n  \
             harness engine status --admin {admin}\n\nCtrl-C ends everything.",
            numbers.join(", ")
        )
        .and_then(|()| out.flush())
        .map_err(|source| CliError::NoOutput { source })
    }
}

/// Waits for the first line of a process. One that says nothing ends.
async fn said(first: oneshot::Receiver<String>) -> Result<(), CliError> {
    match first.await {
        Ok(_) => Ok(()),
        Err(_) => std::future::pending().await,
    }
}

fn url(port: u16) -> String {
    format!("http://{}", here(port))
}
