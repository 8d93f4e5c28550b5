//! All that a program started, as far as it can be found from outside.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::process::table::{Process, descendants, rows, signal_all};

/// How long is waited, after everything was killed, for the kernel to hand over the rest.
pub const REAP: Duration = Duration::from_millis(500);

/// A process group and, where the system lists processes, the descendants that left it.
///
/// Agents start the commands of their models in separate groups or sessions, which signals to the agent's group do not
/// reach. They are found by their parents, while those live.
#[derive(Debug, Default)]
pub(crate) struct Group {
    /// The group's number.
    number: Option<Pid>,
    /// The process whose descendants are looked for, while its number is its own for sure.
    root: Option<Pid>,
    /// Descendants outside the group that were found so far.
    strays: Vec<Process>,
}

impl Group {
    /// The group of that number, and the descendants of `root`.
    pub(crate) fn new(number: Option<Pid>, root: Option<Pid>) -> Self {
        Self { number, root, strays: Vec::new() }
    }

    /// The group's number, until it is killed.
    pub(crate) fn number(&self) -> Option<Pid> {
        self.number
    }

    /// The root was waited for, and its number may be given to a stranger.
    pub(crate) fn root_ended(&mut self) {
        self.root = None;
    }

    /// Signals what still runs of it.
    ///
    /// After a program's own exit only children that it left behind are in the group. As long as one is
    /// left, the group's number cannot be given to another process.
    pub(crate) fn signal(&mut self, signal: Signal) {
        if self.root.is_some() {
            self.look();
        }
        if let Some(group) = self.number {
            // The one failure is that nobody is left to get it.
            let _ = kill_process_group(group, signal);
        }
        if !self.strays.is_empty() {
            let rows = rows();
            let left: Vec<_> = rows.into_iter().filter(|row| self.strays.contains(&row.process)).collect();
            signal_all(&left, None, signal);
        }
    }

    /// Kills what still runs of it, and forgets its number, which may be given to a stranger from here on.
    pub(crate) fn kill(&mut self) {
        self.signal(Signal::KILL);
        (self.number, self.root) = (None, None);
    }

    /// Finds those that descend from the root, which has not ended, and from those found before.
    fn look(&mut self) {
        let rows = rows();
        let known = self.strays.iter().filter(|known| rows.iter().any(|row| row.process == **known));
        let mut ancestors: Vec<_> = known.map(Process::number).collect();
        ancestors.extend(self.root.map(|pid| pid.as_raw_nonzero().get()));
        let own = self.number.map_or(0, |pid| pid.as_raw_nonzero().get());
        for row in descendants(&rows, &ancestors) {
            if row.group != own && !self.strays.contains(&row.process) {
                self.strays.push(row.process);
            }
        }
    }
}
