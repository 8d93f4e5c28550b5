//! A directory as a workspace.

mod ignored;
mod jail;
mod protected;
mod save;
mod walk;

use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use harness_core::Time;
use harness_host::{
    EntryKind, Precondition, Workspace, WorkspaceEntry, WorkspaceFault, WorkspaceFaultCode as Code,
    WorkspaceFile, WorkspaceHit,
};
use rustix::fs::Stat;

use self::jail::{Jail, Names};
use self::protected::Protection;
use crate::error::ToolsError;

pub use self::protected::ProtectedFiles;

/// A workspace in one directory of this machine.
///
/// - Paths are relative to the directory, even with a leading slash; `..` is rejected.
/// - Symbolic links are never followed, even if one appears during a call.
/// - Only regular files are read and written: no devices, pipes or sockets.
/// - Files larger than [`FolderWorkspace::max_file`] are rejected. A search stops after
///   [`FolderWorkspace::MAX_SEARCHED`] files, and every operation after [`FolderWorkspace::time_limit`].
/// - It is read-only unless [`FolderWorkspace::writable`] is called. A file is replaced atomically, keeps its
///   permissions, and is on disk when the call returns.
/// - At any depth and in any case, these are never written: version control (`.git`), `.harness`, start-up
///   files of shells and sessions (`.bashrc`, `.profile`, `.envrc`, …), keys (`.ssh`, `.netrc`), unless
///   [`FolderWorkspace::unprotected`] names them, and the files of [`FolderWorkspace::protecting`]. A write to
///   `.git/config`, for example, decides what `git status` runs.
/// - Names are exact, including blanks. A path has at most [`FolderWorkspace::MAX_DEPTH`] names.
///
/// A file with a hard link inside the directory counts as inside.
///
/// Operations run on tokio's blocking threads and require a runtime.
#[derive(Clone, Debug)]
pub struct FolderWorkspace {
    inner: Arc<Inner>,
    time: Duration,
}

#[derive(Clone, Debug)]
struct Inner {
    jail: Arc<Jail>,
    folder: PathBuf,
    max_file: u64,
    writable: bool,
    skipped: Vec<String>,
    skips_ignored: bool,
    protection: Protection,
}

impl FolderWorkspace {
    /// How many names a path has at most: 64.
    pub const MAX_DEPTH: usize = jail::MAX_DEPTH;

    /// How many files a search looks into: 100,000.
    pub const MAX_SEARCHED: usize = walk::MAX_SEARCHED;

    /// Opens a directory as a workspace. It stays the same directory even if it is renamed or replaced.
    ///
    /// # Errors
    /// [`ToolsError::Folder`] if it cannot be opened.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, ToolsError> {
        let folder = folder.as_ref();
        let jail = Jail::open(folder)
            .map_err(|e| ToolsError::Folder { folder: folder.to_owned(), source: e.into() })?;
        let inner = Inner {
            jail: Arc::new(jail),
            folder: folder.to_owned(),
            max_file: 8 * 1024 * 1024,
            writable: false,
            skipped: vec![".git".to_owned()],
            skips_ignored: false,
            protection: Protection::default(),
        };
        Ok(Self { inner: Arc::new(inner), time: Duration::from_secs(10) })
    }

    /// Where it is, as it was opened.
    pub fn folder(&self) -> &Path {
        &self.inner.folder
    }

    fn with(mut self, change: impl FnOnce(&mut Inner)) -> Self {
        change(Arc::make_mut(&mut self.inner));
        self
    }

    /// Allows writing.
    #[must_use]
    pub fn writable(self) -> Self {
        self.with(|inner| inner.writable = true)
    }

    /// How many bytes a file may have, read or written. Default 8 MiB.
    #[must_use]
    pub fn max_file(self, bytes: u64) -> Self {
        self.with(|inner| inner.max_file = bytes)
    }

    /// Sets the names of directories that a search skips. Default `.git`.
    #[must_use]
    pub fn skipping(self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let names = names.into_iter().map(Into::into).collect();
        self.with(|inner| inner.skipped = names)
    }

    /// Makes a search skip what `.gitignore` files in the directory exclude. Such files can still be listed and read.
    /// Only the first 4,000 lines of a file of at most 256 KiB count; exclusions of git elsewhere do not.
    #[must_use]
    pub fn skipping_ignored(self) -> Self {
        self.with(|inner| inner.skips_ignored = true)
    }

    /// Protects files of the host from writing.
    #[must_use]
    pub fn protecting(self, files: ProtectedFiles) -> Self {
        self.with(|inner| inner.protection.files.push(files))
    }

    /// Allows writing to protected names such as `.envrc` or `.git`. Content written there may be executed
    /// when a user or a tool starts a program.
    #[must_use]
    pub fn unprotected(self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.with(|inner| inner.protection.permitted.extend(names.into_iter().map(Into::into)))
    }

    /// How long one operation may take. Default 10 s.
    #[must_use]
    pub fn time_limit(mut self, span: Duration) -> Self {
        self.time = span;
        self
    }

    /// Runs blocking work, which is stopped at its time limit and when its caller is dropped.
    async fn work<T: Send + 'static>(
        &self,
        what: &str,
        work: impl FnOnce(&Inner, &Stop) -> Result<T, WorkspaceFault> + Send + 'static,
    ) -> Result<T, WorkspaceFault> {
        let stop = Stop::default();
        let _told = StopOnDrop(stop.clone());
        let (inner, inside) = (Arc::clone(&self.inner), stop.clone());
        let mut task = tokio::task::spawn_blocking(move || work(&inner, &inside));
        let done = match tokio::time::timeout(self.time, &mut task).await {
            Ok(done) => done,
            Err(_) if stop.stop() => {
                let limit = harness_core::Millis::from(self.time);
                let problem = format!("it took longer than {limit} to {what}, and was stopped");
                return Err(WorkspaceFault::new(Code::Timeout, problem));
            }
            // It is past the point where it could be stopped, and about to answer.
            Err(_) => task.await,
        };
        done.unwrap_or_else(|fault| Err(jail::unavailable(what, fault)))
    }
}

