//! The lines of one thread of a database, SQLite or PostgreSQL.

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::search::{Hit, Query};
use crate::{postgres, sqlite};

/// The lines of one thread.
#[derive(Clone, Debug)]
pub(crate) enum Rows {
    Sqlite(sqlite::Rows),
    Postgres(postgres::Rows),
}

impl Rows {
    /// The thread of a database. A missing database is created, or is an error.
    pub(crate) fn open(database: &Path, name: &str, create: bool) -> Result<Self, Error> {
        if postgres::url(database).is_some() {
            return postgres::Rows::open(database, name).map(Self::Postgres);
        }
        sqlite::Rows::open(database, name, create).map(Self::Sqlite)
    }

    /// The names of all threads of a database, sorted.
    pub(crate) fn threads(database: &Path) -> Result<Vec<String>, Error> {
        if postgres::url(database).is_some() {
            return postgres::Rows::threads(database);
        }
        sqlite::Rows::threads(database)
    }

    /// Adds the latest matching messages of each thread to `hits`, `most` at most, and returns the paths of the
    /// encrypted threads, which have to be read.
    pub(crate) fn search(
        database: &Path,
        query: &Query,
        most: usize,
        hits: &mut Vec<Hit>,
    ) -> Result<Vec<PathBuf>, Error> {
        if postgres::url(database).is_some() {
            return postgres::Rows::search(database, query, most, hits);
        }
        sqlite::Rows::search(database, query, most, hits)
    }

    /// Whether the thread has lines.
    pub(crate) fn exists(&self) -> Result<bool, Error> {
        match self {
            Self::Sqlite(rows) => rows.exists(),
            Self::Postgres(rows) => rows.exists(),
        }
    }

    /// The first `most` lines, or all, each ended by a line feed, as in a session file.
    pub(crate) fn content(&self, limit: u64, most: Option<u32>) -> Result<Vec<u8>, Error> {
        match self {
            Self::Sqlite(rows) => rows.content(limit, most),
            Self::Postgres(rows) => rows.content(limit, most),
        }
    }

    /// Adds lines behind the first `before` ones. `synchronous`: how SQLite brings them to stable storage.
    pub(crate) fn append(&self, lines: &[u8], before: u64, synchronous: &'static str) -> Result<(), Error> {
        match self {
            Self::Sqlite(rows) => rows.append(lines, before, synchronous),
            Self::Postgres(rows) => rows.append(lines, before),
        }
    }

    /// Puts lines in the place of the thread's; of a `new` thread, only if it has none yet.
    pub(crate) fn replace(&self, lines: &[u8], new: bool) -> Result<(), Error> {
        match self {
            Self::Sqlite(rows) => rows.replace(lines, new),
            Self::Postgres(rows) => rows.replace(lines, new),
        }
    }

    /// Removes the thread and all its lines.
    pub(crate) fn remove(&self) -> Result<(), Error> {
        match self {
            Self::Sqlite(rows) => rows.remove(),
            Self::Postgres(rows) => rows.remove(),
        }
    }
}
