//! The working directory, as a name.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

/// A working directory and the previous one.
///
/// ```
/// use harness_host::{RootCwd, WorkingFolder};
///
/// let cwd = RootCwd::default();
/// cwd.put(WorkingFolder { current: "/docs".into(), previous: None });
/// assert_eq!(&*cwd.folder().current, "/docs");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkingFolder {
    /// Current directory.
    pub current: Arc<str>,
    /// Directory before the last change; `None` if it never changed.
    pub previous: Option<Arc<str>>,
}

#[derive(Debug)]
struct Cell {
    folder: WorkingFolder,
    /// Whether it was changed here, and not only copied.
    changed: bool,
}

/// Working directory that all root executions of a host share. Clones share it.
///
/// A name that ports resolve. A root execution without a separate directory uses this one and sees every change
/// immediately. Children, parallel paths and restored executions use copies.
///
/// ```
/// use harness_host::RootCwd;
///
/// let cwd = RootCwd::default();
/// assert!(cwd.set("/docs") && !cwd.set("/docs"));
/// assert_eq!((&*cwd.get(), cwd.previous().as_deref()), ("/docs", Some("/")));
/// ```
#[derive(Clone)]
pub struct RootCwd(Arc<Mutex<Cell>>);

impl Default for RootCwd {
    /// `/`.
    fn default() -> Self {
        Self::new("/")
    }
}

impl fmt::Debug for RootCwd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RootCwd").field(&self.folder()).finish()
    }
}

impl RootCwd {
    /// A directory without a previous one.
    pub fn new(folder: impl Into<Arc<str>>) -> Self {
        Self::of(WorkingFolder { current: folder.into(), previous: None })
    }

    /// A directory with the previous one.
    pub fn of(folder: WorkingFolder) -> Self {
        Self(Arc::new(Mutex::new(Cell { folder, changed: false })))
    }

    /// Current directory.
    pub fn get(&self) -> Arc<str> {
        Arc::clone(&self.0.lock().folder.current)
    }

    /// Directory before the last change.
    pub fn previous(&self) -> Option<Arc<str>> {
        self.0.lock().folder.previous.clone()
    }

    /// Changes the directory. Returns whether it changed; setting the current one keeps the previous one.
    pub fn set(&self, folder: impl Into<Arc<str>>) -> bool {
        let (folder, mut cell) = (folder.into(), self.0.lock());
        let changed = cell.folder.current != folder;
        if changed {
            cell.folder.previous = Some(std::mem::replace(&mut cell.folder.current, folder));
            cell.changed = true;
        }
        changed
    }

    /// Current and previous directory.
    pub fn folder(&self) -> WorkingFolder {
        self.0.lock().folder.clone()
    }

    /// Independent copy.
    pub fn copy(&self) -> Self {
        Self::of(self.folder())
    }

    /// Adopts the directory of a copy, if the copy changed.
    pub fn take_over(&self, copy: &Self) {
        let taken = {
            let copy = copy.0.lock();
            copy.changed.then(|| copy.folder.clone())
        };
        if let Some(folder) = taken {
            *self.0.lock() = Cell { folder, changed: true };
        }
    }

    /// Sets both at once.
    pub fn put(&self, folder: WorkingFolder) {
        let mut cell = self.0.lock();
        cell.changed |= cell.folder != folder;
        cell.folder = folder;
    }
}
