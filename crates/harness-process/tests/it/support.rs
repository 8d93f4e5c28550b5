//! What several topics need.

use std::ffi::OsString;
use std::time::Duration;

use harness_process::{Ended, Environment, Launch, Limits, run_with};

/// Longer than any test takes.
pub(crate) const LONG: Duration = Duration::from_mins(1);

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
    let args = ["-c", text].map(OsString::from);
    let launch = Launch::new("/bin/sh", &args, environment(), limits).stdin(input);
    run_with(launch, unwanted, tap).await
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
