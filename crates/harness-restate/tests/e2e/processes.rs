//! The server and the workers, as processes, and a balancer before the workers.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use harness_restate::engine::restate::{DurableThreads, Engine};
use parking_lot::Mutex;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::world::redactor;

/// The longest that anything here may take. On a machine under load a conversation takes most of a minute while a node is
/// killed every five seconds; how soon a node is replaced has a check of its own.
pub(crate) const PATIENCE: Duration = Duration::from_mins(4);
/// The pause between two looks at another process.
pub(crate) const PAUSE: Duration = Duration::from_millis(10);

/// Below the folder of the installed package.
const PACKAGED: &str = "e2e/cluster/node_modules/@restatedev/restate-server-linux-x64/bin/restate-server";

/// The program of the server: named by `HARNESS_RESTATE_SERVER`, or installed.
#[expect(clippy::disallowed_methods, reason = "the check is told where its server is")]
pub(crate) fn server_program() -> Option<PathBuf> {
    let named = std::env::var_os("HARNESS_RESTATE_SERVER").map(PathBuf::from);
    let program = named.unwrap_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).join(PACKAGED));
    program.is_file().then_some(program)
}

/// A process that is killed with its owner.
#[derive(Debug)]
pub(crate) struct Process(Child);

impl Process {
    #[expect(clippy::disallowed_methods, reason = "checks start the programs that they set beside ours")]
    pub(crate) fn start(program: &Path, folder: &Path, words: &[&str]) -> Self {
        let mut command = Command::new(program);
        command
            .args(words)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // A server that is killed leaves its temporary files behind.
        Self(command.env("RESTATE_DISABLE_TELEMETRY", "true").env("TMPDIR", folder).spawn().unwrap())
    }

    /// Kills it as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }

    /// Sends it a signal, which stops it (`STOP`) or lets it go on (`CONT`).
    #[expect(clippy::disallowed_methods, reason = "the standard library sends no signals")]
    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.0.id().to_string()]).status();
        assert!(sent.unwrap().success(), "kill -{name}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Ports that are free now.
pub(crate) fn free_ports<const N: usize>() -> [u16; N] {
    let listeners = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

/// Looks until something is so.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, is_so: impl FnMut() -> F) {
    until_every(PAUSE, what, is_so).await;
}

/// Looks until something is so, with a pause between two looks.
pub(crate) async fn until_every<F: Future<Output = bool>>(
    pause: Duration,
    what: &str,
    is_so: impl FnMut() -> F,
) {
    assert!(becomes(pause, is_so).await, "waited too long for {what}");
}

/// Whether something becomes so in the longest time that anything may take.
pub(crate) async fn becomes<F: Future<Output = bool>>(pause: Duration, mut is_so: impl FnMut() -> F) -> bool {
    let looks = async {
        while !is_so().await {
            tokio::time::sleep(pause).await;
        }
    };
    tokio::time::timeout(PATIENCE, looks).await.is_ok()
}

pub(crate) async fn is_open(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).await.is_ok()
}

/// The lines of a file that others append to, as far as they were read.
#[derive(Debug, Default)]
struct Tail {
    bytes: u64,
    lines: Vec<String>,
}

impl Tail {
    /// Reads the lines that came since the last time.
    fn read(&mut self, path: &Path) {
        let Ok(mut file) = File::open(path) else { return };
        let mut more = String::new();
        file.seek(SeekFrom::Start(self.bytes)).unwrap();
        file.read_to_string(&mut more).unwrap();
        let whole = more.rfind('\n').map_or("", |end| &more[..=end]);
        self.bytes += whole.len() as u64;
        self.lines.extend(whole.lines().map(ToOwned::to_owned));
    }
}

/// Servers, workers behind a balancer, and a ledger.
#[derive(Debug)]
pub(crate) struct Cluster {
    folder: TempDir,
    /// The ingress of each server.
    ingress: Vec<String>,
    pub(crate) engine: Engine,
    client: reqwest::Client,
    /// The port and the process of each worker.
    workers: Mutex<Vec<(u16, Process)>>,
    servers: Mutex<Vec<Process>>,
    /// The ports of workers to which the balancer passes nothing on.
    cut: watch::Sender<Vec<u16>>,
    noted: Mutex<Tail>,
    /// Where front ends listen for workers: those that start from here on send deltas there.
    relays: Mutex<Vec<String>>,
}

impl Cluster {
    /// Starts servers and workers, and registers these.
    pub(crate) async fn start(servers: usize, workers: usize) -> Self {
        let cluster = Self::of_servers(servers, "");
        let url = cluster.add_workers(workers).await;
        cluster.register(&url).await;
        cluster
    }