/// State of blocking work: running, stopped, or past the point where it can be stopped.
#[derive(Clone, Debug, Default)]
struct Stop(Arc<AtomicU8>);

const GOES_ON: u8 = 0;
const STOPPED: u8 = 1;
const COMMITTED: u8 = 2;

impl Stop {
    /// Stops the work, if that is still possible.
    fn stop(&self) -> bool {
        self.0.compare_exchange(GOES_ON, STOPPED, Ordering::AcqRel, Ordering::Acquire) != Err(COMMITTED)
    }

    /// # Errors
    /// If the work was stopped; the error is discarded.
    fn check(&self) -> Result<(), WorkspaceFault> {
        if self.0.load(Ordering::Acquire) == STOPPED { Err(was_stopped()) } else { Ok(()) }
    }

    /// Goes past the point where it can be stopped.
    ///
    /// # Errors
    /// As [`Stop::check`].
    fn commit(&self) -> Result<(), WorkspaceFault> {
        let done = self.0.compare_exchange(GOES_ON, COMMITTED, Ordering::AcqRel, Ordering::Acquire);
        done.map(|_| ()).map_err(|_| was_stopped())
    }
}

fn was_stopped() -> WorkspaceFault {
    WorkspaceFault::new(Code::Timeout, "it was stopped")
}

/// Stops the work when its caller is dropped.
struct StopOnDrop(Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl Workspace for FolderWorkspace {
    async fn list(&self, path: &str, depth: u32, limit: u32) -> Result<Vec<WorkspaceEntry>, WorkspaceFault> {
        let path = path.to_owned();
        self.work("list the directory", move |inner, stop| {
            let names = Names::of(&path)?;
            let Some(folder) = inner.jail.folder(&names, names.all())? else { return Ok(Vec::new()) };
            walk::list(folder.as_fd(), &names, depth, limit as usize, stop)
        })
        .await
    }

    async fn read(&self, path: &str) -> Result<Option<WorkspaceFile>, WorkspaceFault> {
        let path = path.to_owned();
        self.work("read the file", move |inner, _| {
            let names = Names::of(&path)?;
            let Some((name, folders)) = names.split_last() else {
                return Err(WorkspaceFault::new(Code::WrongKind, "`/` is a directory; name a file in it"));
            };
            let Some(folder) = inner.jail.folder(&names, folders)? else { return Ok(None) };
            let Some((bytes, stat)) = jail::bytes(folder.as_fd(), name, &names, inner.max_file)? else {
                return Ok(None);
            };
            let content = String::from_utf8(bytes).map_err(|e| not_text(&path, e.utf8_error()))?;
            let mut file = WorkspaceFile::text(names.normal(), content);
            file.entry.updated_at = changed(&stat);
            Ok(Some(file))
        })
        .await
    }

    async fn search(
        &self,
        query: &str,
        provider: Option<&str>,
        limit: u32,
    ) -> Result<Vec<WorkspaceHit>, WorkspaceFault> {
        if provider.is_some() {
            // All files are of one system, which has no name.
            return Ok(Vec::new());
        }
        let query = query.to_lowercase();
        self.work("search", move |inner, stop| {
            let names = Names::of("/")?;
            let Some(folder) = inner.jail.folder(&names, &[])? else { return Ok(Vec::new()) };
            walk::search(inner, folder.as_fd(), &query, limit as usize, stop)
        })
        .await
    }

    async fn write(
        &self,
        path: &str,
        content: &str,
        precondition: &Precondition,
    ) -> Result<(), WorkspaceFault> {
        let (path, content, precondition) = (path.to_owned(), content.to_owned(), precondition.clone());
        self.work("write the file", move |inner, stop| {
            save::save(inner, &path, &content, &precondition, stop)
        })
        .await
    }
}

fn not_text(path: &str, error: std::str::Utf8Error) -> WorkspaceFault {
    let at = error.valid_up_to();
    WorkspaceFault::new(Code::NotText, format!("`{path}` is not UTF-8: invalid byte at offset {at}"))
}

/// When it was last changed.
fn changed(stat: &Stat) -> Option<String> {
    let seconds = stat.st_mtime;
    Some(Time(seconds.checked_mul(1_000)?).iso())
}

/// An entry with what the operating system says of it.
fn entry_of(path: String, kind: EntryKind, stat: &Stat) -> WorkspaceEntry {
    let mut entry = WorkspaceEntry::new(path, kind);
    if kind == EntryKind::File {
        entry.size = u64::try_from(stat.st_size).ok();
        entry.updated_at = changed(stat);
    }
    entry
}
