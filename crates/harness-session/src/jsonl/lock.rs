//! Single ownership of sessions.
//!
//! An owner holds two locks of the operating system. One is on the file `NAME.lock` next to the
//! session: it exists before the first append creates the session file, and names the owner. The
//! other is on the session file itself: it covers every name of that file, including hard links,
//! and survives the deletion of the lock file. A file that replaces the session is locked before it
//! has its name.
//!
//! Both belong to an open file description that is closed when a program is started. The kernel
//! releases them when their owner ends, in any way; the content of the lock file only determines
//! how long a second owner waits. A process that is killed while it starts a program may leave a
//! copy that holds the locks until that program runs, so a lock of a dead process is awaited
//! briefly.

use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use harness_core::Time;
use serde::{Deserialize, Serialize};

/// How often a lock file may vanish between being opened and being locked.
const ATTEMPTS: usize = 100;

/// The pauses, in milliseconds, between attempts to take a lock whose owner has ended or is unknown.
const PAUSES: [u64; 9] = [1, 2, 5, 10, 20, 50, 100, 300, 500];

/// The longest lock file that is read.
const LONGEST: u64 = 1024;

/// Owner of a session: a process on a host, and its start of ownership.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Owner {
    /// Process id.
    pub pid: u32,
    /// The name of the host that it runs on.
    pub host: String,
    /// When it became the owner, by the clock of the file system.
    #[serde(skip)]
    pub since: Option<Time>,
}

impl Owner {
    /// The process that runs this.
    pub(crate) fn this() -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self { pid: std::process::id(), host, since: None }
    }

    /// Whether it is known to have ended: a process of this host that is gone, or waits to be reaped.
    fn has_ended(&self) -> bool {
        let this = Self::this();
        self.host == this.host && self.pid != this.pid && process_has_ended(self.pid)
    }
}

fn process_has_ended(pid: u32) -> bool {
    let Some(process) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) else { return true };
    if rustix::process::test_kill_process(process) == Err(rustix::io::Errno::SRCH) {
        return true;
    }
    // The name in parentheses may hold anything; the state follows the last of them.
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').map(|(_, state)| state.trim_start());
    state.is_some_and(|state| state.starts_with(['Z', 'X']))
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} of host `{}`", self.pid, self.host.escape_debug())?;
        self.since.map_or(Ok(()), |since| write!(f, " since {}", since.iso()))
    }
}

/// The lock file of a session. Dropping it removes the file and frees the lock.
#[derive(Debug)]
pub(crate) struct Lock {
    path: PathBuf,
    held: File,
    /// An earlier owner that ended without giving its lock back.
    pub(crate) left_by: Option<Owner>,
}

/// Reason why a lock was not taken.
#[derive(Debug)]
pub(crate) enum Refused {
    /// Held by another owner, named if the file is readable.
    Held(Option<Owner>),
    Io(io::Error),
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Lock {
    pub(crate) fn take(path: PathBuf) -> Result<Self, Refused> {
        Self::take_with(path, &mut thread::sleep)
    }

    fn take_with(path: PathBuf, pause: &mut dyn FnMut(Duration)) -> Result<Self, Refused> {
        let mut pauses = PAUSES.into_iter();
        for _ in 0..ATTEMPTS {
            let mut file = open(&path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let owner = owner(&mut file);
                    let lives = owner.as_ref().is_some_and(|owner| !owner.has_ended());
                    let Some(time) = pauses.next().filter(|_| !lives) else {
                        return Err(Refused::Held(owner));
                    };
                    pause(Duration::from_millis(time));
                    continue;
                }
                Err(TryLockError::Error(error)) => return Err(Refused::Io(error)),
            }
            // The owner before us may have removed the file that we opened: then the lock is on nothing.
            if is_at(&file, &path)? {
                let left_by = owner(&mut file);
                if let Some(owner) = &left_by {
                    tracing::info!(path = %path.display(), %owner, "the lock of an owner that has ended is taken over");
                }
                note_owner(&mut file)?;
                return Ok(Self { path, held: file, left_by });
            }
        }
        Err(Refused::Held(None))
    }

    /// Whether its file is where it was: otherwise others may take a lock, too.
    pub(crate) fn holds(&self) -> io::Result<bool> {
        is_at(&self.held, &self.path)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Still held: nobody else can have locked this file. Left behind, it would do no harm.
        let removed = match self.holds() {
            Ok(true) => fs::remove_file(&self.path),
            Ok(false) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = removed {
            tracing::debug!(path = %self.path.display(), %error, "lock file stays");
        }
        release(&self.held);
    }
}

/// Locks the session file itself, until its last handle is closed. One that an owner who `ended` has left is
/// waited for: who has the lock is in a lock file of another name, if at all.
pub(crate) fn hold(file: &File, ended: bool) -> Result<(), Refused> {
    hold_with(file, ended, &mut thread::sleep)
}

fn hold_with(file: &File, ended: bool, pause: &mut dyn FnMut(Duration)) -> Result<(), Refused> {
    let mut pauses = PAUSES.into_iter();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => match pauses.next().filter(|_| ended) {
                Some(time) => pause(Duration::from_millis(time)),
                None => return Err(Refused::Held(None)),
            },
            Err(TryLockError::Error(error)) => return Err(Refused::Io(error)),
        }
    }
}

