//! The worker process: scripted agents, by the name of their thread.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use harness::core::port::Clock;
use harness::core::{Cancel, Fault, FaultSource, Millis};
use harness::runtime::QueueMode;
use harness::system::SystemClock;
use harness_restate::durable::{Agent, AgentHost, HostAsk};
use harness_restate::engine::restate::{Engine, Relays, Worker, WorkerOptions};
use tokio::net::TcpListener;

use crate::one_line::OneLine;
use crate::scripts;
use crate::world::{Host, Note, Script, calls, redactor, tasks, text};

/// How long a run waits for a decision before it parks.
pub(crate) const PARK_AFTER: Millis = Millis(1_000);

/// Scripts that wait for a time limit of minutes or days.
pub(crate) const TOO_LONG: [&str; 4] =
    ["nobody decides", "nobody decides in a sub-agent", "two parked sub-agents", "a silent model"];

/// The scripts of workers: those of the laws, and one with many iterations.
pub(crate) fn all_scripts() -> Vec<Script> {
    let mut all = scripts::all();
    // Whether two messages come before one delivery cannot be said of a real network.
    all.retain(|script| script.delivery.steering == QueueMode::OneAtATime);
    all.extend(scripts::poisoned());
    let mut answers: Vec<_> = (0..LONG).map(|at| calls(&[&format!("look-{at}")])).collect();
    answers.push(text("Done."));
    let said = vec!["Order tea."];
    let hung = all.iter().find(|script| script.name == "abort").cloned().unwrap();
    all.push(Script { name: "abort of a model that heeds", heeds: true, ..hung });
    let paid = vec![calls(&["pay"]), text("Paid.")];
    let slow = Script { thinks: Millis(700), answers: paid, ..Script::default() };
    all.push(Script {
        name: "a slow sub-agent",
        child: Some(Box::new(slow)),
        answers: vec![tasks(&["c-task"]), text("Done.")],
        said: said.clone(),
        ..Script::default()
    });
    all.push(Script { name: "long", answers, thinks: Millis(0), said, ..Script::default() });
    all
}

/// Iterations of the script `long` before its last.
pub(crate) const LONG: usize = 8;

/// Pieces of an answer that streams.
pub(crate) const STAMPS: usize = 100;

/// The scripts of threads that a front end serves. Their names may be in URLs.
fn front_scripts() -> Vec<Script> {
    let script = |name, answers| Script { name, answers, ..Script::default() };
    vec![
        Script {
            thinks: Millis(800),
            ..script("front-steer", vec![calls(&["look"]), text("Tea and milk.")])
        },
        script("front-plain", vec![calls(&["look"]), calls(&["pay"]), text("Done.")]),
        script("front-approval", vec![calls(&["sign"]), text("Signed.")]),
        Script {
            child: Some(Box::new(script("", vec![calls(&["sign-1", "sign-2"]), text("Signed.")]))),
            ..script("front-task", vec![tasks(&["c-task"]), text("Done.")])
        },
        Script { hangs: Some(0), heeds: true, ..script("front-abort", Vec::new()) },
        Script { stamps: STAMPS, ..script("front-deltas", vec![calls(&["look"]), text("")]) },
        script("front-progress", vec![calls(&["slow"]), text("Done.")]),
    ]
}

/// The script of a thread, which is named `SCRIPT.NUMBER`.
pub(crate) fn script_of(thread: &str) -> Option<Script> {
    let name = thread.split('.').next()?;
    all_scripts().into_iter().chain(front_scripts()).find(|script| script.name == name)
}

struct Agents {
    clock: Arc<dyn Clock>,
    ledger: PathBuf,
}

impl AgentHost for Agents {
    async fn agent(&self, ask: HostAsk<'_>) -> Result<Agent, Fault> {
        let thread = ask.origin.thread.clone().unwrap_or_default();
        let unbound =
            || Fault::new(FaultSource::Agent, "descriptor.unbound", format!("no script for {thread}"));
        let script = script_of(thread.as_str()).ok_or_else(unbound)?;
        let note = notes(&self.ledger);
        let acts = Arc::clone(&note);
        let user = Arc::new(move |answer, at, _: &_| acts(format!("act {answer} {at} {thread}")));
        let mut agent = Host::noting(&script, Arc::clone(&self.clock), user, &note).parts();
        agent.ports.compactor = Some(Arc::new(OneLine));
        Ok(agent)
    }
}

/// Appends lines to a file, each in one write.
fn notes(ledger: &Path) -> Note {
    let ledger = ledger.to_owned();
    Arc::new(move |line| {
        let mut file = OpenOptions::new().append(true).create(true).open(&ledger).unwrap();
        file.write_all(format!("{line}\n").as_bytes()).unwrap();
    })
}

/// Serves until the process is killed. The words: port, ingress, ledger, then URLs of front ends, and the key of the engine,
/// if it signs.
pub(crate) fn serve(words: &[String]) -> ExitCode {
    let [port, ingress, ledger, others @ ..] = words else {
        panic!("a worker needs a port, an ingress and a ledger")
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let host = Agents { clock: Arc::new(SystemClock::new()), ledger: ledger.into() };
        let mut options = WorkerOptions::default();
        options.drive.park_after = PARK_AFTER;
        let mut servers = ingress.split(',');
        let mut engine = Engine::new(servers.next().unwrap()).unwrap();
        for other in servers {
            engine = engine.or(other).unwrap();
        }
        let (front_ends, keys): (Vec<_>, Vec<_>) =
            others.iter().partition(|word| word.starts_with("http://"));
        let mut worker =
            Worker::builder(host, engine).options(options).redactor(redactor()).identity_keys(keys);
        if !front_ends.is_empty() {
            worker = worker.relays(Relays::new(front_ends).unwrap());
        }
        let worker = worker.build().unwrap();
        let listener = TcpListener::bind(format!("127.0.0.1:{port}")).await.unwrap();
        worker.serve(listener, Cancel::never()).await.unwrap();
    });
    ExitCode::SUCCESS
}
