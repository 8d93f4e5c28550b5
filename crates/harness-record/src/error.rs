//! Errors of record, recording and suite files.

use std::io;
use std::path::{Path, PathBuf};

use harness_diagnostics::Diagnostic;

/// Kind of a file that this crate reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::Display)]
#[non_exhaustive]
pub enum RecordFile {
    /// A run record.
    #[strum(to_string = "run record")]
    Record,
    /// A recording of model traffic.
    #[strum(to_string = "recording")]
    Recording,
    /// A regression suite.
    #[strum(to_string = "regression suite")]
    Suite,
}

/// Error of a run record, a recording of model traffic or a regression suite. The text names file, place and value;
/// [`RecordError::hint`] suggests a fix.
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
    /// A file could not be read or written.
    #[error("cannot {action} {file} `{}`: {source}", path.display())]
    Io {
        /// Kind of the file.
        file: RecordFile,
        /// `read`, `create` or `write`.
        action: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The content of a file is invalid.
    #[error("{file} `{}`{}: {reason}", path.display(), line.map(|line| format!(", line {line}")).unwrap_or_default())]
    Invalid {
        /// Kind of the file.
        file: RecordFile,
        /// Path of the file.
        path: PathBuf,
        /// Line in a recording, starting at 1.
        line: Option<usize>,
        /// Problem in the content.
        reason: String,
    },
    /// The version of a file is not supported.
    #[error("{file} `{}` has version {found}, this program reads version {supported}", path.display())]
    Version {
        /// Kind of the file.
        file: RecordFile,
        /// Path of the file.
        path: PathBuf,
        /// Version of the file.
        found: u64,
        /// Supported version.
        supported: u32,
    },
    /// A file, or a line of a recording, exceeds its limit.
    #[error("{file} `{}` is too large: its {part} exceeds {limit} bytes", path.display())]
    Size {
        /// Kind of the file.
        file: RecordFile,
        /// Path of the file.
        path: PathBuf,
        /// `content` or `longest line`.
        part: &'static str,
        /// Limit in bytes.
        limit: u64,
    },
    /// A file is not a regression suite.
    #[error("{0}")]
    Suite(Box<Diagnostic>),
    /// A replay ended with unused exchanges.
    #[error("recording `{}` has {unused} unused of {total} exchanges, first unused: {first}", path.display())]
    Unused {
        /// Path of the recording.
        path: PathBuf,
        /// Number of unused exchanges.
        unused: usize,
        /// Number of exchanges.
        total: usize,
        /// Number of the first unused exchange, starting at 1.
        first: usize,
    },
}

impl RecordError {
    pub(crate) fn invalid(file: RecordFile, path: &Path, reason: impl Into<String>) -> Self {
        Self::Invalid { file, path: path.to_owned(), line: None, reason: reason.into() }
    }

    /// Stable code, for example `record.not_a_record`.
    pub fn kind(&self) -> &'static str {
        use RecordFile as F;
        match self {
            Self::Io { file: F::Record, action: "read", .. } => "record.read_failed",
            Self::Io { file: F::Record, .. } => "record.write_failed",
            Self::Io { file: F::Recording, .. } => "recording.io",
            Self::Io { file: F::Suite, .. } => "suite.read_failed",
            Self::Invalid { file: F::Record, .. } => "record.not_a_record",
            Self::Invalid { file: F::Recording, .. } => "recording.line",
            Self::Invalid { file: F::Suite, .. } => "suite.not_a_suite",
            Self::Version { file: F::Record, .. } => "record.newer_version",
            Self::Version { file: F::Recording, .. } => "recording.version",
            Self::Version { file: F::Suite, .. } => "suite.version",
            Self::Size { file: F::Record, .. } => "record.size",
            Self::Size { file: F::Recording, .. } => "recording.size",
            Self::Size { file: F::Suite, .. } => "suite.size",
            Self::Suite(diagnostic) => diagnostic.code,
            Self::Unused { .. } => "recording.unused",
        }
    }

    /// Suggested fix.
    pub fn hint(&self) -> &'static str {
        use RecordFile as F;
        match self {
            Self::Io { action, source, .. } => io_hint(action, source.kind()),
            Self::Invalid { file: F::Record, .. } => "pass a file that `--run-record` or a FileSink wrote",
            Self::Invalid { file: F::Recording, .. } => {
                "record it again, or restore the file from version control"
            }
            Self::Suite(_) | Self::Invalid { file: F::Suite, .. } => {
                "see the cookbook page on records for the format of a suite"
            }
            Self::Version { file: F::Recording, .. } => {
                "update the program, or record it again with this one"
            }
            Self::Version { .. } => "use the version of harness that wrote it, or a newer one",
            Self::Size { .. } => "record a shorter run",
            Self::Unused { .. } => "the run ended earlier than the recorded one; record it again",
        }
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "most kinds say nothing about what to do")]
fn io_hint(action: &str, kind: io::ErrorKind) -> &'static str {
    use io::ErrorKind as K;
    match kind {
        K::StorageFull | K::QuotaExceeded => "free some space",
        K::PermissionDenied | K::ReadOnlyFilesystem => {
            "check the permissions of the file and its directory, or use a different path"
        }
        K::NotFound if action == "read" => "check the path",
        K::NotFound | K::NotADirectory => "check that the directory exists",
        K::IsADirectory => "pass a file, not a directory",
        _ => "check the disk and retry",
    }
}
