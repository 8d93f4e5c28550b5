//! The table of processes, read from `/proc`; empty where there is none.

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// Bit of the flags of a process: it is exiting.
const EXITING: u64 = 0x4;

/// A process, identified by its number and start time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: Pid,
    pub(crate) started: u64,
}

impl Process {
    pub(crate) fn number(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Whether it works: it exists and has not started to exit.
    #[cfg(target_os = "linux")]
    pub(crate) fn works(&self) -> bool {
        row_of(self.number()).is_some_and(|row| row.process == *self && !row.exiting)
    }
}

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) process: Process,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    /// Whether it has ended, or is exiting.
    pub(crate) exiting: bool,
}

/// All processes.
pub(crate) fn rows() -> Vec<Row> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.filter_map(|name| row_of(name.parse().ok()?)).collect()
}

/// The row of one process.
pub(crate) fn row_of(number: i32) -> Option<Row> {
    row(&std::fs::read_to_string(format!("/proc/{number}/stat")).ok()?)
}

/// The processes among `rows` that descend from one of `ancestors`, which are not among them.
pub(crate) fn descendants(rows: &[Row], ancestors: &[i32]) -> Vec<Row> {
    let mut family = ancestors.to_vec();
    let mut found = Vec::new();
    let mut before = usize::MAX;
    while family.len() != before {
        before = family.len();
        for row in rows {
            let number = row.process.number();
            if family.contains(&row.parent) && !family.contains(&number) {
                family.push(number);
                found.push(*row);
            }
        }
    }
    found
}

/// Signals these processes and, when one of them is in it, the whole group of that number at once.
pub(crate) fn signal_all(rows: &[Row], group: Option<Pid>, signal: Signal) {
    let group = group.filter(|group| rows.iter().any(|row| row.group == group.as_raw_nonzero().get()));
    // The one failure is that there is nobody left to receive it.
    if let Some(group) = group {
        let _ = kill_process_group(group, signal);
    }
    let grouped = |row: &&Row| group.is_some_and(|group| row.group == group.as_raw_nonzero().get());
    for row in rows.iter().filter(|row| !grouped(row)) {
        let _ = kill_process(row.process.pid, signal);
    }
}

/// The row of a `stat` file: number, name in parentheses, state, parent, group, …, flags as the 9th field, …,
/// start as the 22nd.
fn row(stat: &str) -> Option<Row> {
    let (pid, rest) = stat.split_once(" (")?;
    // A name may hold anything, parentheses too.
    let (_, rest) = rest.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let ended = matches!(fields.next()?, "Z" | "X" | "x");
    let (parent, group) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    let flags: u64 = fields.nth(3)?.parse().ok()?;
    let started = fields.nth(12)?.parse().ok()?;
    let pid = Pid::from_raw(pid.parse().ok()?)?;
    Some(Row { process: Process { pid, started }, parent, group, exiting: ended || flags & EXITING != 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_whatever_the_program_is_called() {
        let stat = "42 (a) b) (c) S 7 40 41 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 1000 10 184467";
        let row = row(stat).unwrap();
        assert_eq!((row.process.number(), row.parent, row.group, row.process.started), (42, 7, 40, 12345));
        assert!(!row.exiting);
        assert!(super::row(&stat.replace("4194560", "4194564")).unwrap().exiting);
        assert!(super::row(&stat.replace(" S ", " Z ")).unwrap().exiting);
        assert!(super::row("42 (a").is_none());
    }

    #[test]
    fn descendants_are_found_in_any_order() {
        let row = |number, parent| {
            let process = Process { pid: Pid::from_raw(number).unwrap(), started: 1 };
            Row { process, parent, group: number, exiting: false }
        };
        let rows = [row(5, 9), row(9, 3), row(3, 1), row(4, 1), row(6, 5)];
        let found = descendants(&rows, &[3]).iter().map(|row| row.process.number()).collect::<Vec<_>>();
        assert_eq!(found, [9, 5, 6]);
        assert!(descendants(&rows, &[77]).is_empty());
    }
}
