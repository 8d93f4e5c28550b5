//! What the test programs share: the program, a scripted endpoint, projects in temporary folders, a person at a
//! terminal.

mod person;
mod program;
mod project;
mod pty;
mod server;
mod sse;

use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

pub(crate) use person::Person;
pub(crate) use program::{Output, Running, harness, harness_on_a_full_disk, shell, through};
pub(crate) use project::{Project, copy, normal};
pub(crate) use pty::{at_own_terminal, on_terminal, raw_controls, terminal};
pub(crate) use server::{Gate, Reply, Server, listen};
pub(crate) use sse::Answer;

/// Far more than anything here takes, even on a machine that is busy with other things.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// The pause between two looks of [`until`].
const PAUSE: Duration = Duration::from_millis(5);

/// The folder of the workspace.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Does something that may hang when the program is wrong, and fails then instead.
#[track_caller]
pub(crate) fn within<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    in_time(PATIENCE, what, work)
}

/// Does something that must be done in so much time.
#[track_caller]
pub(crate) fn in_time<T: Send + 'static>(
    patience: Duration,
    what: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    let (sender, done) = mpsc::channel();
    std::thread::spawn(move || sender.send(work()));
    match done.recv_timeout(patience) {
        Ok(value) => value,
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => panic!("{what} did not happen"),
    }
}

/// Looks until something is so, at a thing of another process that cannot be waited for.
#[track_caller]
pub(crate) fn until(patience: Duration, what: &str, mut so: impl FnMut() -> bool) {
    for _ in 0..patience.as_millis() / PAUSE.as_millis() {
        if so() {
            return;
        }
        std::thread::sleep(PAUSE);
    }
    panic!("waited too long for {what}");
}
