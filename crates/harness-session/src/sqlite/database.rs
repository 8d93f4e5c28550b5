//! A database of sessions, and its one connection in this process.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::schema::{self, Unusable};
use crate::disk::create_folder;
use crate::error::{Action, Disturbance, Error, Store};

/// How long a write waits for another process that is writing.
const BUSY: Duration = Duration::from_secs(10);

/// The databases that this process has open: all their sessions share one connection.
static OPEN: Mutex<BTreeMap<PathBuf, Weak<Inner>>> = Mutex::new(BTreeMap::new());

/// SQLite database that stores many sessions, each as a thread with a name.
///
/// The sessions themselves are opened by their path, `DATABASE#THREAD` ([`Location`](crate::Location)); this is
/// what concerns all of them. Clones share one connection, and so do all values of one file in a process.
/// Every method blocks.
#[derive(Clone)]
pub struct Database(pub(super) Arc<Inner>);

pub(super) struct Inner {
    /// As the caller named it, for messages.
    pub(super) path: PathBuf,
    /// Device and number of the file: a different file with its name is noticed.
    file: (u64, u64),
    connection: Mutex<Connection>,
    /// SQLite's `synchronous` as it is set.
    synchronous: Mutex<&'static str>,
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("path", &self.0.path).finish_non_exhaustive()
    }
}

impl Database {
    /// Opens the database at `path`. A missing one is created, readable by its owner only, or is an error.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::NewerVersion`], [`Error::WrongFormat`] for a database of another program,
    /// [`Error::Damaged`], and those of the operating system.
    pub fn open(path: impl AsRef<Path>, create: bool) -> Result<Self, Error> {
        let path = path.as_ref();
        let failed =
            |source| Error::Io { store: Store::Sessions, action: Action::Open, path: path.into(), source };
        if create {
            make(path).map_err(failed)?;
        }
        let real = match fs::canonicalize(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(Error::NotFound { path: path.into() });
            }
            real => real.map_err(failed)?,
        };
        if !real.is_file() {
            return Err(Error::NotAFile { path: path.into() });
        }
        let file = identity(&real).map_err(failed)?;
        let mut open = OPEN.lock();
        open.retain(|_, known| known.strong_count() > 0);
        if let Some(known) = open.get(&real).and_then(Weak::upgrade).filter(|known| known.file == file) {
            return Ok(Self(known));
        }
        let connection = Mutex::new(connect(&real, path)?);
        let opened = Arc::new(Inner { path: path.into(), file, connection, synchronous: Mutex::default() });
        open.insert(real, Arc::downgrade(&opened));
        Ok(Self(opened))
    }

    /// The names of all threads, sorted.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn threads(&self) -> Result<Vec<String>, Error> {
        self.with(Action::Read, |connection| {
            let mut names = connection.prepare_cached("SELECT name FROM threads ORDER BY name")?;
            let names = names.query_map([], |row| row.get(0))?;
            names.collect()
        })
    }

    /// Lets the database grow to so many pages at most, as a disk that is full would.
    ///
    /// # Panics
    /// If the database refuses the limit.
    #[cfg(feature = "testing")]
    pub fn limit_pages(&self, pages: u32) {
        let limited = self.with(Action::Write, |connection| {
            connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))
        });
        assert!(limited.is_ok(), "{limited:?}");
    }

    /// Runs `work` with the connection.
    pub(super) fn with<T>(
        &self,
        action: Action,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        let mut connection: MutexGuard<'_, Connection> = self.0.connection.lock();
        work(&mut connection).map_err(|error| failed(action, &self.0.path, &error))
    }

    /// Runs `work` with the connection, its `synchronous` at this level.
    pub(super) fn write<T>(
        &self,
        synchronous: &'static str,
        action: Action,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        self.with(action, |connection| {
            let mut set = self.0.synchronous.lock();
            if *set != synchronous {
                connection.pragma_update(None, "synchronous", synchronous)?;
                *set = synchronous;
            }
            work(connection)
        })
    }

    /// Checks that the file is still the one that was opened.
    pub(super) fn check(&self, real: &Path) -> Result<(), Error> {
        let how = match identity(real) {
            Ok(file) if file == self.0.file => return Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => Disturbance::Removed,
            Ok(_) | Err(_) => Disturbance::Replaced,
        };
        Err(Error::Disturbed { path: self.0.path.clone(), how })
    }
}

/// Makes the file and its directory, if they do not exist. SQLite gives the files beside it the same
/// permissions. An existing file is not opened here: closing it would release SQLite's locks.
fn make(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    create_folder(folder)?;
    match fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(file) => {
            file.sync_all()?;
            fs::File::open(folder)?.sync_all()
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::metadata(path).map(|about| (about.dev(), about.ino()))
}

fn connect(real: &Path, path: &Path) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connected = Connection::open_with_flags(real, flags).and_then(|connection| {
        connection.busy_timeout(BUSY)?;
        Ok(connection)
    });
    let unusable = |error: &rusqlite::Error| failed(Action::Open, path, error);
    let mut connection = connected.map_err(|error| unusable(&error))?;
    schema::prepare(&mut connection).map_err(|found| match found {
        Unusable::Sqlite(error) => unusable(&error),
        Unusable::Newer(found) => {
            Error::NewerVersion { path: path.into(), found, supported: schema::VERSION }
        }
        Unusable::Foreign => {
            Error::WrongFormat { path: path.into(), found: "a database of another program".to_owned() }
        }
    })?;
    Ok(connection)
}

/// An error of SQLite as one of this crate. Its text never quotes values.
fn failed(action: Action, path: &Path, error: &rusqlite::Error) -> Error {
    let io = |kind, text: &str| Error::Io {
        store: Store::Sessions,
        action,
        path: path.into(),
        source: io::Error::new(kind, text),
    };
    let text = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => {
            Error::WrongFormat { path: path.into(), found: "it is not a SQLite database".to_owned() }
        }
        // The next lines of a thread are there already.
        Some(ErrorCode::ConstraintViolation) => {
            Error::Disturbed { path: path.into(), how: Disturbance::Written }
        }
        Some(ErrorCode::DatabaseCorrupt) => {
            Error::Damaged { store: Store::Sessions, path: path.into(), reason: text }
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            io(ErrorKind::ResourceBusy, &format!("another process was writing for {} s", BUSY.as_secs()))
        }
        Some(ErrorCode::DiskFull) => io(ErrorKind::StorageFull, &text),
        Some(ErrorCode::ReadOnly) => io(ErrorKind::ReadOnlyFilesystem, &text),
        Some(ErrorCode::PermissionDenied) => io(ErrorKind::PermissionDenied, &text),
        _ => io(ErrorKind::Other, &text),
    }
}
