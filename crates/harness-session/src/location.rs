//! Where sessions are stored.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Action, Error, Store};
use crate::folder::encode;
use crate::postgres;
use crate::rows::Rows;

/// Extensions of databases.
const DATABASES: [&str; 3] = ["db", "sqlite", "sqlite3"];

/// Where a session is stored, by its path: a JSON Lines file, or a thread of a SQLite or PostgreSQL database.
///
/// A path that ends in `.db`, `.sqlite` or `.sqlite3`, and a URL that begins with `postgres://` or `postgresql://`, is a
/// database; `#` and a name behind it select a thread.
/// Every function of this crate that takes the path of a session takes either form.
///
/// ```
/// use harness_session::Location;
///
/// assert_eq!(Location::of("maria.jsonl"), Location::File("maria.jsonl".into()));
/// let thread = Location::Thread { database: "chats.db".into(), name: "maria/1".to_owned() };
/// assert_eq!(Location::of("chats.db#maria/1"), thread);
/// assert_eq!(Location::of("chats.db"), Location::Database("chats.db".into()));
/// let url = "postgres://harness@db.internal/support";
/// assert_eq!(Location::of(url), Location::Database(url.into()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A JSON Lines file.
    File(PathBuf),
    /// A thread of a database.
    Thread {
        /// Path or URL of the database.
        database: PathBuf,
        /// Name of the thread.
        name: String,
    },
    /// A database, without a thread: the home of many sessions.
    Database(PathBuf),
}

impl Location {
    /// The location that a path names.
    pub fn of(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        let is_file =
            |path: &Path| path.extension().is_some_and(|end| DATABASES.iter().any(|known| end == *known));
        let is_database = |path: &Path| postgres::url(path).is_some() || is_file(path);
        let text = path.to_str().unwrap_or_default();
        let split = text.match_indices('#').map(|(at, _)| text.split_at(at));
        let found = { split }.find(|(database, _)| is_database(Path::new(database)));
        match found {
            Some((database, name)) => {
                let name = name.strip_prefix('#').unwrap_or(name).to_owned();
                Self::Thread { database: database.into(), name }
            }
            None if is_database(path) => Self::Database(path.into()),
            None => Self::File(path.into()),
        }
    }

    /// Whether there is a session, or a database, at this location.
    ///
    /// # Errors
    /// A database that cannot be read.
    pub fn exists(&self) -> Result<bool, Error> {
        match self {
            Self::Database(url) if postgres::url(url).is_some() => Rows::threads(url).map(|_| true),
            Self::File(path) | Self::Database(path) => Ok(path.exists()),
            Self::Thread { database, .. } if postgres::url(database).is_none() && !database.exists() => {
                Ok(false)
            }
            Self::Thread { database, name } => Rows::open(database, name, false)?.exists(),
        }
    }

    /// The URL of the database server; `None` for files.
    pub fn url(&self) -> Option<&str> {
        match self {
            Self::Thread { database, .. } | Self::Database(database) => postgres::url(database),
            Self::File(_) => None,
        }
    }

    /// A file beside the session, for what belongs to it: `maria.runs` for `maria.jsonl`, `chats.db.maria.runs`
    /// for the thread `maria` of `chats.db`. Not for a [server](Self::url), which has no files.
    #[must_use]
    pub fn beside(&self, extension: &str) -> PathBuf {
        match self {
            Self::File(path) | Self::Database(path) => path.with_extension(extension),
            Self::Thread { database, name } => {
                database.with_added_extension(encode(name)).with_added_extension(extension)
            }
        }
    }

    /// The sessions at this location, sorted by name: the `.jsonl` files of a directory, the threads of a
    /// database, or the one session itself.
    ///
    /// # Errors
    /// The directory or the database cannot be read.
    pub fn sessions(&self) -> Result<Vec<PathBuf>, Error> {
        match self {
            Self::File(path) if path.is_dir() => {
                let failed = |source| Error::Io {
                    store: Store::Sessions,
                    action: Action::Read,
                    path: path.clone(),
                    source,
                };
                let files = fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
                let files = files.map_err(failed)?.into_iter().map(|file| file.path());
                let is_session = |path: &PathBuf| path.extension().is_some_and(|end| end == "jsonl");
                let mut files: Vec<_> = files.filter(|path| is_session(path) && path.is_file()).collect();
                files.sort();
                Ok(files)
            }
            Self::Database(path) => {
                let names = Rows::threads(path)?.into_iter();
                Ok(names.map(|name| thread_path(path, &name)).collect())
            }
            Self::File(path) => Ok(vec![path.clone()]),
            Self::Thread { database, name } => Ok(vec![thread_path(database, name)]),
        }
    }
}

/// The path of a thread.
pub(crate) fn thread_path(database: &Path, name: &str) -> PathBuf {
    PathBuf::from(format!("{}#{name}", database.display()))
}
