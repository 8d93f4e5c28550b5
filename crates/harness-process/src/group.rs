//! All that a program started.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;

/// How long is waited, after everything was killed, for the kernel to hand over the rest.
pub const REAP: Duration = Duration::from_millis(500);

/// The process group that a program leads, killed when it is dropped.
#[derive(Debug)]
pub struct Group(Option<Pid>);

impl Group {
    /// The group of a child of [`start`](crate::start).
    pub fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }

    /// Asks what still runs of it to end.
    ///
    /// After a program's own exit only children that it left behind are in the group. They would
    /// otherwise hold its pipes open, and outlive a call whose result was already given. As long as one
    /// is left, the group's number cannot be given to another process.
    pub fn ask_to_end(&self) {
        self.signal(Signal::TERM);
    }

    /// Kills what still runs of it, and forgets its number, which may be given to a stranger from here on.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.0 = None;
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            // The one failure is that nobody is left to get it.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}
