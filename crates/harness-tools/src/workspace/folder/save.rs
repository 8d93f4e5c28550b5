//! Replacing a file wholly or not at all.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use harness_host::{Precondition, WorkspaceFault, WorkspaceFaultCode as Code};
use rustix::fs::{AtFlags, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::jail::{self, Names};
use super::{Inner, Stop};

/// Numbers the temporary files of this process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// How many names for a temporary file are tried.
const TRIES: usize = 100;

/// Writes a file. The new content is made beside it, brought to the disk and then given its name.
pub(super) fn save(
    inner: &Inner,
    path: &str,
    content: &str,
    precondition: &Precondition,
    stop: &Stop,
) -> Result<(), WorkspaceFault> {
    let names = Names::of(path)?;
    if !inner.writable {
        let problem = format!("`{path}` cannot be written: this workspace can only be read");
        return Err(WorkspaceFault::new(Code::ReadOnly, problem));
    }
    if content.len() as u64 > inner.max_file {
        let (bytes, most) = (content.len(), inner.max_file);
        let problem = format!("`{path}` would have {bytes} bytes; at most {most} are written");
        return Err(WorkspaceFault::new(Code::TooLarge, problem));
    }
    let Some((name, folders)) = names.split_last() else {
        return Err(WorkspaceFault::new(Code::WrongKind, "`/` is a directory; name a file in it"));
    };
    inner.protection.check_names(&names)?;
    let folder = match precondition {
        Precondition::Content(_) => inner.jail.folder(&names, folders)?,
        Precondition::Any | Precondition::Absent => Some(inner.jail.folder_made(&names, folders)?),
    };
    let Some(folder) = folder else { return precondition.check(None, path) };
    let old = check(folder.as_fd(), name, &names, precondition)?;
    inner.protection.check_file(&inner.folder, &names, old.as_ref())?;
    let made = Made::beside(folder.as_fd(), &names, old.as_ref())?;
    made.fill(content, &names)?;
    // Somebody may have written it meanwhile. What happens between this look and the renaming cannot be
    // seen by any program that asks no lock of others.
    check(folder.as_fd(), name, &names, precondition)?;
    stop.commit()?;
    made.become_file(name, &names)
}

/// Looks whether the file is as the precondition wants it; gives what it is now.
fn check(
    folder: BorrowedFd<'_>,
    name: &str,
    names: &Names<'_>,
    precondition: &Precondition,
) -> Result<Option<Stat>, WorkspaceFault> {
    let path = names.normal();
    let Precondition::Content(wanted) = precondition else {
        let old = jail::regular(folder, name, names)?;
        precondition.check(old.as_ref().map(|_| [].as_slice()), &path)?;
        return Ok(old);
    };
    // One byte more than wanted is enough to see that it is another content.
    let old = match jail::bytes(folder, name, names, wanted.len() as u64) {
        Err(fault) if fault.code == Code::TooLarge => return Err(WorkspaceFault::changed(&path)),
        read => read?,
    };
    precondition.check(old.as_ref().map(|(bytes, _)| bytes.as_slice()), &path)?;
    Ok(old.map(|(_, stat)| stat))
}

/// A temporary file; removed again unless it became the file.
struct Made<'f> {
    folder: BorrowedFd<'f>,
    name: String,
    file: File,
    kept: bool,
}

impl<'f> Made<'f> {
    /// Creates an empty file in the same directory, with the permissions of the old or of a new file.
    fn beside(folder: BorrowedFd<'f>, names: &Names<'_>, old: Option<&Stat>) -> Result<Self, WorkspaceFault> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fresh = if old.is_some() { Mode::from_raw_mode(0o600) } else { Mode::from_raw_mode(0o666) };
        for _ in 0..TRIES {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!(".harness-{}-{number}.tmp", std::process::id());
            match rustix::fs::openat(folder, &*name, flags, fresh) {
                Ok(file) => {
                    let file = File::from(file);
                    let new = Self { folder, name, file, kept: false };
                    if let Some(old) = old {
                        let mode = Mode::from_raw_mode(old.st_mode & 0o7777);
                        rustix::fs::fchmod(&new.file, mode).map_err(|e| names.refused("write", e))?;
                    }
                    return Ok(new);
                }
                Err(Errno::EXIST) => {}
                Err(error) => return Err(names.refused("write", error)),
            }
        }
        Err(names.refused("write", Errno::EXIST))
    }

    fn fill(&self, content: &str, names: &Names<'_>) -> Result<(), WorkspaceFault> {
        let written = (&self.file).write_all(content.as_bytes()).and_then(|()| self.file.sync_all());
        written.map_err(|e| jail::unavailable(&format!("write `{}`", names.normal()), e))
    }

    fn become_file(mut self, name: &str, names: &Names<'_>) -> Result<(), WorkspaceFault> {
        rustix::fs::renameat(self.folder, &*self.name, self.folder, name)
            .map_err(|e| names.refused("write", e))?;
        self.kept = true;
        // The file is whole either way; some file systems cannot sync a folder.
        let _ = rustix::fs::fsync(self.folder);
        Ok(())
    }
}

impl Drop for Made<'_> {
    fn drop(&mut self) {
        if !self.kept {
            // What is left over is a small file with a telling name.
            let _ = rustix::fs::unlinkat(self.folder, &*self.name, AtFlags::empty());
        }
    }
}
