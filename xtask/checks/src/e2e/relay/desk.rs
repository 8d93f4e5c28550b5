//! A folder with a running broker, and the programs that are started around it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Duration;

use harness::adapters::relay::{
    BrokerConfig, BrokerTransport, Connection, Registration, RelayAdapterConfig, RelayExecutionAdapter,
    RelayTransport as _, SpawnAgent,
};
use harness::core::Cancel;
use harness::core::port::execution::{ExecutionAdapter as _, ExecutionCx, ExecutionMessage};
use harness::core::port::{ExecutionRequest, ExecutionResult};
use harness::system::SystemClock;

use xtask::fault::{Fault, Result};
use xtask::process;
use xtask::stopwatch::Stopwatch;

/// How long anything may take that is waited for.
const PATIENCE: Duration = Duration::from_secs(45);

/// A program that is killed when it is not needed any more.
pub(super) struct Running {
    child: Child,
    /// What it has printed.
    pub(super) log: PathBuf,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    /// `kill -9`.
    pub(super) fn kill(&mut self) -> Result<()> {
        self.child.kill().map_err(|e| Fault::because("kill", e))
    }

    /// Ctrl-C, and whether it then ended well.
    pub(super) fn interrupt(&mut self) -> Result<bool> {
        process::run(process::command("kill").args(["-s", "INT", &self.child.id().to_string()]))?;
        let watch = Stopwatch::start();
        loop {
            match self.child.try_wait().map_err(|e| Fault::because("wait", e))? {
                Some(status) => return Ok(status.success()),
                None if watch.elapsed() > PATIENCE => return Ok(false),
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    /// Waits until it has printed a text.
    pub(super) fn until_printed(&mut self, text: &str) -> Result<()> {
        let printed = || fs::read_to_string(&self.log).unwrap_or_default();
        until(&format!("{text:?}"), || Ok(printed().contains(text)))
            .map_err(|e| Fault::because(e, format!("only this was printed: {}", end(&printed()))))
    }
}

/// A folder with a running broker.
pub(super) struct Desk {
    pub(super) folder: tempfile::TempDir,
    pub(super) transport: Arc<BrokerTransport>,
    connection: PathBuf,
    runtime: tokio::runtime::Runtime,
    /// Ended after everything that speaks with it.
    broker: Running,
}

impl Desk {
    /// Starts a broker whose hosted service is the stand-in, and attaches to it.
    pub(super) fn open(broker: &Path, service: &str) -> Result<Self> {
        let folder = tempfile::tempdir().map_err(|e| Fault::because("temporary folder", e))?;
        let mut command = quiet(broker, folder.path());
        command.args(["init", "--name", "demo", "--channels", "specialists", "--persist", "--api-port", "0"]);
        command.env("RELAYCAST_BASE_URL", service).env("AGENT_RELAY_TELEMETRY_DISABLED", "1");
        let broker = started(command, &folder, "broker.log")?;
        let mut found = None;
        let waited = until("a broker", || {
            found = Connection::discover(folder.path(), None).ok();
            Ok(found.is_some())
        });
        let log = || fs::read_to_string(&broker.log).unwrap_or_default();
        let connection = found.ok_or_else(|| Fault::new(format!("{waited:?}: {}", log())))?;
        let file = connection.state_directory().unwrap_or(folder.path()).join("connection.json");
        let transport = BrokerTransport::attach(connection, BrokerConfig::default());
        let transport = Arc::new(transport.map_err(|e| Fault::because("the broker", e))?);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| Fault::because("runtime", e))?;
        runtime.block_on(transport.start()).map_err(|e| Fault::because(log(), e))?;
        Ok(Self { folder, transport, connection: file, runtime, broker })
    }

    pub(super) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// The version that the broker reports.
    pub(super) fn version(&self) -> String {
        self.transport.session().map(|session| session.version).unwrap_or_default()
    }

    /// An agent that forgets what it is told, and the file that will hold its process id.
    pub(super) fn spawn_reader(&self, name: &str) -> Result<PathBuf> {
        let pid = self.folder.path().join(format!("{name}.pid"));
        let mut agent = SpawnAgent::new(name, "sh");
        agent.args =
            ["-c", "echo $$ > \"$0\"; exec cat", &pid.display().to_string()].map(str::to_owned).into();
        self.spawn(agent)?;
        Ok(pid)
    }

    pub(super) fn spawn(&self, agent: SpawnAgent) -> Result<()> {
        let name = agent.name.clone();
        self.block_on(self.transport.spawn(agent)).map_err(|e| Fault::because(name, e))
    }

    /// Starts a program in the folder, all that it prints in a log.
    pub(super) fn start(&self, mut command: Command, log: &str) -> Result<Running> {
        command.current_dir(self.folder.path()).env("HOME", self.folder.path());
        started(command, &self.folder, log)
    }

    /// A script of Node with the connection file and more arguments.
    pub(super) fn node<const N: usize>(&self, script: &Path, arguments: [&str; N]) -> Command {
        let mut command = quiet(Path::new("node"), self.folder.path());
        command.arg(script).arg(&self.connection).args(arguments);
        command
    }

    /// Asks a worker through our adapter.
    pub(super) async fn ask(&self, worker: &str, turn: &str, text: &str) -> ExecutionResult {
        let mut config = RelayAdapterConfig::default();
        config.worker_name = Some(worker.to_owned());
        config.orchestrator_name = format!("harness-{turn}");
        config.timeout = PATIENCE;
        config.registration = Registration::Reader { lifeline: Some(self.folder.path().to_owned()) };
        let transport = Arc::clone(&self.transport);
        let adapter = RelayExecutionAdapter::new(transport, Arc::new(SystemClock::new()), config);
        let message = ExecutionMessage::new("message-1", text);
        let request = ExecutionRequest::new("harness", turn, "Be brief.", message);
        adapter.execute(request, ExecutionCx::new(&(), &Cancel::never())).await
    }

    /// Asks, and does something while the answer is waited for.
    pub(super) fn ask_while(
        &self,
        worker: &str,
        turn: &str,
        meanwhile: impl FnOnce() -> Result<()> + Send,
    ) -> Result<ExecutionResult> {
        std::thread::scope(|scope| {
            let disturbing = scope.spawn(meanwhile);
            let result = self.block_on(self.ask(worker, turn, "never"));
            disturbing.join().map_err(|_| Fault::new("a check panicked"))??;
            Ok(result)
        })
    }

    /// What the broker printed, for faults.
    pub(super) fn broker_log(&self) -> String {
        end(&fs::read_to_string(&self.broker.log).unwrap_or_default())
    }
}

/// The last lines of a log.
fn end(log: &str) -> String {
    let lines: Vec<_> = log.lines().collect();
    lines.get(lines.len().saturating_sub(8)..).unwrap_or_default().join("\n")
}

/// A program that sees nothing of the surroundings but where programs are.
fn quiet(program: &Path, home: &Path) -> Command {
    let mut command = process::command(program);
    command.current_dir(home).env_clear().env("HOME", home).env("NO_PROXY", "127.0.0.1");
    // A check has to find the same programs as its caller.
    #[expect(clippy::disallowed_methods, reason = "passed on as it is")]
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

fn started(mut command: Command, folder: &tempfile::TempDir, log: &str) -> Result<Running> {
    let log = folder.path().join(log);
    let open = || File::create(&log).and_then(|out| Ok((out.try_clone()?, out)));
    let (out, err) = open().map_err(|e| Fault::because(log.display(), e))?;
    Ok(Running { child: process::start_logging(&mut command, out, err)?, log })
}

/// Looks until something holds.
pub(super) fn until(what: &str, mut holds: impl FnMut() -> Result<bool>) -> Result<()> {
    let watch = Stopwatch::start();
    while !holds()? {
        if watch.elapsed() > PATIENCE {
            return Err(Fault::new(format!("waited too long for {what}")));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