    /// Starts servers with more settings.
    pub(crate) fn of_servers(servers: usize, settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ports @ [_, ingress, admin] = free_ports();
        let hosts: Vec<String> = (1..=servers).map(|node| format!("127.0.0.{node}")).collect();
        for (at, host) in hosts.iter().enumerate() {
            let text = config_text(folder.path(), &hosts, at, ports);
            std::fs::write(folder.path().join(format!("{host}.toml")), format!("{settings}{text}")).unwrap();
        }
        let ingress: Vec<_> = hosts.iter().map(|host| format!("http://{host}:{ingress}")).collect();
        let mut engine =
            Engine::new(&ingress[0]).unwrap().admin(&format!("http://127.0.0.1:{admin}")).unwrap();
        for other in &ingress[1..] {
            engine = engine.or(other).unwrap();
        }
        let cluster = Self {
            folder,
            ingress,
            engine,
            client: reqwest::Client::builder().no_proxy().build().unwrap(),
            workers: Mutex::default(),
            servers: Mutex::default(),
            cut: watch::Sender::default(),
            noted: Mutex::default(),
            relays: Mutex::default(),
        };
        for at in 0..servers {
            cluster.servers.lock().push(cluster.server(at));
        }
        cluster
    }

    /// Workers that start from here on send deltas there.
    pub(crate) fn relay_to(&self, url: String) {
        self.relays.lock().push(url);
    }

    /// Starts more workers, behind a balancer of their own whose address is returned.
    pub(crate) async fn add_workers(&self, count: usize) -> String {
        let ports: Vec<u16> = (0..count).flat_map(|_| free_ports::<1>()).collect();
        for port in &ports {
            self.workers.lock().push((*port, self.worker(*port, None)));
        }
        for port in &ports {
            until("a worker", || is_open(*port)).await;
        }
        let [balancer] = free_ports();
        balance(balancer, ports, &self.cut).await;
        format!("http://127.0.0.1:{balancer}")
    }

    /// Starts the bare service, and registers it.
    pub(crate) async fn add_bare(&self) {
        let [port] = free_ports();
        let process = Process::start(
            &std::env::current_exe().unwrap(),
            self.folder.path(),
            &["bare", &port.to_string()],
        );
        self.workers.lock().push((port, process));
        until("the bare service", || is_open(port)).await;
        self.register(&format!("http://127.0.0.1:{port}")).await;
    }

    /// An invocation of the bare service with so many entries.
    pub(crate) async fn bare(&self, entries: u32) {
        let url = format!("{}/Bare/runs", self.ingress[0]);
        let asked = self.client.post(url).json(&entries).send().await.unwrap();
        asked.error_for_status().unwrap();
    }

    /// The time that a worker had a core so far.
    pub(crate) fn cpu(&self, at: usize) -> Duration {
        let id = self.workers.lock()[at].1.0.id();
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
        let ticks = stat.rsplit(')').next().unwrap().split_whitespace().skip(11).take(2);
        // The kernel of Linux counts hundredths of a second.
        Duration::from_millis(10 * ticks.map(|ticks| ticks.parse::<u64>().unwrap()).sum::<u64>())
    }

    /// Tells the engine where workers are: new work goes to those that were registered last.
    pub(crate) async fn register(&self, url: &str) {
        until("the registration", || async { self.engine.register(url).await.is_ok() }).await;
    }

    /// Where the workers are to which new work goes.
    pub(crate) async fn latest(&self) -> String {
        let status = self.engine.status().await.unwrap();
        status.deployments.into_iter().find(|deployment| deployment.is_latest).unwrap().url
    }

    /// Whether no run is left that began with the workers at an address.
    pub(crate) async fn is_drained(&self, url: &str) -> bool {
        let status = self.engine.status().await.unwrap();
        status.deployments.iter().all(|deployment| deployment.url != url || deployment.runs == 0)
    }

    fn server(&self, at: usize) -> Process {
        let config = format!("127.0.0.{}.toml", at + 1);
        let words = ["--no-logo", "--listen-mode", "tcp", "-c", &config];
        Process::start(&server_program().unwrap(), self.folder.path(), &words)
    }

    /// Kills a server.
    pub(crate) fn kill_server(&self, at: usize) {
        self.servers.lock()[at].kill();
    }

    /// Starts a killed server again.
    pub(crate) fn restart_server(&self, at: usize) {
        self.servers.lock()[at] = self.server(at);
    }

    fn worker(&self, port: u16, key: Option<&str>) -> Process {
        let (program, ledger) = (std::env::current_exe().unwrap(), self.ledger_file());
        let (port, servers) = (port.to_string(), self.ingress.join(","));
        let mut words = vec!["worker", &port, &servers, ledger.to_str().unwrap()];
        words.extend(key);
        let relays = self.relays.lock().clone();
        words.extend(relays.iter().map(String::as_str));
        Process::start(&program, self.folder.path(), &words)
    }

    /// Starts a worker that takes only what was signed with a key. Returns its address.
    pub(crate) async fn add_signed_worker(&self, key: &str) -> String {
        let [port] = free_ports();
        self.workers.lock().push((port, self.worker(port, Some(key))));
        until("a worker", || is_open(port)).await;
        format!("http://127.0.0.1:{port}")
    }

