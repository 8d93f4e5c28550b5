//! Errors of sessions.

use std::fmt;
use std::io;
use std::path::PathBuf;

use harness_core::port::SessionError;
use harness_core::{ArtifactId, EntryId, RunId};
use harness_host::StorageError;

use crate::jsonl::Owner;

/// Error while opening, reading or writing a session. The text names the file, the place and the
/// value; [`Error::hint`] suggests a fix.
///
/// Texts never quote the content of a session, so a secret in a transcript does not reach a log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another owner has the session open for writing.
    #[error("session `{}` is in use by {}", path.display(), InUseBy(owner.as_ref()))]
    Locked {
        /// The session file.
        path: PathBuf,
        /// Owner, if the lock file names it.
        owner: Option<Owner>,
    },
    /// There is no such file, and the caller did not want it created.
    #[error("session `{}` does not exist", path.display())]
    NotFound {
        /// The session file.
        path: PathBuf,
    },
    /// There is such a file already, and it must not be overwritten.
    #[error("session `{}` already exists", path.display())]
    Exists {
        /// The session file.
        path: PathBuf,
    },
    /// A session has no entry of that name.
    #[error("session `{}` has no entry `{id}`", path.display())]
    UnknownEntry {
        /// The session file.
        path: PathBuf,
        /// Id of the entry.
        id: EntryId,
    },
    /// A path names a database, and none of its threads.
    #[error("`{}` is a database of sessions, and no thread of it is named", path.display())]
    NoThread {
        /// Path of the database.
        path: PathBuf,
    },
    /// A path names a database, and this build cannot open any.
    #[error("cannot open the database `{}`: this build has no SQLite", path.display())]
    NoSqlite {
        /// Path of the database.
        path: PathBuf,
    },
    /// A URL names a PostgreSQL database, and this build cannot open any.
    #[error("cannot open a PostgreSQL database: this build has no PostgreSQL")]
    NoPostgres,
    /// The URL of a PostgreSQL database cannot be used. The text does not quote it.
    #[error("cannot use the URL of the PostgreSQL database: {reason}")]
    PostgresUrl {
        /// Reason why it cannot be used.
        reason: String,
    },
    /// The session is encrypted, and no key was given.
    #[error("session `{}` is encrypted with key `{key}`", path.display())]
    Sealed {
        /// The session file.
        path: PathBuf,
        /// Id of the key.
        key: String,
    },
    /// The session is encrypted with a different key.
    #[error("session `{}` is encrypted with key `{key}`, the key given is `{given}`", path.display())]
    WrongKey {
        /// The session file.
        path: PathBuf,
        /// Id of the session's key.
        key: String,
        /// Id of the key that was given.
        given: String,
    },
    /// A key was given, and the session is not encrypted.
    #[error("session `{}` is not encrypted, and a key was given", path.display())]
    NotSealed {
        /// The session file.
        path: PathBuf,
    },
    /// A key file cannot be used.
    #[error("key file `{}`: {reason}", path.display())]
    KeyFile {
        /// Path of the key file.
        path: PathBuf,
        /// Reason why it cannot be used.
        reason: String,
    },
    /// The path is not a regular file.
    #[error("session `{}` is not a regular file", path.display())]
    NotAFile {
        /// Path in question.
        path: PathBuf,
    },
    /// The file is not as its owner left it. Nothing more is stored in it until it is opened again.
    #[error("session `{}` {how} while it was in use", path.display())]
    Disturbed {
        /// The session file.
        path: PathBuf,
        /// Kind of change.
        how: Disturbance,
    },
    /// The file was written by a newer version.
    #[error("session `{}` has format version {found}, this program reads up to version {supported}", path.display())]
    NewerVersion {
        /// The session file.
        path: PathBuf,
        /// The version that its header names.
        found: u64,
        /// The newest version that can be read.
        supported: u32,
    },
    /// The header belongs to another format.
    #[error("`{}` is not a harness session: its header says {found}", path.display())]
    WrongFormat {
        /// Path of the file.
        path: PathBuf,
        /// Format in the header.
        found: String,
    },
    /// A line other than an unfinished last one cannot be read.
    #[error("session `{}`, line {line} (byte {offset}): {reason}", path.display())]
    CorruptLine {
        /// The session file.
        path: PathBuf,
        /// The line, from 1, blank lines counted.
        line: u64,
        /// Where the line begins, in bytes from the start of the file.
        offset: u64,
        /// Reason why it is damaged.
        reason: String,
    },
    /// A line is longer than permitted, in the file or about to be written.
    #[error("session `{}`, line {line}: the line has {bytes} bytes, the limit is {limit} bytes", path.display())]
    LineTooLong {
        /// The session file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// Length of the line.
        bytes: u64,
        /// The longest permitted line.
        limit: u64,
    },
    /// The file is larger than permitted, or would become so.
    #[error("session `{}` would hold {bytes} bytes, the limit is {limit} bytes", path.display())]
    TooLarge {
        /// The session file.
        path: PathBuf,
        /// Length of the file.
        bytes: u64,
        /// The largest permitted length.
        limit: u64,
    },
    /// An entry has a form that could not be read back. Nothing was written.
    #[error("an entry cannot be stored in session `{}`: {reason}", path.display())]
    Unstorable {
        /// The session file.
        path: PathBuf,
        /// Reason why it is damaged.
        reason: String,
    },
    /// A stored value, an artifact or a checkpoint is not what was written.
    #[error("{store} `{}` is damaged: {reason}", path.display())]
    Damaged {
        /// Of which store it is.
        store: Store,
        /// Path of its file.
        path: PathBuf,
        /// Reason why it is damaged.
        reason: String,
    },
    /// An artifact does not fit beside the others.
    #[error("an artifact of {bytes} bytes does not fit: {used} of {limit} bytes are in use")]
    FullArtifacts {
        /// Size of the value.
        bytes: u64,
        /// Size of the other values.
        used: u64,
        /// The largest permitted sum.
        limit: u64,
    },
    /// A stored value, an artifact or a checkpoint is larger than permitted, or would be.
    #[error("{store} `{name}` has {bytes} bytes, the limit is {limit} bytes")]
    Oversize {
        /// Of which store it is.
        store: Store,
        /// Its name, or its file.
        name: String,
        /// Size of the artifact.
        bytes: u64,
        /// The largest permitted size.
        limit: u64,
    },
    /// A key, or the name of a run, is longer than permitted.
    #[error("the name of a {store} has {bytes} bytes, the limit is {limit} bytes")]
    LongKey {
        /// Of which store it is.
        store: Store,
        /// Length of the key.
        bytes: usize,
        /// The longest permitted name.
        limit: usize,
    },
    /// A checkpoint was written by a newer version.
    #[error(
        "checkpoint {number} of run `{run}` has {what} version {found}, this program reads up to version {supported}"
    )]
    NewerCheckpoint {
        /// Id of the run.
        run: RunId,
        /// Which of its checkpoints.
        number: u64,
        /// Whether the version is that of the file's `format` or of the `state` in it.
        what: &'static str,
        /// The version that it names.
        found: u64,
        /// The newest version that can be read.
        supported: u32,
    },
    /// More sessions share one artifact than permitted.
    #[error("artifact `{id}` belongs to {limit} sessions, which is the limit")]
    ManyOwners {
        /// Id of the artifact.
        id: ArtifactId,
        /// How many sessions may share one.
        limit: usize,
    },
    /// The asynchronous runtime ended before the work on a store had started.
    #[error("the store was not used: the asynchronous runtime is shutting down")]
    Stopped,
    /// The operating system refused something.
    #[error("cannot {action} {store} `{}`: {source}", path.display())]
    Io {
        /// Of which store the file is.
        store: Store,
        /// Attempted action.
        action: Action,
        /// File or directory.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
}

