//! The server and the workers, as processes, and a balancer before the workers.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use harness_restate::engine::restate::{DurableThreads, Engine};
use tempfile::TempDir;
use tokio::net::TcpStream;

use crate::world::redactor;

/// The longest that anything here may take.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);
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
    fn kill(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
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
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, mut is_so: impl FnMut() -> F) {
    let looks = async {
        while !is_so().await {
            tokio::time::sleep(PAUSE).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, looks).await.is_ok(), "waited too long for {what}");
}

pub(crate) async fn is_open(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).await.is_ok()
}

/// A server, workers behind a balancer, and a ledger.
#[derive(Debug)]
pub(crate) struct Cluster {
    folder: TempDir,
    /// The ingress of each server.
    ingress: Vec<String>,
    pub(crate) engine: Engine,
    /// The port and the process of each worker.
    workers: Mutex<Vec<(u16, Process)>>,
    servers: Mutex<Vec<Process>>,
}

impl Cluster {
    /// Starts servers and workers, and registers these.
    pub(crate) async fn start(servers: usize, workers: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ports = free_ports();
        let [_, ingress, admin, balancer] = ports;
        let hosts: Vec<String> = (1..=servers).map(|node| format!("127.0.0.{node}")).collect();
        for (at, host) in hosts.iter().enumerate() {
            let text = config_text(folder.path(), &hosts, at, ports);
            std::fs::write(folder.path().join(format!("{host}.toml")), text).unwrap();
        }
        let ingress: Vec<_> = hosts.iter().map(|host| format!("http://{host}:{ingress}")).collect();
        let mut engine =
            Engine::new(&ingress[0]).unwrap().admin(&format!("http://127.0.0.1:{admin}")).unwrap();
        for other in &ingress[1..] {
            engine = engine.or(other).unwrap();
        }
        let cluster = Self { folder, ingress, engine, workers: Mutex::default(), servers: Mutex::default() };
        for at in 0..servers {
            cluster.servers.lock().unwrap().push(cluster.server(at));
        }
        let ports: Vec<u16> = (0..workers).flat_map(|_| free_ports::<1>()).collect();
        for port in ports.clone() {
            cluster.workers.lock().unwrap().push((port, cluster.worker(port)));
        }
        for port in ports.clone() {
            until("a worker", || is_open(port)).await;
        }
        let address = if let [only] = ports[..] { only } else { balance(balancer, ports).await };
        let (engine, url) = (cluster.engine.clone(), format!("http://127.0.0.1:{address}"));
        until("the registration", || async { engine.register(&url).await.is_ok() }).await;
        cluster
    }

    fn server(&self, at: usize) -> Process {
        let config = format!("127.0.0.{}.toml", at + 1);
        let words = ["--no-logo", "--listen-mode", "tcp", "-c", &config];
        Process::start(&server_program().unwrap(), self.folder.path(), &words)
    }

    /// Kills a server.
    pub(crate) fn kill_server(&self, at: usize) {
        self.servers.lock().unwrap()[at].kill();
    }

    /// Starts a killed server again.
    pub(crate) fn restart_server(&self, at: usize) {
        self.servers.lock().unwrap()[at] = self.server(at);
    }

    fn worker(&self, port: u16) -> Process {
        let (program, ledger) = (std::env::current_exe().unwrap(), self.ledger_file());
        let words = ["worker", &port.to_string(), &self.ingress.join(","), ledger.to_str().unwrap()];
        Process::start(&program, self.folder.path(), &words)
    }

    /// Kills a worker.
    pub(crate) fn kill(&self, at: usize) {
        self.workers.lock().unwrap()[at].1.kill();
    }

    /// Starts a killed worker again.
    pub(crate) fn restart(&self, at: usize) {
        let mut workers = self.workers.lock().unwrap();
        workers[at].1 = self.worker(workers[at].0);
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
        let text = std::fs::read_to_string(self.ledger_file()).unwrap_or_default();
        text.lines().filter(|line| line.contains(of)).map(ToOwned::to_owned).collect()
    }
}

/// The settings of one server of several. Its ports: node, ingress, admin.
fn config_text(folder: &Path, hosts: &[String], at: usize, [node, ingress, admin, _]: [u16; 4]) -> String {
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

/// Passes connections on to workers in turn, beyond those that are dead. Returns its port.
async fn balance(port: u16, workers: Vec<u16>) -> u16 {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    let (workers, turn) = (Arc::new(workers), Arc::new(AtomicUsize::new(0)));
    tokio::spawn(async move {
        while let Ok((mut from, _)) = listener.accept().await {
            let (workers, turn) = (Arc::clone(&workers), Arc::clone(&turn));
            tokio::spawn(async move {
                for _ in 0..workers.len() {
                    let at = turn.fetch_add(1, Ordering::Relaxed) % workers.len();
                    if let Ok(mut to) = TcpStream::connect(("127.0.0.1", workers[at])).await {
                        drop((from.set_nodelay(true), to.set_nodelay(true)));
                        drop(tokio::io::copy_bidirectional(&mut from, &mut to).await);
                        return;
                    }
                }
            });
        }
    });
    port
}
