//! Why a record, a recording or a suite could not be read or written.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a run record, a recording of model traffic or a regression suite could not be read or written. The text names
/// the file, the place and the value; [`RecordError::hint`] says what to do.
///
/// ```
/// use harness_record::RunRecord;
///
/// let fault = RunRecord::from_text("run.json", "hello").unwrap_err();
/// assert_eq!(fault.kind(), "record.not_a_record");
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// A file is no run record, or one that cannot be read.
    #[error("run record `{}`: {reason}", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A run record was written by a newer version.
    #[error("run record `{}` has version {found}, this program reads up to version {supported}", path.display())]
    RecordVersion {
        /// The file.
        path: PathBuf,
        /// The version that it names.
        found: u64,
        /// The newest version that can be read.
        supported: u32,
    },
    /// A file is no regression suite.
    #[error("regression suite `{}`: {reason}", path.display())]
    Suite {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The operating system refused something.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        /// What was tried.
        action: RecordAction,
        /// The file or folder.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
    /// A recording could not be read or written.
    #[error("the recording {} could not be {action}: {source}", path.display())]
    RecordingIo {
        /// The file.
        path: PathBuf,
        /// `read`, `created` or `written`.
        action: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// A file is no recording, or one of its lines is damaged.
    #[error("{}:{line}: not a valid recording line: {reason}", path.display())]
    RecordingLine {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// A recording was written by a newer version.
    #[error("the recording {} has version {found}, this program reads up to {known}", path.display())]
    RecordingVersion {
        /// The file.
        path: PathBuf,
        /// The file's version.
        found: u64,
        /// The newest version that is known here.
        known: u64,
    },
    /// A recording, or one of its lines, is larger than its bound.
    #[error("the recording {} is too large: its {what} has more than {limit} bytes", path.display())]
    RecordingSize {
        /// The file.
        path: PathBuf,
        /// `file` or `longest line`.
        what: &'static str,
        /// The bound.
        limit: usize,
    },
    /// A replay ended before all recorded exchanges were asked for.
    #[error("the recording {} has {unused} unused of {total} exchanges, first unused: {first}", path.display())]
    RecordingUnused {
        /// The file.
        path: PathBuf,
        /// Exchanges that nothing asked for.
        unused: usize,
        /// All exchanges of the file.
        total: usize,
        /// Number of the first unused exchange, counted from 1.
        first: usize,
    },
}

/// What was tried with a file of this crate when the operating system refused it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RecordAction {
    /// Writing a run record.
    WriteRecord,
    /// Reading a run record.
    ReadRecord,
    /// Reading a regression suite.
    ReadSuite,
}

impl RecordAction {
    fn kind(self) -> &'static str {
        match self {
            Self::WriteRecord => "record.write_failed",
            Self::ReadRecord => "record.read_failed",
            Self::ReadSuite => "suite.read_failed",
        }
    }
}

impl fmt::Display for RecordAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WriteRecord => "write run record",
            Self::ReadRecord => "read run record",
            Self::ReadSuite => "read regression suite",
        })
    }
}

impl RecordError {
    /// A stable code, for example `record.not_a_record`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Record { .. } => "record.not_a_record",
            Self::RecordVersion { .. } => "record.newer_version",
            Self::Suite { .. } => "suite.not_a_suite",
            Self::Io { action, .. } => action.kind(),
            Self::RecordingIo { .. } => "recording.io",
            Self::RecordingLine { .. } => "recording.line",
            Self::RecordingVersion { .. } => "recording.version",
            Self::RecordingSize { .. } => "recording.size",
            Self::RecordingUnused { .. } => "recording.unused",
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Record { .. } => "name a file that `--run-record` or a FileSink wrote",
            Self::RecordVersion { .. } => "use the version of harness that wrote it, or a newer one",
            Self::Suite { .. } => "see the cookbook page on records for the form of a suite",
            Self::Io { action, source, .. } => io_hint(*action, source.kind()),
            Self::RecordingIo { .. } => "check the path and its permissions",
            Self::RecordingLine { .. } => "record it again, or take the file from version control",
            Self::RecordingVersion { .. } => "update the program, or record it again with this one",
            Self::RecordingSize { .. } => "record a shorter run",
            Self::RecordingUnused { .. } => "the run ended earlier than the recorded one; record it again",
        }
    }
}

fn io_hint(action: RecordAction, kind: io::ErrorKind) -> &'static str {
    use io::ErrorKind as K;
    match (kind, action) {
        (K::StorageFull | K::QuotaExceeded, _) => "free some space",
        (K::PermissionDenied | K::ReadOnlyFilesystem, _) => {
            "check who may read and write the file and its folder, or use another path"
        }
        (K::NotFound, RecordAction::ReadRecord | RecordAction::ReadSuite) => "check the path",
        (K::NotFound | K::NotADirectory, _) => "check that the folder exists and is a folder",
        (K::IsADirectory, _) => "name a file, not a folder",
        _ => "check the disk and try again",
    }
}