/// Change by another program to a session file in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Disturbance {
    /// Another file has its name.
    Replaced,
    /// No file has its name.
    Removed,
    /// Its thread of a database got lines of another program.
    Written,
    /// It was cut.
    Cut {
        /// Bytes that it had.
        from: u64,
        /// Bytes that it has.
        to: u64,
    },
    /// Something was added to it.
    Grown {
        /// Bytes that it had.
        from: u64,
        /// Bytes that it has.
        to: u64,
    },
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replaced => f.write_str("was replaced by another file"),
            Self::Removed => f.write_str("was removed"),
            Self::Written => f.write_str("was written to by another program"),
            Self::Cut { from, to } => write!(f, "was truncated from {from} to {to} bytes"),
            Self::Grown { from, to } => write!(f, "grew from {from} to {to} bytes"),
        }
    }
}

/// Store that keeps files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Store {
    /// Sessions, in files or in a database.
    Sessions,
    /// Values under keys.
    Storage,
    /// Artifacts under their hashes.
    Artifacts,
    /// Checkpoints of runs.
    Checkpoints,
}

impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sessions => "session",
            Self::Storage => "stored value",
            Self::Artifacts => "artifact",
            Self::Checkpoints => "checkpoint",
        })
    }
}

/// Action on a file that the operating system refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Action {
    /// Opening or creating a file.
    Open,
    /// Creation of a directory.
    CreateFolder,
    /// Opening or locking the lock file.
    Lock,
    /// Listing of a directory.
    List,
    /// Reading.
    Read,
    /// Writing, or cutting off an unfinished write.
    Write,
    /// Bringing what was written to stable storage.
    Sync,
    /// Writing the file anew.
    Replace,
    /// Removing a file.
    Remove,
    /// Writing a session file again that was removed while it was in use.
    PutBack,
}

