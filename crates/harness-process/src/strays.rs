//! Processes that a program started and that have left its process group.
//!
//! Agents start the commands of their models in groups or sessions of their own, which the signals to the
//! agent's group do not reach. On Linux they are found by their parents, in `/proc`; elsewhere none are.

use rustix::process::{Pid, Signal, kill_process};

/// A process, told from a later one of the same number by when it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    pid: Pid,
    started: u64,
}

/// One line of the table of processes.
#[derive(Clone, Copy, Debug)]
struct Row {
    process: Process,
    parent: i32,
    group: i32,
}

/// Strays that were found so far.
#[derive(Debug, Default)]
pub(crate) struct Strays(Vec<Process>);

impl Strays {
    /// Finds those that descend from `leader`, which has not ended, and from those found before.
    pub(crate) fn look(&mut self, leader: Option<Pid>) {
        let rows = rows();
        let mut family: Vec<i32> = leader.iter().map(|pid| pid.as_raw_nonzero().get()).collect();
        family
            .extend(self.0.iter().filter(|known| rows.iter().any(|row| row.process == **known)).map(number));
        let mut before = 0;
        while family.len() > before {
            before = family.len();
            let children =
                rows.iter().filter(|row| family.contains(&row.parent)).map(|row| number(&row.process));
            let new: Vec<_> = children.filter(|pid| !family.contains(pid)).collect();
            family.extend(new);
        }
        let own = leader.map_or(0, |pid| pid.as_raw_nonzero().get());
        let strays = rows.iter().filter(|row| row.group != own && family.contains(&number(&row.process)));
        for row in strays {
            if !self.0.contains(&row.process) {
                self.0.push(row.process);
            }
        }
    }

    /// Signals those that still run.
    pub(crate) fn signal(&self, signal: Signal) {
        if self.0.is_empty() {
            return;
        }
        let rows = rows();
        for process in self.0.iter().filter(|known| rows.iter().any(|row| row.process == **known)) {
            // The one failure is that it has ended meanwhile.
            let _ = kill_process(process.pid, signal);
        }
    }
}

fn number(process: &Process) -> i32 {
    process.pid.as_raw_nonzero().get()
}

/// The table of processes; empty where there is none to read.
fn rows() -> Vec<Row> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let numbers = names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    numbers.filter_map(|name| row(&std::fs::read_to_string(format!("/proc/{name}/stat")).ok()?)).collect()
}

/// The row of a `stat` file: number, name in parentheses, state, parent, group, …, start as the 22nd field.
fn row(stat: &str) -> Option<Row> {
    let (pid, rest) = stat.split_once(" (")?;
    // A name may hold anything, parentheses too.
    let (_, rest) = rest.rsplit_once(") ")?;
    let mut fields = rest.split(' ').skip(1);
    let (parent, group) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    let started = fields.nth(16)?.parse().ok()?;
    let pid = Pid::from_raw(pid.parse().ok()?)?;
    Some(Row { process: Process { pid, started }, parent, group })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_whatever_the_program_is_called() {
        let stat = "42 (a) b) (c) S 7 40 40 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 1000 10 184467";
        let row = row(stat).unwrap();
        assert_eq!((number(&row.process), row.parent, row.group, row.process.started), (42, 7, 40, 12345));
        assert!(super::row("42 (a").is_none());
    }
}
