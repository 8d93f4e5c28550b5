//! What several topics need.

use std::cell::Cell;
use std::time::Duration;

use harness_host::process::{Ended, Environment, Launch, Limits, ProgramSpec, run_with};

/// Longer than any test takes.
pub(crate) const LONG: Duration = Duration::from_mins(1);

thread_local! {
    static ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Does a test twice: with programs that have a supervisor, and with programs that have none.
pub(crate) fn both_ways(test: impl Fn()) {
    harness_host::process::supervise_by(env!("CARGO_BIN_EXE_harness-supervisor"));
    for alone in [false, true] {
        ALONE.set(alone);
        test();
    }
}

/// A launch with or without a supervisor, as the test has it.
pub(crate) fn launch(mut program: ProgramSpec, limits: Limits) -> Launch<'static> {
    program.passed = environment();
    let mut launch = Launch::new(program, limits);
    launch.supervised = !ALONE.get();
    launch
}

pub(crate) fn environment() -> Environment {
    Environment::from_iter([("PATH", "/usr/bin:/bin")])
}

pub(crate) fn block_on<F: Future>(work: F) -> F::Output {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(work)
}

/// Runs a script with this on its stdin.
pub(crate) async fn script(
    text: &str,
    input: &str,
    limits: Limits,
    unwanted: impl Future<Output = ()> + Send,
    tap: impl FnMut(&[u8]) + Send,
) -> std::io::Result<Ended> {
    run_with(launch(ProgramSpec::new("/bin/sh").args(["-c", text]), limits).stdin(input), unwanted, tap).await
}

/// Whether a process goes away: a dead one that nobody has asked for its end has. A killed one may still have
/// to be given the processor to die, so this looks again, some seconds at most.
pub(crate) fn gone(pid: &str) -> bool {
    (0..1_000_000).any(|_| {
        std::thread::yield_now();
        is_gone(pid)
    })
}

fn is_gone(pid: &str) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    state.is_ok_and(|text| text.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')))
        || !std::path::Path::new(&format!("/proc/{pid}")).exists()
}
