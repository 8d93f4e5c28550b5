//! Programs of this machine as backends and runners.

mod agents;
mod command;
mod failures;
mod probe;
mod runners;
mod sessions;

use std::sync::Arc;
use std::time::Duration;

use harness_adapters::execution::{
    ExecutionAdapter, ExecutionCx, ExecutionMessage, ExecutionPart, ExecutionRequest, ExecutionResult,
    ExecutionSink,
};
use harness_adapters::local::{AgentBackend, LocalAgent, LocalProgram};
use harness_core::Cancel;
use harness_core::{Json, Time};
use harness_host::process::{Environment, ProgramSpec};
use parking_lot::Mutex;

use crate::support::Stopped;

/// Longer than any test takes.
const LONG: Duration = Duration::from_mins(1);

/// The key in every environment; no test may find it in anything that is told.
const SECRET: &str = "sk-secret-0123456789";

fn environment() -> Environment {
    Environment::from_iter([("PATH", "/usr/bin:/bin"), ("ANTHROPIC_API_KEY", SECRET), ("OTHER", "other")])
}

fn clock() -> Arc<Stopped> {
    Arc::new(Stopped(Time(0)))
}

fn shell() -> LocalProgram {
    let spec = ProgramSpec::new("/bin/sh").pass(&environment(), ["ANTHROPIC_API_KEY"]);
    let mut program = LocalProgram::new(spec);
    program.limits.time = LONG;
    program
}

fn request(text: &str) -> ExecutionRequest {
    ExecutionRequest::new("assistant", "turn-1", "Be brief.", ExecutionMessage::new("m1", text))
}

fn block_on<F: Future>(work: F) -> F::Output {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(work)
}

/// Whether a process that was killed goes: under load the kernel needs a moment for it.
fn gone(pid: &str) -> bool {
    (0..100_000).any(|_| {
        std::thread::yield_now();
        is_gone(pid)
    })
}

/// Whether a process is gone: a dead one that nobody has asked for its end is.
fn is_gone(pid: &str) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    state.is_ok_and(|text| text.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')))
        || !std::path::Path::new(&format!("/proc/{pid}")).exists()
}

fn execute(adapter: &impl ExecutionAdapter, request: ExecutionRequest) -> ExecutionResult {
    block_on(adapter.execute(request, ExecutionCx::new(&(), &Cancel::never())))
}

/// What a backend told, one line for each part.
#[derive(Default)]
struct Parts(Mutex<Vec<String>>);

impl ExecutionSink for Parts {
    fn part(&self, part: ExecutionPart) {
        let line = match part {
            ExecutionPart::Text(text) => format!("text {text:?}"),
            ExecutionPart::Thinking(text) => format!("thinks {text:?}"),
            ExecutionPart::ToolStarted { id, name, input } => format!("call {id} {name} {input}"),
            ExecutionPart::ToolFinished { id, output, failed } => {
                format!("result {id} {}{output:?}", if failed { "failed " } else { "" })
            }
            ExecutionPart::Usage(usage) => format!("usage {}", Json::of(&usage).unwrap()),
            ExecutionPart::Note(text) => format!("note {text:?}"),
            other => format!("{other:?}"),
        };
        self.0.lock().push(line);
    }
}

/// An agent that is played by a script.
struct Played {
    backend: AgentBackend,
    folder: tempfile::TempDir,
}

impl Played {
    /// It prints these lines and exits with this code.
    fn printing(agent: LocalAgent, lines: &[&str], code: i32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("stdout"), lines.join("\n")).unwrap();
        let script =
            format!("cat > stdin; for arg in \"$@\"; do echo \"$arg\"; done > args; cat stdout; exit {code}");
        Self::script(agent, folder, &script)
    }

    fn script(agent: LocalAgent, folder: tempfile::TempDir, script: &str) -> Self {
        let path = folder.path().join("agent.sh");
        std::fs::write(&path, script).unwrap();
        let mut backend = AgentBackend::new(agent, &environment(), clock()).cwd(folder.path()).timeout(LONG);
        backend.program.spec.path = "/bin/sh".into();
        backend.program.spec.args = vec![path.into()];
        Self { backend, folder }
    }

    /// What it told, and a last line with what came of it.
    fn told(&self) -> String {
        let parts = Parts::default();
        let cancel = Cancel::never();
        let result = block_on(self.backend.execute(request("Go."), ExecutionCx::new(&parts, &cancel)));
        let shown = serde_json::to_string(&result).unwrap();
        assert!(!shown.contains(SECRET), "{shown}");
        let mut lines = parts.0.into_inner();
        assert!(lines.iter().all(|line| !line.contains(SECRET)), "{lines:?}");
        lines.push(summary(&result));
        lines.join("\n")
    }

    fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap()
    }
}

/// Status, answer or failure, session and calls.
fn summary(result: &ExecutionResult) -> String {
    let mut line = format!("{} {:?}", result.status.as_str(), result.text());
    if let Some(error) = &result.error {
        line = format!("{} {}: {}", result.status.as_str(), error.code.as_str(), error.message);
        match error.retryable {
            Some(true) => line.push_str(" (retryable)"),
            Some(false) => line.push_str(" (final)"),
            None => {}
        }
    }
    let state = result.continuation.as_ref().and_then(|continuation| continuation.state.as_ref());
    if let Some(state) = state {
        line = format!("{line} {state}");
    }
    line
}
