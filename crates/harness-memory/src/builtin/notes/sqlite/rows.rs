//! Queries of the tables.

use harness_core::Json;
use harness_host::StorageError;
use rusqlite::{Connection, OptionalExtension as _, Row, ToSql, named_params, params, params_from_iter};

use super::super::memory::WhenFull;
use super::super::note::{Note, NoteScope};
use super::super::store::{Embedding, Put, Ranked, Within, full};
use super::sqlite_error;

type Rows = Result<Vec<Ranked>, StorageError>;

pub(super) fn put(connection: &Connection, put: &Put) -> Result<bool, StorageError> {
    let note = &put.note;
    let known: Option<i64> = connection
        .query_row("SELECT row FROM notes WHERE id = ?1", [&*note.id], |row| row.get(0))
        .optional()
        .map_err(sqlite_error)?;
    if known.is_none() {
        make_room(connection, put)?;
    }
    write(connection, put).map_err(sqlite_error)?;
    Ok(known.is_none())
}

fn make_room(connection: &Connection, put: &Put) -> Result<(), StorageError> {
    let note = &put.note;
    let (kind, owner) = (note.scope.kind(), note.scope.owner());
    connection
        .execute(
            "DELETE FROM notes WHERE scope = ?1 AND owner = ?2 AND expires_at <= ?3",
            params![kind, owner, note.created_at.0],
        )
        .map_err(sqlite_error)?;
    let there: i64 = connection
        .query_row("SELECT count(*) FROM notes WHERE scope = ?1 AND owner = ?2", [kind, owner], |row| {
            row.get(0)
        })
        .map_err(sqlite_error)?;
    let most = i64::try_from(put.max_notes).unwrap_or(i64::MAX);
    if there < most {
        return Ok(());
    }
    if put.when_full == WhenFull::Refuse || put.max_notes == 0 {
        return Err(full(&note.scope, put.max_notes));
    }
    connection
        .execute(
            "DELETE FROM notes WHERE row IN (
                SELECT row FROM notes WHERE scope = ?1 AND owner = ?2 ORDER BY created_at, id LIMIT ?3)",
            params![kind, owner, there + 1 - most],
        )
        .map_err(sqlite_error)?;
    Ok(())
}

fn write(connection: &Connection, put: &Put) -> rusqlite::Result<()> {
    let note = &put.note;
    let whole = Json::of(note).unwrap_or_default();
    // Each tag stands between line breaks, which no tag has within it: see `conditions`.
    let tags = note.tags.iter().fold("\n".to_owned(), |tags, tag| tags + tag + "\n");
    let row: i64 = connection.query_row(
        "INSERT INTO notes (id, scope, owner, text, tags, note, created_at, expires_at)
         VALUES (:id, :scope, :owner, :text, :tags, :note, :created, :expires)
         ON CONFLICT (id) DO UPDATE SET text = excluded.text, tags = excluded.tags, note = excluded.note,
            created_at = excluded.created_at, expires_at = excluded.expires_at
         RETURNING row",
        named_params! {
            ":id": &*note.id,
            ":scope": note.scope.kind(),
            ":owner": note.scope.owner(),
            ":text": &*note.text,
            ":tags": tags,
            ":note": whole.text(),
            ":created": note.created_at.0,
            ":expires": note.expires_at.map(|at| at.0),
        },
        |row| row.get(0),
    )?;
    connection.execute("DELETE FROM vectors WHERE row = ?1", [row])?;
    if let Some(vector) = &put.vector {
        connection.execute(
            "INSERT INTO vectors (row, embedder, vector) VALUES (?1, ?2, ?3)",
            params![row, &*vector.by, bytes_of(&vector.values)],
        )?;
    }
    Ok(())
}