    /// Kills a worker.
    pub(crate) fn kill(&self, at: usize) {
        self.workers.lock()[at].1.kill();
    }

    /// Starts a killed worker again.
    pub(crate) fn restart(&self, at: usize) {
        let mut workers = self.workers.lock();
        workers[at].1 = self.worker(workers[at].0, None);
    }

    /// Stops a worker in the middle of what it does, and lets it go on.
    pub(crate) fn freeze(&self, at: usize, is_frozen: bool) {
        self.workers.lock()[at].1.signal(if is_frozen { "STOP" } else { "CONT" });
    }

    /// Stops a server in the middle of what it does, and lets it go on.
    pub(crate) fn freeze_server(&self, at: usize, is_frozen: bool) {
        self.servers.lock()[at].signal(if is_frozen { "STOP" } else { "CONT" });
    }

    /// Cuts a worker, which works on, off from the servers, or heals that. Its own requests to servers still arrive: it
    /// is the calls that stand still.
    pub(crate) fn cut_off(&self, at: usize, is_cut: bool) {
        let port = self.workers.lock()[at].0;
        self.cut.send_modify(|cut| {
            cut.retain(|other| *other != port);
            cut.extend(is_cut.then_some(port));
        });
    }

    /// The folder of its files.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The ingress of each server.
    pub(crate) fn ingress(&self) -> &[String] {
        &self.ingress
    }

    pub(crate) fn threads(&self) -> DurableThreads {
        DurableThreads::new(self.engine.clone()).redactor(redactor())
    }

    fn ledger_file(&self) -> PathBuf {
        self.folder.path().join("ledger")
    }

    /// The lines that the tools of a thread wrote, and those of its model.
    pub(crate) fn ledger(&self, of: &str) -> Vec<String> {
        let lines = self.ledger_from(0);
        lines.into_iter().filter(|line| line.contains(of)).collect()
    }

    /// The lines of all threads, but for the first so many.
    pub(crate) fn ledger_from(&self, first: usize) -> Vec<String> {
        let mut noted = self.noted.lock();
        noted.read(&self.ledger_file());
        noted.lines[first..].to_vec()
    }
}

/// The settings of one server of several. Its ports: node, ingress, admin.
fn config_text(folder: &Path, hosts: &[String], at: usize, [node, ingress, admin]: [u16; 3]) -> String {
    let host = &hosts[at];
    let nodes: Vec<_> = hosts.iter().map(|host| format!("\"http://{host}:{node}\"")).collect();
    let (nodes, copies, provisions) = (nodes.join(", "), hosts.len().min(2), at == 0);
    format!(
        "node-name = \"{host}\"\nbase-dir = \"{}\"\nbind-ip = \"{host}\"\nbind-port = {node}\n\
         advertised-host = \"{host}\"\ndisable-telemetry = true\nauto-provision = {provisions}\n\
         default-num-partitions = 4\ndefault-replication = {copies}\n\
         rocksdb-total-memory-size = \"256 MiB\"\nlog-filter = \"error\"\n\
         [metadata-client]\naddresses = [{nodes}]\n\
         [ingress]\nbind-port = {ingress}\n[admin]\nbind-port = {admin}\ndisable-web-ui = true\n",
        folder.join(host).display()
    )
}

/// Passes connections on to workers in turn, beyond those that are dead.
async fn balance(port: u16, workers: Vec<u16>, cut: &watch::Sender<Vec<u16>>) {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    let (workers, turn, cut) = (Arc::new(workers), Arc::new(AtomicUsize::new(0)), cut.subscribe());
    tokio::spawn(async move {
        while let Ok((from, _)) = listener.accept().await {
            let (workers, turn, cut) = (Arc::clone(&workers), Arc::clone(&turn), cut.clone());
            tokio::spawn(async move {
                for _ in 0..workers.len() {
                    let worker = workers[turn.fetch_add(1, Ordering::Relaxed) % workers.len()];
                    let is_cut = cut.borrow().contains(&worker);
                    if let (false, Ok(to)) = (is_cut, TcpStream::connect(("127.0.0.1", worker)).await) {
                        return pass_on(from, to, worker, cut).await;
                    }
                }
            });
        }
    });
}

/// Passes bytes on between two ends. While the worker is cut off, both wait for bytes; then both are told that the
/// connection is gone.
async fn pass_on(mut from: TcpStream, mut to: TcpStream, worker: u16, mut cut: watch::Receiver<Vec<u16>>) {
    drop((from.set_nodelay(true), to.set_nodelay(true)));
    let mut is_cut = cut.clone();
    let is_cut = async { drop(is_cut.wait_for(|cut| cut.contains(&worker)).await) };
    tokio::select! {
        _ = tokio::io::copy_bidirectional(&mut from, &mut to) => return,
        () = is_cut => {}
    }
    drop(cut.wait_for(|cut| !cut.contains(&worker)).await);
}
