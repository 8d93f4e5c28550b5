//! The tables of a database of sessions, and its version.

use rusqlite::{Connection, Transaction, TransactionBehavior};

/// The version that is written, and the newest that is read: `user_version` of the file.
pub(crate) const VERSION: u32 = 1;

/// Marks our files among all SQLite databases: `HSes`.
const APPLICATION: i64 = 0x4853_6573;

/// The steps from each version to the next. A released step never changes.
///
/// The id of a line is that of its thread times 2³² plus its number in the thread, from 1: lines of a thread are
/// together, and in order. `indexed` is the number of the last line whose words are in the index.
const MIGRATIONS: [&str; VERSION as usize] = ["
    CREATE TABLE threads (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        indexed INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE TABLE lines (id INTEGER PRIMARY KEY, line ANY NOT NULL) STRICT;
    CREATE VIRTUAL TABLE words USING fts5 (text, content = '', tokenize = 'trigram');
"];

/// Reason why a database cannot be used.
pub(super) enum Unusable {
    Sqlite(rusqlite::Error),
    Newer(u64),
    Foreign,
}

impl From<rusqlite::Error> for Unusable {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// Sets the connection up, and brings an older database up to date.
pub(super) fn prepare(connection: &mut Connection) -> Result<(), Unusable> {
    connection.pragma_update(None, "trusted_schema", false)?;
    // What is removed is gone from the file.
    connection.pragma_update(None, "secure_delete", true)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    migrate(&transaction)?;
    transaction.commit()?;
    // Last, because it writes to the file, and one of another program must stay as it is.
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    Ok(())
}

fn migrate(transaction: &Transaction<'_>) -> Result<(), Unusable> {
    let read = |name: &str| transaction.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (found, application) = (read("user_version")?, read("application_id")?);
    let tables: i64 = transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let is_new = found == 0 && application == 0 && tables == 0;
    let found = u64::try_from(found).unwrap_or(0);
    if !is_new && application != APPLICATION {
        return Err(Unusable::Foreign);
    }
    if found > u64::from(VERSION) {
        return Err(Unusable::Newer(found));
    }
    if found == u64::from(VERSION) {
        return Ok(());
    }
    for migration in MIGRATIONS.iter().skip(usize::try_from(found).unwrap_or(0)) {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    Ok(())
}
