//! Sinks of records.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::run_record::RunRecord;
use crate::error::{RecordError, RecordFile};

/// Maximum size of a record file in bytes.
const LONGEST: u64 = 256 << 20;

/// Sink of run records: receives the record of each run, once, even after a failure.
///
/// An error of a sink does not affect the run; it is part of the report.
pub trait RecordSink: Send + Sync {
    /// Stores a record.
    ///
    /// # Errors
    /// The record was not stored.
    fn write(&self, record: Arc<RunRecord>) -> impl Future<Output = Result<(), RecordError>> + Send;
}

harness_core::twin! {
    DynRecordSink of RecordSink {
        async fn write_boxed = write(record: Arc<RunRecord>) -> Result<(), RecordError>;
    }
}

/// Sink that writes the last record to a file.
///
/// The file is replaced atomically, and readable only by its owner. Writing blocks.
#[derive(Clone, Debug)]
pub struct FileSink {
    path: PathBuf,
}

impl FileSink {
    /// Creates a sink for `path`, without creating the file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn store(&self, record: &RunRecord) -> Result<(), RecordError> {
        let (file, action) = (RecordFile::Record, "write");
        let fault = |source| RecordError::Io { file, action, path: self.path.clone(), source };
        let mut text = serde_json::to_string_pretty(record).map_err(|error| fault(error.into()))?;
        text.push('\n');
        let parent = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        // A temporary file is readable only by its owner, and stays so when it is renamed.
        let made = tempfile::NamedTempFile::new_in(parent.unwrap_or(Path::new(".")));
        // The original text names the temporary file.
        let mut file = made.map_err(|error| fault(error.kind().into()))?;
        file.write_all(text.as_bytes()).and_then(|()| file.as_file().sync_all()).map_err(fault)?;
        file.persist(&self.path).map_err(|error| fault(error.error))?;
        Ok(())
    }
}

impl RecordSink for FileSink {
    async fn write(&self, record: Arc<RunRecord>) -> Result<(), RecordError> {
        self.store(&record)
    }
}

impl RunRecord {
    /// Reads a record file of at most 256 MiB. Blocks on the file system.
    ///
    /// # Errors
    /// Those of [`from_text`](Self::from_text), and I/O errors.
    pub fn read(path: impl Into<PathBuf>) -> Result<Self, RecordError> {
        let path = path.into();
        let text = read_bounded(&path, RecordFile::Record, LONGEST)?;
        Self::from_text(path, &text)
    }
}

/// Reads a file of at most `limit` bytes.
pub(super) fn read_bounded(path: &Path, file: RecordFile, limit: u64) -> Result<String, RecordError> {
    use std::io::Read as _;
    let fault = |source| RecordError::Io { file, action: "read", path: path.to_owned(), source };
    let mut text = String::new();
    let opened = std::fs::File::open(path).map_err(fault)?;
    opened.take(limit.saturating_add(1)).read_to_string(&mut text).map_err(fault)?;
    if text.len() as u64 > limit {
        return Err(RecordError::Size { file, path: path.to_owned(), part: "content", limit });
    }
    Ok(text)
}
