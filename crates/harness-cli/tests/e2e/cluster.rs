//! The program as a worker of a real engine: conversations outlive workers and servers that are killed, and an operator
//! finds, resumes and settles runs that are stuck.

mod dev;
mod doctor;
mod front;

use std::fs;
use std::path::Path;
use std::time::Duration;

use harness::core::message::Message;
use harness::core::port::Decision;
use harness::core::{End, ThreadId};
use harness::runtime::{ApprovalDecision, DeliveryMode, ThreadMessage, ThreadService as _};
use harness_restate::durable::{LogItem, ThreadState, ThreadStatus};
use harness_restate::engine::restate::{DurableThreads, Engine, RunFilter};
use serde_json::{Value, json};

use crate::support::{Answer, Output, Project, Reply, Running, Server, harness, until};
use crate::{installed, other};

/// The longest that the engine takes for anything here.
const LONG: Duration = Duration::from_mins(2);

/// Below the folder of the installed package.
const PACKAGED: &str = "node_modules/@restatedev/restate-server-linux-x64/bin/restate-server";

/// Pays, which takes until there is a file `open`.
const PAY: &str = "\
echo paid >> ledger
while ! test -e open; do sleep 0.05; done
echo '{\"paid\":1}'
";

/// A server, and a worker that is the program.
struct Cluster {
    project: Project,
    model: Server,
    /// Of the engine's node, its ingress and its admin API, of the worker, and of a front end for the worker.
    ports: [u16; 5],
    server: Option<Running>,
    worker: Option<Running>,
    /// How long a run waits for a decision before it is parked.
    park_after: &'static str,
    runtime: tokio::runtime::Runtime,
}

impl Cluster {
    /// Starts both, and registers the worker.
    fn start(settings: &str) -> Self {
        Self::parking_after("1s", settings)
    }

    fn parking_after(park_after: &'static str, settings: &str) -> Self {
        Self::with(park_after, settings, Server::by(answer))
    }

