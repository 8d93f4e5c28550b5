//! The tables, and how older files become files of today.

use rusqlite::{Connection, Transaction, TransactionBehavior};

/// The version that is written; `user_version` of the file.
pub(super) const VERSION: i64 = 1;

/// Marks our files among all SQLite databases: `HNot`.
const APPLICATION: i64 = 0x484e_6f74;

/// One entry per version: what makes a file of the version before into one of this. The first begins with
/// an empty file. An entry that was released never changes.
const MIGRATIONS: &[&str] = &["
    CREATE TABLE notes (
        row INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        scope TEXT NOT NULL,
        owner TEXT NOT NULL,
        text TEXT NOT NULL,
        tags TEXT NOT NULL,
        note TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        expires_at INTEGER
    ) STRICT;
    CREATE INDEX notes_of_scope ON notes (scope, owner, created_at);
    CREATE TABLE vectors (
        row INTEGER PRIMARY KEY REFERENCES notes (row) ON DELETE CASCADE,
        embedder TEXT NOT NULL,
        vector BLOB NOT NULL
    ) STRICT;
    CREATE VIRTUAL TABLE words USING fts5 (
        text, tags, content = 'notes', content_rowid = 'row', tokenize = 'unicode61 remove_diacritics 2'
    );
    CREATE TRIGGER notes_added AFTER INSERT ON notes BEGIN
        INSERT INTO words (rowid, text, tags) VALUES (new.row, new.text, new.tags);
    END;
    CREATE TRIGGER notes_removed AFTER DELETE ON notes BEGIN
        INSERT INTO words (words, rowid, text, tags) VALUES ('delete', old.row, old.text, old.tags);
    END;
    CREATE TRIGGER notes_changed AFTER UPDATE ON notes BEGIN
        INSERT INTO words (words, rowid, text, tags) VALUES ('delete', old.row, old.text, old.tags);
        INSERT INTO words (rowid, text, tags) VALUES (new.row, new.text, new.tags);
    END;
"];

/// Reason why a file is unusable.
pub(super) enum Fault {
    /// Error of SQLite.
    Sqlite(rusqlite::Error),
    /// It has this version, which is newer than ours.
    Newer(i64),
    /// It belongs to a different program.
    Foreign,
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// Sets the connection up, and brings the file up to date in one transaction.
pub(super) fn prepare(connection: &mut Connection) -> Result<(), Fault> {
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    migrate(&transaction)?;
    transaction.commit()?;
    // Last, because it writes to the file, and a file of others must stay as it is.
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    Ok(())
}

fn migrate(transaction: &Transaction<'_>) -> Result<(), Fault> {
    let read = |name: &str| transaction.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (found, application) = (read("user_version")?, read("application_id")?);
    let tables: i64 = transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let is_new = found == 0 && application == 0 && tables == 0;
    if !is_new && application != APPLICATION {
        return Err(Fault::Foreign);
    }
    if found > VERSION {
        return Err(Fault::Newer(found));
    }
    for migration in MIGRATIONS.iter().skip(usize::try_from(found).unwrap_or(0)) {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    Ok(())
}
