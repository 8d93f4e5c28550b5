//! The lines of one thread of a database.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};

use super::database::Database;
use crate::error::{Action, Error};
use crate::location::thread_path;

/// The lines of one thread.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    database: Database,
    /// The database without symbolic links.
    real: PathBuf,
    /// Name of the thread.
    name: String,
    /// The thread as the caller named it, for messages.
    path: PathBuf,
}

impl Rows {
    pub(crate) fn open(database: &Path, name: &str, create: bool) -> Result<Self, Error> {
        if name.is_empty() {
            return Err(Error::NoThread { path: database.into() });
        }
        let opened = Database::open(database, create)?;
        let real = fs::canonicalize(database).unwrap_or_else(|_| database.into());
        Ok(Self { database: opened, real, name: name.to_owned(), path: thread_path(database, name) })
    }

    /// The names of all threads of a database.
    pub(crate) fn threads(database: &Path) -> Result<Vec<String>, Error> {
        Database::open(database, false)?.threads()
    }

    /// Whether the thread has lines.
    pub(crate) fn exists(&self) -> Result<bool, Error> {
        self.database.with(Action::Read, |connection| Ok(thread(connection, &self.name)?.is_some()))
    }

    /// The first `most` lines, or all, each ended by a line feed, as in a session file. A line that is missing is
    /// blank.
    pub(crate) fn content(&self, limit: u64, most: Option<u32>) -> Result<Vec<u8>, Error> {
        let (bytes, content) = self.database.with(Action::Read, |connection| {
            let (mut bytes, mut content) = (0_u64, Vec::new());
            let Some(id) = thread(connection, &self.name)? else { return Ok((bytes, content)) };
            let (ids, mut next) = (ids(id), ids(id).start);
            // With an upper bound for the id, SQLite takes a damaged page for the end.
            let lines = "SELECT id, line FROM lines WHERE id >= ?1 ORDER BY id LIMIT ?2";
            let mut lines = connection.prepare_cached(lines)?;
            let mut rows = lines.query(params![ids.start, most.map_or(-1, i64::from)])?;
            while let Some(row) = rows.next()? {
                let at: i64 = row.get(0)?;
                if at >= ids.end {
                    break;
                }
                let line = row.get_ref(1)?.as_bytes()?;
                let missing = at.saturating_sub(next).unsigned_abs();
                bytes = bytes.saturating_add(missing).saturating_add(line.len() as u64).saturating_add(1);
                if bytes > limit {
                    break;
                }
                content.extend((next..at).map(|_| b'\n'));
                next = at.saturating_add(1);
                content.extend_from_slice(line);
                content.push(b'\n');
            }
            Ok((bytes, content))
        })?;
        if bytes > limit {
            return Err(Error::TooLarge { path: self.path.clone(), bytes, limit });
        }
        Ok(content)
    }

    /// Adds lines behind the first `before` ones in one transaction, with `synchronous` at this level. Without
    /// lines, brings what was added before to stable storage.
    pub(crate) fn append(&self, lines: &[u8], before: u64, synchronous: &'static str) -> Result<(), Error> {
        self.database.check(&self.real)?;
        let count = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count();
        let before = i64::try_from(before).unwrap_or(i64::MAX);
        self.database.write(synchronous, Action::Write, |connection| {
            let known = thread(connection, &self.name)?;
            if let (Some(id), 1) = (known, count) {
                // One statement is a transaction of its own.
                return insert(connection, id, before, lines);
            }
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let id = claim(&transaction, &self.name)?;
            if count == 0 {
                // A transaction that writes nothing does not reach the disk either.
                transaction.execute("UPDATE threads SET indexed = indexed WHERE id = ?1", [id])?;
            }
            insert(&transaction, id, before, lines)?;
            transaction.commit()
        })
    }

    /// Puts lines in the place of the thread's; of a `new` thread, only if it has none yet. What was there before
    /// is gone from the file afterwards, the index of words included.
    pub(crate) fn replace(&self, lines: &[u8], new: bool) -> Result<(), Error> {
        self.database.check(&self.real)?;
        let placed = self.database.write("full", Action::Replace, |connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            if new && thread(&transaction, &self.name)?.is_some() {
                return Ok(false);
            }
            let id = claim(&transaction, &self.name)?;
            remove_lines(&transaction, id)?;
            insert(&transaction, id, 0, lines)?;
            transaction.commit()?;
            empty_log(connection)?;
            Ok(true)
        })?;
        if placed { Ok(()) } else { Err(Error::Exists { path: self.path.clone() }) }
    }

    /// Removes the thread and all its lines.
    pub(crate) fn remove(&self) -> Result<(), Error> {
        self.database.check(&self.real)?;
        self.database.write("full", Action::Write, |connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            if let Some(id) = thread(&transaction, &self.name)? {
                remove_lines(&transaction, id)?;
                transaction.execute("DELETE FROM threads WHERE id = ?1", [id])?;
            }
            transaction.commit()?;
            empty_log(connection)
        })
    }
}

/// The ids of the lines of a thread, from its first line on.
pub(super) fn ids(thread: i64) -> Range<i64> {
    (thread << 32) + 1..(thread + 1) << 32
}

/// The row of a thread.
fn thread(connection: &Connection, name: &str) -> rusqlite::Result<Option<i64>> {
    let mut select = connection.prepare_cached("SELECT id FROM threads WHERE name = ?1")?;
    select.query_row([name], |row| row.get(0)).optional()
}

/// The row of a thread, which is made if there is none.
fn claim(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    if let Some(id) = thread(connection, name)? {
        return Ok(id);
    }
    connection.execute("INSERT INTO threads (name) VALUES (?1)", [name])?;
    Ok(connection.last_insert_rowid())
}

fn insert(connection: &Connection, thread: i64, before: i64, lines: &[u8]) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached("INSERT INTO lines (id, line) VALUES (?1, ?2)")?;
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    for (id, line) in (ids(thread).start.saturating_add(before)..).zip(lines) {
        match str::from_utf8(line) {
            Ok(text) => statement.execute(params![id, text])?,
            Err(_) => statement.execute(params![id, line])?,
        };
    }
    Ok(())
}

/// Removes the lines of a thread, and empties the index of words, which the next search fills again.
fn remove_lines(connection: &Connection, thread: i64) -> rusqlite::Result<()> {
    let ids = ids(thread);
    connection.execute("DELETE FROM lines WHERE id >= ?1 AND id < ?2", [ids.start, ids.end])?;
    connection.execute("INSERT INTO words (words) VALUES ('delete-all')", [])?;
    connection.execute("UPDATE threads SET indexed = 0", []).map(drop)
}

/// Takes what was removed out of the write-ahead log, too, unless another process is reading it.
fn empty_log(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update_and_check(None, "wal_checkpoint", "truncate", |_| Ok(()))
}
