//! Notes in one SQLite file.

mod rows;
mod schema;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use harness_host::StorageError;
use parking_lot::Mutex;
use rusqlite::{Connection, TransactionBehavior};

use super::note::NoteScope;
use super::store::{Embedding, NoteStore, Put, Ranked, Within, best};

/// How long a write waits for another process that is writing.
const BUSY: Duration = Duration::from_secs(5);

/// Keeps notes in one SQLite file with full-text search (FTS5): they outlive the program.
///
/// The file is made on first use, readable by its owner only. Several processes may use it: readers never
/// wait, and writers wait for each other, at most five seconds. A note is on the disk when `put` returns.
/// Every call runs on tokio's threads for blocking work, so it needs a tokio runtime.
///
/// Words are found without regard to case and accents. Texts written without spaces between words
/// (Chinese, Japanese, Thai) are one word each to it: use an embedder for them.
#[derive(Clone, derive_more::Debug)]
pub struct SqliteNotes {
    #[debug(skip)]
    connection: Arc<Mutex<Connection>>,
}

impl SqliteNotes {
    /// Opens or makes the file at `path`, bringing an older form of it up to date. Blocks shortly.
    ///
    /// # Errors
    /// `notes.newer`, when a newer version of this program wrote the file; `notes.open`, when it cannot be opened, is
    /// not a database or belongs to a different program.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StorageError> {
        let path = path.as_ref();
        let at = path.display().to_string();
        make_private(path).map_err(|error| {
            StorageError::new("notes.open", format!("cannot open the notes file {at}: {error}"))
        })?;
        Self::prepared(Connection::open(path), &at)
    }

    /// A database in memory that ends with this value, for tests.
    ///
    /// # Errors
    /// When SQLite cannot make it.
    pub fn in_memory() -> Result<Self, StorageError> {
        Self::prepared(Connection::open_in_memory(), "in memory")
    }

    fn prepared(opened: rusqlite::Result<Connection>, at: &str) -> Result<Self, StorageError> {
        let failed = |error: rusqlite::Error| {
            StorageError::new(
                "notes.open",
                format!("cannot open the notes file {at}: {error}; check that it is a database of notes"),
            )
        };
        let mut connection = opened.map_err(failed)?;
        connection.busy_timeout(BUSY).map_err(failed)?;
        schema::prepare(&mut connection).map_err(|fault| match fault {
            schema::Fault::Sqlite(error) => failed(error),
            schema::Fault::Newer(found) => StorageError::new(
                "notes.newer",
                format!(
                    "the notes file {at} has version {found}, and this program knows versions up to {}; use \
                     a newer program",
                    schema::VERSION,
                ),
            ),
            schema::Fault::Foreign => StorageError::new(
                "notes.open",
                format!("the file {at} is a database of another program; choose another file for notes"),
            ),
        })?;
        Ok(Self { connection: Arc::new(Mutex::new(connection)) })
    }

    /// Runs `work` with the connection, on a thread that may block.
    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, StorageError> + Send + 'static,
    ) -> Result<T, StorageError> {
        let connection = Arc::clone(&self.connection);
        let run = move || work(&mut connection.lock());
        tokio::task::spawn_blocking(run).await.map_err(|error| {
            StorageError::new("notes.stopped", format!("the work on the notes file was stopped: {error}"))
        })?
    }
}

/// Makes the file with rights for its owner only, if there is none: SQLite would ask the umask, and gives
/// its side files the rights of the file.
#[cfg(unix)]
fn make_private(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;

    let made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    match made {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

#[cfg(not(unix))]
fn make_private(_: &Path) -> std::io::Result<()> {
    Ok(())
}

/// Converts an error of SQLite.
fn sqlite_error(error: rusqlite::Error) -> StorageError {
    use rusqlite::ErrorCode;

    let kind = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => "notes.busy",
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => "notes.corrupt",
        Some(ErrorCode::DiskFull) => "notes.disk_full",
        _ => "notes.sqlite",
    };
    StorageError::new(kind, format!("the notes file cannot be used: {error}"))
}

impl NoteStore for SqliteNotes {
    async fn put(&self, put: Put) -> Result<bool, StorageError> {
        self.with(move |connection| {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sqlite_error)?;
            let fresh = rows::put(&transaction, &put)?;
            transaction.commit().map_err(sqlite_error)?;
            Ok(fresh)
        })
        .await
    }

    async fn keyword(&self, terms: Vec<String>, within: Within) -> Result<Vec<Ranked>, StorageError> {
        if terms.is_empty() || within.scopes.is_empty() {
            return Ok(Vec::new());
        }
        self.with(move |connection| rows::keyword(connection, &terms, &within)).await
    }

    async fn nearest(&self, probe: Embedding, within: Within) -> Result<Vec<Ranked>, StorageError> {
        self.with(move |connection| Ok(best(rows::nearest(connection, &probe, &within)?, within.limit))).await
    }

    async fn newest(&self, within: Within) -> Result<Vec<Ranked>, StorageError> {
        self.with(move |connection| rows::newest(connection, &within)).await
    }

    async fn remove(&self, id: Arc<str>, scopes: Vec<NoteScope>) -> Result<bool, StorageError> {
        self.with(move |connection| rows::remove(connection, &id, &scopes)).await
    }
}