impl Action {
    fn kind(self) -> &'static str {
        match self {
            Self::Open | Self::CreateFolder => "session.open_failed",
            Self::Lock => "session.lock_failed",
            Self::Read | Self::List => "session.read_failed",
            Self::Write => "session.write_failed",
            Self::Sync => "session.sync_failed",
            Self::Replace => "session.replace_failed",
            Self::Remove => "session.not_removed",
            Self::PutBack => "session.removed",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "open",
            Self::CreateFolder => "create directory of",
            Self::Lock => "lock",
            Self::List => "list directory of",
            Self::Read => "read",
            Self::Write => "write to",
            Self::Sync => "sync",
            Self::Replace => "replace",
            Self::Remove => "remove",
            Self::PutBack => "restore the removed",
        })
    }
}

impl Error {
    /// A stable code, for example `session.corrupt_line`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Locked { .. } => "session.locked",
            Self::NotFound { .. } => "session.not_found",
            Self::Exists { .. } => "session.exists",
            Self::UnknownEntry { .. } => "session.unknown_entry",
            Self::NoThread { .. } => "session.no_thread",
            Self::NoSqlite { .. } => "session.no_sqlite",
            Self::NoPostgres => "session.no_postgres",
            Self::PostgresUrl { .. } => "session.postgres_url",
            Self::Sealed { .. } => "session.encrypted",
            Self::WrongKey { .. } => "session.wrong_key",
            Self::NotSealed { .. } => "session.not_encrypted",
            Self::KeyFile { .. } => "session.key_file",
            Self::NotAFile { .. } => "session.not_a_file",
            Self::Disturbed { .. } => "session.disturbed",
            Self::NewerVersion { .. } => "session.newer_version",
            Self::WrongFormat { .. } => "session.wrong_format",
            Self::CorruptLine { .. } => "session.corrupt_line",
            Self::LineTooLong { .. } => "session.line_too_long",
            Self::TooLarge { .. } => "session.too_large",
            Self::Unstorable { .. } => "session.unstorable",
            Self::Damaged { store, .. } => by_store(
                *store,
                ["storage.corrupt", "artifact.corrupt", "checkpoint.corrupt", "session.corrupt"],
            ),
            Self::Oversize { store, .. } => by_store(
                *store,
                ["storage.too_large", "artifact.too_large", "checkpoint.too_large", "session.too_large"],
            ),
            Self::LongKey { store, .. } => by_store(
                *store,
                ["storage.long_key", "artifact.long_key", "checkpoint.long_key", "session.long_name"],
            ),
            Self::FullArtifacts { .. } => "artifact.full",
            Self::NewerCheckpoint { .. } => "checkpoint.newer_version",
            Self::ManyOwners { .. } => "artifact.many_owners",
            Self::Stopped => "session.stopped",
            Self::Io { store: Store::Sessions, action, .. } => action.kind(),
            Self::Io { store, .. } => {
                by_store(*store, ["storage.io", "artifact.io", "checkpoint.io", "session.io"])
            }
        }
    }

    /// Suggested fix.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Locked { .. } => {
                "wait until that process is done, end it, or use another session file; the lock is freed when its owner ends"
            }
            Self::NotFound { .. } => "check the path, or permit the session to be created",
            Self::Exists { .. } => "choose another path, or remove that file first",
            Self::UnknownEntry { .. } => "`harness session show` prints the ids of the entries",
            Self::NoThread { .. } => {
                "name the thread behind `#`: `DATABASE#THREAD`; `harness session list DATABASE` lists them"
            }
            Self::NoSqlite { .. } => "use a build with the feature `sqlite`, or a session file",
            Self::NoPostgres => "use a build with the feature `postgres`, or files",
            Self::PostgresUrl { .. } => {
                "write it as `postgres://HOST:PORT/DATABASE?user=NAME`; the password is read from `PGPASSWORD`"
            }
            Self::Sealed { .. } => {
                "pass the file of that key with `--session-key` (a build with the feature `encryption`)"
            }
            Self::WrongKey { .. } => "pass the file of the session's key with `--session-key`",
            Self::NotSealed { .. } => {
                "omit the key, or copy the session into an encrypted one with `harness session fork`"
            }
            Self::KeyFile { .. } => "make a key file with `harness session key FILE`",
            Self::NotAFile { .. } => "name a regular file, or one that does not exist yet",
            Self::Disturbed { .. } => {
                "entries that were stored in it may be lost; end the program that changes it, then open the session again"
            }
            Self::NewerVersion { .. } => {
                "use the version of harness that wrote it, or a newer one; the file was left as it is"
            }
            Self::WrongFormat { .. } => "use another session file; this one was left as it is",
            Self::CorruptLine { .. } => {
                "`harness session repair` moves such lines to a separate file; the session is unchanged"
            }
            Self::LineTooLong { .. } => {
                "raise the line limit, or store large data elsewhere and refer to it; the file was left as it is"
            }
            Self::TooLarge { .. } => "raise the size limit, or start a new session",
            Self::Unstorable { .. } => "correct the message; nothing was written",
            Self::Damaged { .. } => "remove the file, or put a good copy in its place; it was left as it is",
            Self::Oversize { .. } => "raise the limit of the store, or store less",
            Self::FullArtifacts { .. } => "remove artifacts, or raise `total_bytes`",
            Self::LongKey { .. } => "use a shorter name",
            Self::NewerCheckpoint { .. } => {
                "use the version of harness that wrote it, or a newer one; the checkpoints were left as they are"
            }
            Self::Stopped => "keep the runtime until everything is stored",
            Self::ManyOwners { .. } => "remove the artifact, or purge those that have expired",
            Self::Io { source, .. } => io_hint(source.kind()),
        }
    }
}

