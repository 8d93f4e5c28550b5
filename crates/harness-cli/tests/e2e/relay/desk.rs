//! A folder with a running broker, and the programs that are started around it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use harness::adapters::execution::{
    ExecutionAdapter as _, ExecutionCx, ExecutionMessage, ExecutionRequest, ExecutionResult,
};
use harness::core::Cancel;
use harness::relay::{
    BrokerConfig, BrokerTransport, Connection, Registration, RelayAdapterConfig, RelayExecutionAdapter,
    RelayTransport as _, SpawnAgent,
};
use harness::system::SystemClock;
use tokio::runtime::Runtime;

use crate::other;
use crate::support::{PATIENCE, Project, Running, until};

/// A folder with a running broker.
pub(super) struct Desk {
    pub(super) project: Project,
    pub(super) transport: Arc<BrokerTransport>,
    connection: PathBuf,
    runtime: Runtime,
    /// Ended after everything that speaks with it.
    _broker: Running,
}

impl Desk {
    /// Starts a broker whose hosted service is the stand-in, and attaches to it.
    pub(super) fn open(broker: &Path, service: &str) -> Self {
        let project = Project::of(&[]);
        let mut command = other(broker, project.path());
        command.args(["init", "--name", "demo", "--channels", "specialists", "--persist", "--api-port", "0"]);
        command.env("RELAYCAST_BASE_URL", service).env("AGENT_RELAY_TELEMETRY_DISABLED", "1");
        let broker = Running::start_logging(command, &project.path().join("broker.log"));
        until(PATIENCE, "a broker", || Connection::discover(project.path(), None).is_ok());
        let connection = Connection::discover(project.path(), None).unwrap();
        let file = connection.state_directory().unwrap_or(project.path()).join("connection.json");
        let transport = Arc::new(BrokerTransport::attach(connection, BrokerConfig::default()).unwrap());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let started = runtime.block_on(transport.start());
        assert!(started.is_ok(), "{started:?}\n{}", project.read("broker.log"));
        Self { project, transport, connection: file, runtime, _broker: broker }
    }

    pub(super) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// An agent that forgets what it is told; the file that will hold its process id.
    pub(super) fn spawn_reader(&self, name: &str) -> String {
        let file = format!("{name}.pid");
        let path = self.project.path().join(&file).display().to_string();
        let mut agent = SpawnAgent::new(name, "sh");
        agent.args = ["-c", "echo $$ > \"$0\"; exec cat", &path].map(str::to_owned).into();
        self.block_on(self.transport.spawn(agent)).unwrap();
        file
    }

    /// Starts a program in the folder; all that it prints goes to the file.
    pub(super) fn start(&self, mut command: Command, log: &str) -> Running {
        command.current_dir(self.project.path()).env("HOME", self.project.path());
        Running::start_logging(command, &self.project.path().join(log))
    }

    /// Waits until a program has printed a text.
    #[track_caller]
    pub(super) fn until_printed(&self, log: &str, text: &str) {
        until(PATIENCE, &format!("{text:?} in {log}"), || self.project.read(log).contains(text));
    }

    /// A script of Node with the connection file and more arguments.
    pub(super) fn node(&self, script: &Path, arguments: &[&str]) -> Command {
        let mut command = other("node", self.project.path());
        command.arg(script).arg(&self.connection).args(arguments);
        command
    }

    /// Asks a worker through our adapter.
    pub(super) async fn ask(&self, worker: &str, turn: &str, text: &str) -> ExecutionResult {
        let mut config = RelayAdapterConfig::default();
        config.worker_name = Some(worker.to_owned());
        config.orchestrator_name = format!("harness-{turn}");
        config.timeout = PATIENCE;
        config.registration = Registration::Reader { lifeline: Some(self.project.path().to_owned()) };
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
        meanwhile: impl FnOnce() + Send,
    ) -> ExecutionResult {
        std::thread::scope(|scope| {
            scope.spawn(meanwhile);
            self.block_on(self.ask(worker, turn, "never"))
        })
    }
}
