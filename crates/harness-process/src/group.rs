//! All that a program started.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;

use crate::strays::Strays;

/// How long is waited, after everything was killed, for the kernel to hand over the rest.
pub const REAP: Duration = Duration::from_millis(500);

/// The process group that a program leads, killed when it is dropped.
#[derive(Debug)]
pub struct Group {
    /// The group's number.
    number: Option<Pid>,
    /// The program that leads it, while its number is its own for sure.
    leader: Option<Pid>,
    strays: Strays,
}

impl Group {
    /// The group of a child of [`start`](crate::start).
    pub fn of(child: &Child) -> Self {
        let number = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Self { number, leader: None, strays: Strays::default() }
    }

    /// The same, and where the system tells of it, processes that have left the group are ended with it.
    /// Whoever asks for that calls [`leader_ended`](Self::leader_ended) as soon as the program has been waited
    /// for.
    #[must_use]
    pub fn with_strays(mut self) -> Self {
        self.leader = self.number;
        self
    }

    /// The program has ended, and its number may be given to a stranger once its group is gone.
    pub fn leader_ended(&mut self) {
        self.leader = None;
    }

    /// Asks what still runs of it to end.
    ///
    /// After a program's own exit only children that it left behind are in the group. They would
    /// otherwise hold its pipes open, and outlive a call whose result was already given. As long as one
    /// is left, the group's number cannot be given to another process.
    pub fn ask_to_end(&mut self) {
        self.signal(Signal::TERM);
    }

    /// Kills what still runs of it, and forgets its number, which may be given to a stranger from here on.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        (self.number, self.leader) = (None, None);
    }

    fn signal(&mut self, signal: Signal) {
        if self.leader.is_some() {
            self.strays.look(self.leader);
        }
        if let Some(group) = self.number {
            // The one failure is that nobody is left to get it.
            let _ = kill_process_group(group, signal);
        }
        self.strays.signal(signal);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}
