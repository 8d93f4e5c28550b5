//! Where the lines of a session are: in a file, or in a database.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

use super::lock::{Lock, Owner, Refused};
use super::options::OpenOptions;
use super::read;
use crate::error::{Action, Error, Store};
use crate::folder::{LONGEST_NAME, encode};
use crate::location::Location;
use crate::postgres::{self, Claim};
use crate::rows::Rows;

/// How many symbolic links may lead from one to the next.
const MOST_LINKS: usize = 40;

/// The place of a session.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    /// As the caller named it, for messages.
    pub(crate) path: PathBuf,
    /// The file, or the database, without symbolic links; the URL of a server.
    pub(crate) real: PathBuf,
    /// The lines of a thread of a database.
    pub(crate) rows: Option<Rows>,
    /// Name of the session, if nothing else names it.
    pub(crate) stem: String,
}

impl Home {
    /// The place that a path names. A missing database is created, or is an error.
    pub(crate) fn of(path: &Path, create: bool) -> Result<Self, Error> {
        let failed = |source| io_error(Action::Open, path, source);
        match Location::of(path) {
            Location::File(file) => {
                let real = resolve(&file).map_err(failed)?;
                let stem = real.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                Ok(Self { path: path.into(), real, rows: None, stem })
            }
            Location::Thread { database, name } => {
                if encode(&name).len() > LONGEST_NAME {
                    let (bytes, limit) = (encode(&name).len(), LONGEST_NAME);
                    return Err(Error::LongKey { store: Store::Sessions, bytes, limit });
                }
                let rows = Some(Rows::open(&database, &name, create)?);
                let is_url = postgres::url(&database).is_some();
                let real = if is_url { database } else { fs::canonicalize(&database).map_err(failed)? };
                Ok(Self { path: path.into(), real, rows, stem: name })
            }
            Location::Database(path) => Err(Error::NoThread { path }),
        }
    }

    /// Whether the session exists.
    pub(crate) fn exists(&self) -> Result<bool, Error> {
        match &self.rows {
            Some(rows) => rows.exists(),
            None => check_file(&self.path, &self.real),
        }
    }

    /// Becomes the owner.
    pub(crate) fn lock(&self) -> Result<Held, Error> {
        if let Some(Rows::Postgres(rows)) = &self.rows {
            return rows.claim().map(Held::Server);
        }
        let path = self.beside(".lock");
        let taken = Lock::take(path.clone()).map(Held::File);
        taken.map_err(|refused| refused_lock(refused, &self.path, &path))
    }

    /// The directory of the file, or of the database; `None` for a server.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.real.parent().filter(|_| !matches!(self.rows, Some(Rows::Postgres(_))))
    }

    /// Keeps lines that cannot be read: in the file `NAME.quarantine`, or in a table of the server. Returns where.
    pub(crate) fn set_aside(
        &self,
        lines: &[u8],
        to_file: impl FnOnce(&Path) -> io::Result<()>,
    ) -> Result<PathBuf, Error> {
        if let Some(Rows::Postgres(rows)) = &self.rows {
            rows.set_aside(lines)?;
            return Ok(PathBuf::from(format!("{} (table harness.quarantine)", self.real.display())));
        }
        let side = self.beside(".quarantine");
        to_file(&side).map_err(|source| io_error(Action::Replace, &self.path, source))?;
        Ok(side)
    }

    /// The path of a file beside the session.
    pub(crate) fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = OsString::from(&self.real);
        if self.rows.is_some() {
            name.push(".");
            name.push(encode(&self.stem));
        }
        name.push(suffix);
        name.into()
    }

    /// The lines as they are stored; `None` if there are none. Of a database `lines` of them at most.
    pub(crate) fn reader(
        &self,
        options: &OpenOptions,
        lines: Option<u32>,
    ) -> Result<Option<Box<dyn Read>>, Error> {
        if let Some(rows) = &self.rows {
            let content = rows.content(options.limits.file_bytes, lines)?;
            return Ok((!content.is_empty()).then(|| Box::new(Cursor::new(content)) as _));
        }
        check_file(&self.path, &self.real)?;
        let file = read::open(&self.real, &self.path, options.limits)?;
        Ok(file.map(|file| Box::new(file) as _))
    }

    /// All that is stored, at most `most` bytes.
    pub(crate) fn content(&self, options: &OpenOptions, most: u64) -> Result<Vec<u8>, Error> {
        let mut content = Vec::new();
        if let Some(reader) = self.reader(options, None)? {
            let read = reader.take(most).read_to_end(&mut content);
            read.map_err(|source| io_error(Action::Read, &self.path, source))?;
        }
        Ok(content)
    }
}

/// Ownership of a session, until it is dropped.
#[derive(Debug)]
pub(crate) enum Held {
    /// By a lock file.
    File(Lock),
    /// By a lock of a database server.
    Server(Claim),
}

impl Held {
    /// An earlier owner that ended without giving its lock back.
    pub(crate) fn left_by(&self) -> Option<&Owner> {
        match self {
            Self::File(lock) => lock.left_by.as_ref(),
            Self::Server(claim) => claim.left_by(),
        }
    }

    /// Whether no other process can have become the owner.
    pub(crate) fn holds(&self) -> io::Result<bool> {
        match self {
            Self::File(lock) => lock.holds(),
            Self::Server(claim) => Ok(claim.holds()),
        }
    }
}

pub(super) fn refused_lock(refused: Refused, named: &Path, locked: &Path) -> Error {
    match refused {
        Refused::Held(owner) => Error::Locked { path: named.into(), owner },
        Refused::Io(source) => io_error(Action::Lock, locked, source),
    }
}

pub(super) fn io_error(action: Action, path: &Path, source: io::Error) -> Error {
    Error::Io { store: Store::Sessions, action, path: path.into(), source }
}

/// Whether the file exists.
fn check_file(named: &Path, path: &Path) -> Result<bool, Error> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(true),
        Ok(_) => Err(Error::NotAFile { path: named.into() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(io_error(Action::Open, named, source)),
    }
}

/// The path without symbolic links, so that every way to a session leads to one lock. What does not exist
/// yet stays as it is named.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        match fs::canonicalize(&path) {
            Ok(real) => return Ok(real),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Err(_) => {}
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let Ok(target) = fs::read_link(&path) else {
            let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
            let folder = fs::canonicalize(folder).or_else(|_| std::path::absolute(folder))?;
            return Ok(folder.join(name));
        };
        path = folder.join(target);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "too many symbolic links"))
}