fn by_store(store: Store, [storage, artifacts, checkpoints, sessions]: [&'static str; 4]) -> &'static str {
    match store {
        Store::Storage => storage,
        Store::Artifacts => artifacts,
        Store::Checkpoints => checkpoints,
        Store::Sessions => sessions,
    }
}

fn io_hint(kind: io::ErrorKind) -> &'static str {
    use io::ErrorKind as K;
    #[expect(clippy::wildcard_enum_match_arm, reason = "the standard library's list is open")]
    match kind {
        K::StorageFull | K::QuotaExceeded => {
            "free some space; what was acknowledged is safe, and the next append tries again"
        }
        K::ResourceBusy => "end that process, or try again",
        K::PermissionDenied | K::ReadOnlyFilesystem => {
            "check the permissions of the file and its directory, or use a different path"
        }
        K::NotFound | K::NotADirectory => "check that the directory exists",
        K::IsADirectory => "pass a file, not a directory",
        K::Unsupported => "use a file system with file locks; some network file systems have none",
        _ => "check the disk and try again; what was acknowledged is not touched",
    }
}

impl From<&Error> for SessionError {
    /// Converts the error for the port: code, text and hint.
    fn from(error: &Error) -> Self {
        Self::new(error.kind(), format!("{error} ({})", error.hint()))
    }
}

impl From<Error> for SessionError {
    fn from(error: Error) -> Self {
        Self::from(&error)
    }
}

impl From<Error> for StorageError {
    /// Converts the error for the port: code, text and hint.
    fn from(error: Error) -> Self {
        Self::new(error.kind(), format!("{error} ({})", error.hint()))
    }
}

struct InUseBy<'a>(Option<&'a Owner>);

impl fmt::Display for InUseBy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(owner) => owner.fmt(f),
            None => f.write_str("another process"),
        }
    }
}
