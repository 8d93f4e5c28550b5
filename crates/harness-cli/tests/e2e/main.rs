//! What only the finished program can show: `cargo xtask e2e` installs what these checks need, and runs them.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a panic is how a test fails, in its helpers too"
)]

mod acp;
mod ag_ui;
mod agents;
mod chat;
mod cluster;
mod crash;
mod deploy;
mod first_run;
mod graphs;
mod kill;
mod local_model;
mod mcp;
mod model_server;
mod openai;
mod postgres;
mod relay;
mod screenshots;
mod serve;
mod server_page;
mod start_up;
#[path = "../support/mod.rs"]
#[expect(dead_code, unused_imports, reason = "the other test program uses the rest")]
mod support;
mod trace_page;
mod typescript;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Running, copy, root};

/// The shipped example, which the demo model answers.
const EXAMPLE: &str = "fixtures/examples/customer-support/harness.yaml";

/// Copies the example, with refunds that require approval.
#[track_caller]
fn guarded_example(folder: &Path) {
    copy(root().join(EXAMPLE).parent().unwrap(), folder);
    let registry = folder.join("registry.yaml");
    let text = std::fs::read_to_string(&registry).unwrap();
    let guarded = text.replace("    class: unsafe\n", "    class: unsafe\n    requires_approval: true\n");
    assert_ne!(guarded, text, "a tool of the example is unsafe");
    std::fs::write(&registry, guarded).unwrap();
}

/// The longest that a program may take that does many things.
const LONG: Duration = Duration::from_mins(5);

/// The folder in which `cargo xtask e2e` has installed something.
#[track_caller]
fn installed(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("e2e").join(name);
    assert!(folder.join("installed").is_file(), "{name} is not installed: use `cargo xtask e2e`");
    folder
}

/// Another program in a folder, which sees nothing of the surroundings but where programs are.
#[expect(clippy::disallowed_methods, reason = "checks start the programs that they set beside ours")]
fn other(program: impl AsRef<Path>, folder: &Path) -> Command {
    let mut command = Command::new(program.as_ref());
    command.current_dir(folder).env_clear().env("HOME", folder).stdin(Stdio::null());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

/// Runs a command, which must succeed; what it printed.
#[track_caller]
fn ran(command: Command) -> String {
    let line = format!("{command:?}");
    let output = Running::start(command).end_in(LONG);
    assert_eq!(output.code, Some(0), "{line}\n{}{}", output.stdout, output.stderr);
    output.stdout
}

/// Does something; how long it took.
#[expect(clippy::disallowed_methods, reason = "the clock of the product is in the product")]
fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let value = work();
    (value, start.elapsed())
}

/// The ids of all calls and of all results in a session, in the order of the file.
fn calls_and_results(session: &[serde_json::Value]) -> (Vec<&str>, Vec<&str>) {
    let messages = || session.iter().map(|entry| &entry["message"]);
    let blocks = messages().filter_map(|message| message["content"].as_array()).flatten();
    let calls = blocks.filter(|block| block["type"] == "toolCall").filter_map(|call| call["id"].as_str());
    (calls.collect(), messages().filter_map(|message| message["toolCallId"].as_str()).collect())
}
