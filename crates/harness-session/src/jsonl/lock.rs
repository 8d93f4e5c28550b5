//! One owner at a time.
//!
//! The lock is the operating system's, on a file of its own beside the session (`NAME.lock`). On the session
//! itself it would be lost whenever [`super::JsonlSession::replace`] puts a new file in its place, and it
//! could not be taken before the first append has made the file. The kernel frees it when its owner ends,
//! however it ends; what the file says of its owner is there for messages only and decides nothing.

use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use harness_core::Time;
use serde::{Deserialize, Serialize};

/// How often a lock file may vanish between being opened and being locked.
const ATTEMPTS: usize = 100;

/// The longest lock file that is read.
const LONGEST: u64 = 1024;

/// Who owns a session: a process of a host, and since when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Owner {
    /// The process.
    pub pid: u32,
    /// The name of the host that it runs on.
    pub host: String,
    /// When it became the owner, by the clock of the file system.
    #[serde(skip)]
    pub since: Option<Time>,
}

impl Owner {
    /// The process that runs this.
    fn this() -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self { pid: std::process::id(), host, since: None }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} of host `{}`", self.pid, self.host.escape_debug())?;
        self.since.map_or(Ok(()), |since| write!(f, " since {}", since.iso()))
    }
}

/// The ownership of a session. Dropping it removes the lock file and frees the lock.
#[derive(Debug)]
pub(crate) struct Lock {
    path: PathBuf,
    _held: File,
    /// An earlier owner that ended without giving its lock back.
    pub(crate) left_by: Option<Owner>,
}

/// Why a lock was not taken.
#[derive(Debug)]
pub(crate) enum Refused {
    /// Somebody has it, and who, when the file tells it.
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
        for _ in 0..ATTEMPTS {
            let mut file = open(&path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(Refused::Held(owner(&mut file))),
                Err(TryLockError::Error(error)) => return Err(Refused::Io(error)),
            }
            // The owner before us may have removed the file that we opened: then the lock is on nothing.
            if is_at(&file, &path)? {
                let left_by = owner(&mut file);
                if let Some(owner) = &left_by {
                    tracing::info!(path = %path.display(), %owner, "the lock of an owner that has ended is taken over");
                }
                note_owner(&mut file)?;
                return Ok(Self { path, _held: file, left_by });
            }
        }
        Err(Refused::Held(None))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Still held: nobody else can have locked this file. Left behind, it would do no harm.
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::debug!(path = %self.path.display(), %error, "lock file stays");
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

fn is_at(file: &File, path: &Path) -> io::Result<bool> {
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

/// What the file says of its owner; nothing while that one has not written it yet.
fn owner(file: &mut File) -> Option<Owner> {
    let mut text = String::new();
    Read::by_ref(file).take(LONGEST).read_to_string(&mut text).ok()?;
    let owner: Owner = serde_json::from_str(&text).ok()?;
    let written = file.metadata().and_then(|metadata| metadata.modified()).ok();
    let since = written.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let since = since.and_then(|since| i64::try_from(since.as_millis()).ok()).map(Time);
    Some(Owner { since, ..owner })
}
