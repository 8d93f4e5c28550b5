//! Supervisors of processes that have ended.

use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::str::FromStr;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::process::Pid;
use tokio::time::{Instant, sleep};

use super::{ARGUMENT, OrphansLeft};
use crate::process::table::{Process, row_of};

/// How long is waited for all of them: more than a supervisor needs with any common grace.
const LIMIT: Duration = Duration::from_secs(30);

/// How long is waited between two looks.
const LOOK: Duration = Duration::from_millis(10);

/// The process that a supervisor works for, as its arguments name it: number and start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner(Process);

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.0.number(), self.0.started)
    }
}

impl FromStr for Owner {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (pid, started) = text.split_once(':').ok_or(())?;
        let pid = pid.parse().ok().and_then(Pid::from_raw).ok_or(())?;
        Ok(Self(Process { pid, started: started.parse().map_err(drop)? }))
    }
}

/// This process.
pub(super) fn own() -> io::Result<Owner> {
    static OWN: OnceLock<Owner> = OnceLock::new();
    if let Some(own) = OWN.get() {
        return Ok(*own);
    }
    let pid = rustix::process::getpid();
    let row = row_of(pid.as_raw_nonzero().get()).ok_or_else(|| io::Error::other("/proc cannot be read"))?;
    Ok(*OWN.get_or_init(|| Owner(row.process)))
}

/// Waits until there are none of this user.
pub(super) async fn wait() -> Result<(), OrphansLeft> {
    let start = Instant::now();
    loop {
        let supervisors = tokio::task::spawn_blocking(find).await.unwrap_or_default();
        if supervisors.is_empty() {
            return Ok(());
        }
        if start.elapsed() >= LIMIT {
            return Err(OrphansLeft { supervisors });
        }
        sleep(LOOK).await;
    }
}

/// The supervisors of this user in this namespace whose owner has ended.
fn find() -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|number| is_orphan(*number)).collect()
}

fn is_orphan(number: i32) -> bool {
    owner_of(number).is_some_and(|owner| !owner.0.works())
        && is_ours(number)
        // A supervisor that exits has nothing left.
        && row_of(number).is_some_and(|row| !row.exiting)
}

/// Owner of a supervisor; `None` for other processes.
fn owner_of(number: i32) -> Option<Owner> {
    let line = std::fs::read(format!("/proc/{number}/cmdline")).ok()?;
    let mut args = line.split(|byte| *byte == 0).skip(1);
    if args.next()? != ARGUMENT.as_bytes() {
        return None;
    }
    std::str::from_utf8(args.next()?).ok()?.parse().ok()
}

/// Whether a process belongs to this user and counts processes as this one does.
fn is_ours(number: i32) -> bool {
    let user = std::fs::metadata(format!("/proc/{number}")).map(|metadata| metadata.uid());
    let namespace = |of: &str| std::fs::read_link(format!("/proc/{of}/ns/pid")).ok();
    user.is_ok_and(|user| user == rustix::process::geteuid().as_raw())
        && namespace(&number.to_string()) == namespace("self")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_read_as_it_is_written() {
        let own = own().unwrap();
        assert_eq!(own.to_string().parse(), Ok(own));
        assert!(own.0.works());
        assert_eq!("12".parse::<Owner>(), Err(()));
    }

    #[test]
    fn a_process_that_is_no_supervisor_is_no_orphan() {
        let own = own().unwrap().0.number();
        assert_eq!(owner_of(own), None);
        assert!(is_ours(own) && !is_orphan(own));
    }
}
