//! Search over the threads of a database, by its index of words.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension as _, Row, TransactionBehavior, params};

use super::database::Database;
use super::rows::{Rows, ids};
use crate::error::{Action, Error};
use crate::location::thread_path;
use crate::seal;
use crate::search::{Hit, Line, Query, text_of};

/// Lines that are indexed in one transaction, so that writers need not wait for long.
const AT_ONCE: i64 = 2_000;

/// The shortest word that the index knows.
const SHORTEST: usize = 3;

impl Rows {
    /// Adds the latest matching messages of each thread to `hits`, `most` at most, and returns the paths of the
    /// encrypted threads, which have no index.
    pub(crate) fn search(
        path: &Path,
        query: &Query,
        most: usize,
        hits: &mut Vec<Hit>,
    ) -> Result<Vec<PathBuf>, Error> {
        let database = Database::open(path, false)?;
        let threads = database.with(Action::Read, |connection| {
            let mut select = connection.prepare("SELECT id, name FROM threads ORDER BY name")?;
            let threads = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            threads.collect::<rusqlite::Result<Vec<(i64, String)>>>()
        })?;
        let mut sealed = Vec::new();
        for (thread, name) in threads {
            let path = thread_path(&database.0.path, &name);
            if database.with(Action::Read, |connection| is_sealed(connection, thread))? {
                sealed.push(path);
                continue;
            }
            while database.write("normal", Action::Write, |connection| index_next(connection, thread))? {}
            hits.extend(
                database.with(Action::Read, |connection| find(connection, thread, query, &path, most))?,
            );
            hits.sort_by(|a, b| b.at.cmp(&a.at));
            hits.truncate(most);
        }
        Ok(sealed)
    }
}

fn is_sealed(connection: &Connection, thread: i64) -> rusqlite::Result<bool> {
    let first = "SELECT line FROM lines WHERE id = ?1";
    let mut first = connection.prepare_cached(first)?;
    let sealed =
        first.query_row([ids(thread).start], |row| Ok(seal::is_first_line(row.get_ref(0)?.as_bytes()?)));
    sealed.optional().map(|sealed| sealed.unwrap_or(false))
}

/// Adds the next lines of a thread to the index; false if all are in it.
fn index_next(connection: &mut Connection, thread: i64) -> rusqlite::Result<bool> {
    let ids = ids(thread);
    let indexed = |connection: &Connection| {
        let indexed = "SELECT indexed FROM threads WHERE id = ?1";
        let indexed = connection.prepare_cached(indexed)?.query_row([thread], |row| row.get::<_, i64>(0));
        indexed.map(|indexed| ids.start.saturating_add(indexed))
    };
    let last = "SELECT coalesce(max(id), 0) FROM lines WHERE id < ?1";
    let last: i64 = connection.prepare_cached(last)?.query_row([ids.end], |row| row.get(0))?;
    if last < indexed(connection)? {
        return Ok(false);
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut at = indexed(&transaction)?;
    let end = ids.end.min(at.saturating_add(AT_ONCE));
    {
        let lines = "SELECT id, line FROM lines WHERE id >= ?1 AND id < ?2";
        let mut lines = transaction.prepare_cached(lines)?;
        let mut add = transaction.prepare_cached("INSERT INTO words (rowid, text) VALUES (?1, ?2)")?;
        let mut rows = lines.query([at, end])?;
        while let Some(row) = rows.next()? {
            at = row.get(0)?;
            if let Some(line) = line_of(row)? {
                add.execute(params![at, text_of(&line.message)])?;
            }
        }
    }
    // A gap that is longer than one step must not stop the index.
    let next = at.max(end.min(last)).saturating_sub(ids.start).saturating_add(1);
    transaction.execute("UPDATE threads SET indexed = ?1 WHERE id = ?2", [next, thread])?;
    transaction.commit()?;
    Ok(true)
}

/// The latest matching messages of a thread.
fn find(
    connection: &Connection,
    thread: i64,
    query: &Query,
    path: &Path,
    most: usize,
) -> rusqlite::Result<Vec<Hit>> {
    let words = query.words().iter().filter(|word| word.chars().count() >= SHORTEST);
    let quoted: Vec<String> = words.map(|word| format!("\"{}\"", word.replace('"', "\"\""))).collect();
    let indexed = "SELECT id, line FROM words JOIN lines ON id = words.rowid \
        WHERE words MATCH ?3 AND words.rowid >= ?1 AND words.rowid < ?2 ORDER BY words.rowid DESC";
    // Without a word for the index every line is read.
    let all = "SELECT id, line FROM lines WHERE id >= ?1 AND id < ?2 AND ?3 = '' ORDER BY id DESC";
    let mut select = connection.prepare_cached(if quoted.is_empty() { all } else { indexed })?;
    let mut rows = select.query(params![ids(thread).start, ids(thread).end, quoted.join(" ")])?;
    let mut hits = Vec::new();
    while let Some(row) = rows.next()?.filter(|_| hits.len() < most) {
        hits.extend(line_of(row)?.and_then(|line| query.hit(path, line.id, &line.at, &line.message)));
    }
    Ok(hits)
}

/// The message in the second column, if it is one.
fn line_of(row: &Row<'_>) -> rusqlite::Result<Option<Line>> {
    Ok(Line::of(row.get_ref(1)?.as_bytes()?))
}
