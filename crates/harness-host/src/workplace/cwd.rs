//! The working folder, as a name.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A folder and the one before it.
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
    /// The folder.
    pub current: Arc<str>,
    /// The folder before the last change; `None` when it never changed.
    pub previous: Option<Arc<str>>,
}

#[derive(Debug)]
struct Cell {
    folder: WorkingFolder,
    /// Whether it was changed here, and not only copied.
    changed: bool,
}

/// The working folder that all root executions of a host share. Clones are the same folder.
///
/// It is a name that ports look up; nothing here looks into it. A root execution without a folder of its own works
/// in this one, and sees every change at once, its own and that of others. Children, parallel paths and restored
/// executions work in copies.
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
    /// A folder without one before it.
    pub fn new(folder: impl Into<Arc<str>>) -> Self {
        Self::of(WorkingFolder { current: folder.into(), previous: None })
    }

    /// A folder with the one before it.
    pub fn of(folder: WorkingFolder) -> Self {
        Self(Arc::new(Mutex::new(Cell { folder, changed: false })))
    }

    fn lock(&self) -> MutexGuard<'_, Cell> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The folder.
    pub fn get(&self) -> Arc<str> {
        Arc::clone(&self.lock().folder.current)
    }

    /// The folder before the last change.
    pub fn previous(&self) -> Option<Arc<str>> {
        self.lock().folder.previous.clone()
    }

    /// Changes the folder. To the one that it is, changes nothing, and keeps the one before. Whether it changed.
    pub fn set(&self, folder: impl Into<Arc<str>>) -> bool {
        let (folder, mut cell) = (folder.into(), self.lock());
        let changed = cell.folder.current != folder;
        if changed {
            cell.folder.previous = Some(std::mem::replace(&mut cell.folder.current, folder));
            cell.changed = true;
        }
        changed
    }

    /// The folder and the one before it.
    pub fn folder(&self) -> WorkingFolder {
        self.lock().folder.clone()
    }

    /// A folder of its own that begins with this one.
    pub fn copy(&self) -> Self {
        Self::of(self.folder())
    }

    /// Takes over what somebody made of a copy, if he changed it.
    pub fn take_over(&self, copy: &Self) {
        let taken = {
            let copy = copy.lock();
            copy.changed.then(|| copy.folder.clone())
        };
        if let Some(folder) = taken {
            *self.lock() = Cell { folder, changed: true };
        }
    }

    /// Sets both at once.
    pub fn put(&self, folder: WorkingFolder) {
        let mut cell = self.lock();
        cell.changed |= cell.folder != folder;
        cell.folder = folder;
    }
}