/// The conditions of `within`, and what to bind to them after the parameters that come before.
fn conditions(within: &Within) -> (String, Vec<Box<dyn ToSql>>) {
    let mut values: Vec<Box<dyn ToSql>> = Vec::new();
    let mut scopes = Vec::new();
    for scope in &within.scopes {
        scopes.push("(notes.scope = ? AND notes.owner = ?)");
        values.push(Box::new(scope.kind()));
        values.push(Box::new(scope.owner().to_owned()));
    }
    let mut sql = format!("({})", if scopes.is_empty() { "FALSE".to_owned() } else { scopes.join(" OR ") });
    sql.push_str(" AND (notes.expires_at IS NULL OR notes.expires_at > ?)");
    values.push(Box::new(within.now.0));
    if let Some(tag) = &within.tag {
        sql.push_str(" AND instr(notes.tags, ?) > 0");
        values.push(Box::new(format!("\n{tag}\n")));
    }
    (sql, values)
}

fn limit(within: &Within) -> Box<dyn ToSql> {
    Box::new(i64::try_from(within.limit).unwrap_or(i64::MAX))
}

pub(super) fn keyword(connection: &Connection, terms: &[String], within: &Within) -> Rows {
    // A quoted word is a plain word to FTS5, whatever it says; a word has no quotes within.
    let query = terms.iter().map(|term| format!("\"{term}\"")).collect::<Vec<_>>().join(" OR ");
    let (conditions, values) = conditions(within);
    let sql = format!(
        "SELECT notes.note, -bm25(words) FROM words JOIN notes ON notes.row = words.rowid
         WHERE words MATCH ? AND {conditions}
         ORDER BY bm25(words), notes.created_at DESC, notes.id LIMIT ?",
    );
    let mut bound: Vec<Box<dyn ToSql>> = vec![Box::new(query)];
    bound.extend(values);
    bound.push(limit(within));
    ranked(connection, &sql, bound, |row| row.get(1).map(Some))
}

pub(super) fn newest(connection: &Connection, within: &Within) -> Rows {
    let (conditions, mut bound) = conditions(within);
    let sql = format!(
        "SELECT notes.note FROM notes WHERE {conditions} ORDER BY notes.created_at DESC, notes.id LIMIT ?"
    );
    bound.push(limit(within));
    ranked(connection, &sql, bound, |_| Ok(Some(0.0)))
}

pub(super) fn nearest(connection: &Connection, probe: &Embedding, within: &Within) -> Rows {
    let (conditions, values) = conditions(within);
    let sql = format!(
        "SELECT notes.note, vectors.vector FROM vectors JOIN notes ON notes.row = vectors.row
         WHERE vectors.embedder = ? AND {conditions}",
    );
    let mut bound: Vec<Box<dyn ToSql>> = vec![Box::new(probe.by.to_string())];
    bound.extend(values);
    ranked(connection, &sql, bound, |row| {
        let bytes: Vec<u8> = row.get(1)?;
        Ok(Embedding { by: probe.by.clone(), values: values_of(&bytes) }.cosine(probe))
    })
}

/// The notes of a statement whose first column is a note; rows without a score are left out.
fn ranked(
    connection: &Connection,
    sql: &str,
    bound: Vec<Box<dyn ToSql>>,
    score: impl Fn(&Row<'_>) -> rusqlite::Result<Option<f64>>,
) -> Rows {
    let mut statement = connection.prepare(sql).map_err(sqlite_error)?;
    let mut rows = statement.query(params_from_iter(bound)).map_err(sqlite_error)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next().map_err(sqlite_error)? {
        if let Some(score) = score(row).map_err(sqlite_error)? {
            let text: String = row.get(0).map_err(sqlite_error)?;
            found.push(Ranked { note: parsed(&text)?, score });
        }
    }
    Ok(found)
}

fn parsed(text: &str) -> Result<Note, StorageError> {
    Json::parse(text).and_then(|json| json.to()).map_err(|error| {
        StorageError::new("notes.corrupt", format!("a note of the notes file cannot be read: {error}"))
    })
}

pub(super) fn remove(connection: &Connection, id: &str, scopes: &[NoteScope]) -> Result<bool, StorageError> {
    let mut removed = 0;
    for scope in scopes {
        removed += connection
            .execute(
                "DELETE FROM notes WHERE id = ?1 AND scope = ?2 AND owner = ?3",
                [id, scope.kind(), scope.owner()],
            )
            .map_err(sqlite_error)?;
    }
    Ok(removed > 0)
}

fn bytes_of(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn values_of(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|four| f32::from_le_bytes(*four)).collect()
}