/// Frees a lock. Closing the file would leave it to a copy of this process that is about to run a program.
pub(crate) fn release(file: &File) {
    if let Err(error) = file.unlock() {
        tracing::debug!(%error, "a lock stays until its file is closed");
    }
}

/// Locks a new file before it has its name.
pub(crate) fn hold_new(file: &File) -> io::Result<()> {
    file.try_lock().map_err(io::Error::from)
}

fn open(path: &Path) -> io::Result<File> {
    fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Whether the file at `path` is this one.
pub(crate) fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let held = file.metadata()?;
    match fs::metadata(path) {
        Ok(there) => Ok((held.dev(), held.ino()) == (there.dev(), there.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn note_owner(file: &mut File) -> io::Result<()> {
    let text = serde_json::to_string(&Owner::this())?;
    file.rewind()?;
    file.set_len(0)?;
    file.write_all(format!("{text}\n").as_bytes())
}

/// Owner in the file; `None` if it has not been written yet.
fn owner(file: &mut File) -> Option<Owner> {
    let mut text = String::new();
    Read::by_ref(file).take(LONGEST).read_to_string(&mut text).ok()?;
    let owner: Owner = serde_json::from_str(&text).ok()?;
    let written = file.metadata().and_then(|metadata| metadata.modified()).ok();
    let since = written.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let since = since.and_then(|since| i64::try_from(since.as_millis()).ok()).map(Time);
    Some(Owner { since, ..owner })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process of this host that has ended.
    #[expect(clippy::disallowed_methods, reason = "this test needs a process of its own that has ended")]
    fn ended() -> Owner {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let owner = Owner { pid: child.id(), ..Owner::this() };
        child.wait().unwrap();
        owner
    }

    /// A lock file that names `owner`, locked as by a copy of that process.
    fn locked_by(path: &Path, owner: &Owner) -> File {
        let mut file = open(path).unwrap();
        file.try_lock().unwrap();
        writeln!(file, "{}", serde_json::to_string(owner).unwrap()).unwrap();
        file
    }

    #[test]
    fn fault_30_the_lock_of_a_process_that_has_ended_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.lock");
        let owner = ended();
        let copy = locked_by(&path, &owner);
        let mut waited = 0;
        let lock = Lock::take_with(path, &mut |_| {
            waited += 1;
            // Closing it would leave the lock to a program that another test is about to start.
            if waited == 3 {
                release(&copy);
            }
        });
        assert_eq!(lock.unwrap().left_by.as_ref().map(|left| left.pid), Some(owner.pid));
        assert_eq!(waited, 3);
    }

    #[test]
    fn fault_30_waiting_for_a_lock_is_bounded_and_no_wait_for_a_living_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.lock");
        let (owner, mut waited) = (ended(), Duration::ZERO);
        let _copy = locked_by(&path, &owner);
        let refused = Lock::take_with(path.clone(), &mut |time| waited += time).unwrap_err();
        assert!(matches!(refused, Refused::Held(Some(held)) if held.pid == owner.pid));
        assert!(waited > Duration::ZERO && waited < Duration::from_secs(2), "{waited:?}");

        let other = folder.path().join("other.lock");
        let _lock = Lock::take(other.clone()).unwrap();
        let refused = Lock::take_with(other, &mut |_| panic!("the owner lives")).unwrap_err();
        assert!(matches!(refused, Refused::Held(Some(_))));
    }

    #[test]
    fn fault_30_the_session_of_a_process_that_has_ended_is_waited_for() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let copy = file.reopen().unwrap();
        copy.try_lock().unwrap();
        let refused = hold_with(file.as_file(), false, &mut |_| panic!("nobody has ended"));
        assert!(matches!(refused, Err(Refused::Held(None))));
        let mut waited = Duration::ZERO;
        let refused = hold_with(file.as_file(), true, &mut |time| waited += time);
        assert!(matches!(refused, Err(Refused::Held(None))));
        assert!(waited > Duration::ZERO && waited < Duration::from_secs(2), "{waited:?}");
        hold_with(file.as_file(), true, &mut |_| release(&copy)).unwrap();
    }

    #[test]
    fn fault_30_a_process_that_waits_to_be_reaped_has_ended() {
        let mut child = zombie();
        assert!(process_has_ended(child.id()));
        assert!(!process_has_ended(std::process::id()));
        child.wait().unwrap();
        assert!(process_has_ended(child.id()));
    }

    #[expect(clippy::disallowed_methods, reason = "this test needs a process of its own")]
    fn zombie() -> std::process::Child {
        use std::process::{Command, Stdio};
        let mut child = Command::new("true").stdout(Stdio::piped()).spawn().unwrap();
        // The pipe ends when the process has closed its files, shortly before it can be reaped.
        let mut output = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut output).unwrap();
        while !process_has_ended(child.id()) {
            thread::yield_now();
        }
        child
    }
}