    fn with(park_after: &'static str, settings: &str, model: Server) -> Self {
        let listeners = [(); 5].map(|()| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
        let ports = listeners.map(|listener| listener.local_addr().unwrap().port());
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let project = Project::new("echo '{\"seen\":1}'", PAY).with_pay(settings);
        let mut cluster = Self { project, model, ports, server: None, worker: None, park_after, runtime };
        cluster.start_server();
        cluster.start_worker(&["--register"]);
        cluster
    }

    fn url(&self, of: usize) -> String {
        format!("http://127.0.0.1:{}", self.ports[of])
    }

    fn start_server(&mut self) {
        let [node, ingress, admin, ..] = self.ports;
        let folder = self.project.path().join("engine");
        fs::create_dir_all(&folder).unwrap();
        let config = format!(
            "node-name = \"one\"\nbase-dir = \"data\"\nbind-ip = \"127.0.0.1\"\nbind-port = {node}\n\
             disable-telemetry = true\nauto-provision = true\ndefault-num-partitions = 2\n\
             rocksdb-total-memory-size = \"256 MiB\"\nlog-filter = \"error\"\n\
             [ingress]\nbind-port = {ingress}\n[admin]\nbind-port = {admin}\ndisable-web-ui = true\n"
        );
        fs::write(folder.join("config.toml"), config).unwrap();
        let mut server = other(program(), &folder);
        server.args(["--no-logo", "--listen-mode", "tcp", "-c", "config.toml"]);
        server.env("RESTATE_DISABLE_TELEMETRY", "true").env("TMPDIR", &folder);
        self.server = Some(Running::start_logging(server, &folder.join("log")));
        until(LONG, "the engine", || {
            let output = self.harness(&["engine", "status"], &["--admin", &self.url(2)]);
            output.code == Some(0)
        });
    }

    /// Starts the worker, and waits until it listens.
    fn start_worker(&mut self, more: &[&str]) {
        let listen = format!("127.0.0.1:{}", self.ports[3]);
        let (engine, admin) = (self.url(1), self.url(2));
        let words = ["worker", "harness.yaml", "--engine", &engine, "--admin", &admin, "--listen", &listen];
        let relay = self.url(4);
        let own = ["--base-url", &self.model.url, "--park-after", self.park_after, "--relay", &relay];
        let command = self.project.command(&[&words, &own[..], more].concat());
        let (worker, line) = Running::start(command).line("the address of the worker");
        assert_eq!(line, format!("listening on http://{listen} as http://{listen}\n"));
        self.worker = Some(worker);
    }

    /// A command of an operator.
    fn harness(&self, words: &[&str], more: &[&str]) -> Output {
        Running::start(harness(self.project.path(), &[words, more].concat())).end_in(LONG)
    }

    fn operate(&self, words: &[&str]) -> Output {
        self.harness(&[&["engine"], words].concat(), &["--admin", &self.url(2)])
    }

    fn engine(&self) -> Engine {
        Engine::new(&self.url(1)).unwrap().admin(&self.url(2)).unwrap()
    }

    fn threads(&self) -> DurableThreads {
        DurableThreads::new(self.engine())
    }

    /// Sends a message.
    fn prompt(&self, thread: &str, name: &str, text: &str) {
        let (threads, thread) = (self.threads(), ThreadId::from(thread));
        let message = ThreadMessage::new(Message::user(text), DeliveryMode::NextTurn).named(name);
        let sent = threads.deliver(&thread, message);
        self.runtime.block_on(sent).unwrap();
    }

    fn snapshot(&self, thread: &str) -> ThreadState {
        self.runtime.block_on(self.threads().state(&thread.into())).unwrap()
    }

    /// Waits until a thread has nothing to do.
    fn finished(&self, thread: &str) -> Result<End, String> {
        until(LONG, "the end of a run", || {
            let state = self.snapshot(thread);
            *state.status() == ThreadStatus::Idle && state.last().is_some()
        });
        let last = self.snapshot(thread).last().cloned().unwrap();
        last.map(|end| (*end).clone())
    }

    /// The texts of all messages of a thread.
    fn texts(&self, thread: &str) -> Vec<String> {
        let thread = ThreadId::from(thread);
        let mut all = Vec::new();
        loop {
            let read = self.threads();
            let (entries, len) = self.runtime.block_on(read.read(&thread, all.len() as u64)).unwrap();
            all.extend(entries);
            if all.len() as u64 >= len {
                break;
            }
        }
        let journal = harness_restate::durable::fold(&all);
        assert!(all.iter().any(|entry| matches!(entry.item, LogItem::Event(_))));
        journal.messages().map(|message| message.joined_text()).collect()
    }

    fn kill_worker(&mut self) {
        self.worker.take().unwrap().kill();
    }

    fn ledger(&self) -> usize {
        fs::read_to_string(self.project.path().join("ledger")).unwrap_or_default().lines().count()
    }

    fn is_paying(&self, times: usize) {
        until(LONG, "a payment", || self.ledger() == times);
    }

    /// The run of a thread at the engine, as JSON.
    fn at_work(&self, thread: &str) -> Value {
        let output = self.operate(&["status", "--json"]);
        let status: Value = serde_json::from_str(&output.stdout).unwrap();
        let mut runs = status["atWork"].as_array().unwrap().iter();
        runs.find(|run| run["thread"] == thread).cloned().unwrap_or_default()
    }

    /// Pauses the run of a thread, as the engine does after many failures.
    fn pause(&self, thread: &str) {
        let admin = self.url(2);
        self.runtime.block_on(async {
            let id = ThreadId::from(thread);
            let run = self.engine().runs(RunFilter::Thread(&id), 1).await.unwrap().remove(0);
            let url = format!("{admin}/invocations/{}/pause", run.invocation.unwrap());
            let client = reqwest::Client::builder().no_proxy().build().unwrap();
            client.patch(url).send().await.unwrap().error_for_status().unwrap();
        });
        until(LONG, "a paused run", || self.at_work(thread)["state"] == "paused");
    }
}

/// The program of the server.
#[expect(clippy::disallowed_methods, reason = "the check is told where its server is")]
fn program() -> std::path::PathBuf {
    std::env::var_os("HARNESS_RESTATE_SERVER").map_or_else(|| installed("cluster").join(PACKAGED), Into::into)
}

/// Looks and pays, then says so.
fn answer(request: &Value) -> Reply {
    let messages = request["messages"].as_array().unwrap();
    let last = messages.iter().rposition(|message| message["role"] == "user").unwrap();
    let results = messages[last..].iter().filter(|message| message["role"] == "tool").count();
    let call = |tool: &str| {
        let id = format!("{tool}-{}", messages.len());
        Reply::Stream(Answer::call(&id, tool, &json!({})))
    };
    match (results, messages[last]["content"].to_string().contains("pay")) {
        (0, _) => call("look"),
        (1, true) => call("pay"),
        _ => Reply::text("Done."),
    }
}

fn open(project: &Path) {
    fs::write(project.join("open"), "").unwrap();
}

#[test]
fn a_killed_worker_repeats_no_unsafe_call() {
    let mut cluster = Cluster::start("");
    cluster.prompt("ada", "m1", "Look.");
    assert_eq!(cluster.finished("ada").unwrap().answer.as_deref(), Some("Done."));
    let status = cluster.operate(&["status"]);
    let url = format!("at {}", cluster.url(3));
    assert!(status.stdout.contains(&url) && status.stdout.contains("latest\nruns: none\n"), "{status:?}");

    cluster.prompt("bob", "m1", "Please pay.");
    cluster.is_paying(1);
    cluster.kill_worker();
    until(LONG, "a failure", || cluster.at_work("bob")["failures"][0]["error"].is_string());
    let status = cluster.operate(&["status"]);
    assert!(status.stdout.contains("\nbob: ") && status.stdout.contains("fails, "), "{status:?}");
    open(cluster.project.path());
    cluster.start_worker(&[]);
    assert_eq!(cluster.finished("bob").unwrap().answer.as_deref(), Some("Done."));
    let texts = cluster.texts("bob");
    assert!(texts.iter().any(|text| text.contains("It may have taken effect")), "{texts:?}");
    assert_eq!(cluster.ledger(), 1, "an unsafe call begins once");

    // It ends in good order, and leaves no process.
    cluster.worker.as_ref().unwrap().signal(rustix::process::Signal::TERM);
    let ended = cluster.worker.take().unwrap().end_in(LONG);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn an_approval_outlives_everything() {
    let mut cluster = Cluster::start("    requires_approval: true\n");
    open(cluster.project.path());
    cluster.prompt("ada", "m1", "Please pay.");
    until(LONG, "a parked run", || matches!(cluster.snapshot("ada").status(), ThreadStatus::Parked(_)));
    cluster.kill_worker();
    cluster.server.take().unwrap().kill();
    cluster.start_server();
    cluster.start_worker(&[]);
    let (threads, thread) = (cluster.threads(), ThreadId::from("ada"));
    let pending = cluster.runtime.block_on(threads.approvals(&thread)).unwrap();
    let [pending] = &pending[..] else { panic!("{pending:?}") };
    let (approval, digest) = (pending.proposed.id(), pending.proposed.digest());
    let decided = ApprovalDecision { approval, digest, decision: Decision::Granted };
    cluster.runtime.block_on(threads.decide(&thread, decided)).unwrap();
    assert_eq!(cluster.finished("ada").unwrap().answer.as_deref(), Some("Done."));
    assert_eq!(cluster.ledger(), 1);
}

#[test]
fn an_operator_resumes_and_settles() {
    let mut cluster = Cluster::start("");
    let stuck = cluster.operate(&["stuck"]);
    assert_eq!((stuck.code, &*stuck.stdout), (Some(0), "no run is stuck\n"), "{stuck:?}");
    cluster.prompt("ada", "m1", "Please pay.");
    cluster.is_paying(1);
    cluster.prompt("bob", "m1", "Please pay.");
    cluster.is_paying(2);
    let engine = ["--engine", &cluster.url(1), "--admin", &cluster.url(2)];
    let refused = cluster.harness(&["engine", "settle", "ada", "--json"], &engine);
    assert!(refused.code == Some(2) && refused.stdout.contains("cli.at_work"), "{refused:?}");
    cluster.kill_worker();
    for thread in ["ada", "bob"] {
        cluster.pause(thread);
    }
    open(cluster.project.path());
    cluster.start_worker(&[]);
    let stuck = cluster.operate(&["stuck"]);
    assert!(stuck.code == Some(1) && stuck.stdout.contains("ada: paused for "), "{stuck:?}");

    let resumed = cluster.operate(&["resume", "bob"]);
    assert_eq!((resumed.code, &*resumed.stdout), (Some(0), "1 run resumed\n"), "{resumed:?}");
    assert_eq!(cluster.finished("bob").unwrap().answer.as_deref(), Some("Done."));
    let refused = cluster.operate(&["resume", "bob"]);
    assert!(refused.stderr.contains("thread `bob` has no paused run"), "{refused:?}");

    let engine = ["--engine", &cluster.url(1), "--admin", &cluster.url(2)];
    let words = ["engine", "settle", "ada", "--reason", "the till is closed"];
    let settled = cluster.harness(&words, &engine);
    assert!(settled.code == Some(0) && settled.stdout.starts_with("run ada-1 is settled"), "{settled:?}");
    assert_eq!(cluster.finished("ada").unwrap_err(), "cut_off: the till is closed");
    // The thread goes on, knows its first message once, and the call that may have happened is marked.
    cluster.prompt("ada", "m2", "Look.");
    until(LONG, "the next end", || cluster.snapshot("ada").last().is_some_and(Result::is_ok));
    assert_eq!(cluster.finished("ada").unwrap().answer.as_deref(), Some("Done."));
    let texts = cluster.texts("ada");
    assert_eq!(texts.iter().filter(|text| *text == "Please pay.").count(), 1, "{texts:?}");
    assert!(texts.iter().any(|text| text.contains("It may have taken effect")), "{texts:?}");
    assert_eq!(cluster.ledger(), 2, "an unsafe call begins once");
    let stuck = cluster.operate(&["stuck", "--json"]);
    assert_eq!((stuck.code, stuck.stdout.contains("[]")), (Some(0), true), "{stuck:?}");
}

#[test]
fn mistakes_are_explained() {
    let cluster = Cluster::start("");
    let check = |words: &[&str], expected: &str| {
        let output = cluster.harness(words, &[]);
        assert!(output.code == Some(2) && output.stderr.contains(expected), "{words:?}: {output:?}");
    };
    let (engine, admin) = (cluster.url(1), cluster.url(2));
    let worker = ["worker", "harness.yaml", "--model", "demo", "--engine"];
    let nobody = "http://127.0.0.1:1";
    check(&[&worker[..], &[nobody]].concat(), "hint: start the engine, or pass its URLs");
    check(&[&worker[..], &[&admin]].concat(), "`--engine` is the ingress (default port 8080)");
    let taken = ["--admin", &admin, "--listen", engine.trim_start_matches("http://")];
    check(&[&worker[..], &[&engine], &taken].concat(), "cannot listen on");
    let unreachable = ["--admin", &admin, "--listen", "127.0.0.1:0", "--advertise", nobody, "--register"];
    check(
        &[&worker[..], &[&engine], &unreachable].concat(),
        "the engine did not register http://127.0.0.1:1",
    );
    check(&[&worker[..], &[&engine, "--listen", "0.0.0.0:0"]].concat(), "hint: pass `--identity-key KEY`");
    check(&[&worker[..], &[&engine, "--relay", "front"]].concat(), "`front` is not the URL of a front end");
    check(&["engine", "status", "--admin", &engine], "`--admin` the admin API (default port 9070)");
    check(
        &["engine", "register", nobody, "--admin", &admin],
        "the engine did not register http://127.0.0.1:1",
    );
    let again = cluster.operate(&["register", &cluster.url(3)]);
    assert_eq!((again.code, again.stdout), (Some(0), format!("new work goes to {}\n", cluster.url(3))));
    check(&["engine", "settle", "eve", "--engine", &engine, "--admin", &admin], "thread `eve` has no run");
}
