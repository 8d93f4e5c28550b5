//! One owner at a time.
//!
//! The lock is the operating system's, on a file of its own beside the session (`NAME.lock`). On the session
//! itself it would be lost whenever [`super::JsonlSession::replace`] puts a new file in its place, and it
//! could not be taken before the first append has made the file. The kernel frees it when its owner ends,
//! however it ends; the process id in the file is there for messages only and decides nothing.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// How often a lock file may vanish between being opened and being locked.
const ATTEMPTS: usize = 100;

/// The ownership of a session. Dropping it removes the lock file and frees the lock.
#[derive(Debug)]
pub(crate) struct Lock {
    path: PathBuf,
    _held: File,
}

/// Why a lock was not taken.
#[derive(Debug)]
pub(crate) enum Refused {
    /// Somebody has it, with their process id when the file tells it.
    Held(Option<u32>),
    Io(io::Error),
}

impl Lock {
    pub(crate) fn take(path: PathBuf) -> Result<Self, Refused> {
        for _ in 0..ATTEMPTS {
            let mut file = open(&path).map_err(Refused::Io)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(Refused::Held(owner(&mut file))),
                Err(TryLockError::Error(error)) => return Err(Refused::Io(error)),
            }
            // The owner before us may have removed the file that we opened: then the lock is on nothing.
            if is_at(&file, &path).map_err(Refused::Io)? {
                note_owner(&mut file).map_err(Refused::Io)?;
                return Ok(Self { path, _held: file });
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
    file.set_len(0)?;
    file.write_all(format!("{}\n", std::process::id()).as_bytes())
}

fn owner(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
