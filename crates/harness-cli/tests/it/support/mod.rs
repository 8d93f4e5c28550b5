//! What the tests share: the program, a scripted endpoint, projects in temporary folders.

pub(crate) mod corpus;
mod program;
mod project;
mod pty;
mod server;
mod sse;
pub(crate) mod watched;

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

pub(crate) use program::{Output, Running, harness, harness_on_a_full_disk, shell};
pub(crate) use project::{Project, normal};
pub(crate) use pty::{on_terminal, raw_controls, terminal};
pub(crate) use server::{Gate, Reply, Server};
pub(crate) use sse::Answer;

/// Far more than anything here takes, even on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_mins(1);

/// Does something that may hang when the program is wrong, and fails then instead.
#[track_caller]
pub(crate) fn within<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, done) = mpsc::channel();
    std::thread::spawn(move || sender.send(work()));
    match done.recv_timeout(PATIENCE) {
        Ok(value) => value,
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => panic!("{what} did not happen"),
    }
}
