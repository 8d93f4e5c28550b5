//! Where records go.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::run_record::RunRecord;
use crate::error::{RecordAction, RecordError};

/// Bytes of a record file that are read, at most.
const LONGEST: u64 = 256 << 20;

/// Takes the record of each run, once, whether the run succeeded or failed.
///
/// A sink that fails never changes the run; whoever ran it is told.
pub trait RecordSink: Send + Sync {
    /// Keeps one record.
    ///
    /// # Errors
    /// When it could not be kept.
    fn write(&self, record: Arc<RunRecord>) -> impl Future<Output = Result<(), RecordError>> + Send;
}

harness_core::twin! {
    DynRecordSink of RecordSink {
        async fn write_boxed = write(record: Arc<RunRecord>) -> Result<(), RecordError>;
    }
}

/// Writes the record of each run to one file, in place of an earlier one.
///
/// The file appears whole or not at all, and its owner alone can read it. Writing blocks; a record is
/// written when its run is over.
#[derive(Clone, Debug)]
pub struct FileSink {
    path: PathBuf,
}

impl FileSink {
    /// A sink that writes to `path`. Nothing is touched before the first record.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn store(&self, record: &RunRecord) -> Result<(), RecordError> {
        let fault =
            |source| RecordError::Io { action: RecordAction::WriteRecord, path: self.path.clone(), source };
        let mut text = serde_json::to_string_pretty(record).map_err(|error| fault(error.into()))?;
        text.push('\n');
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        // Temporary files of this library are readable by their owner alone, and so is what they become.
        let made = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")));
        // The library's text names the temporary file, which says nothing to anybody.
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
    /// As [`from_text`](Self::from_text), and when the file cannot be read.
    pub fn read(path: impl Into<PathBuf>) -> Result<Self, RecordError> {
        let path = path.into();
        let text = read_bounded(&path, RecordAction::ReadRecord, LONGEST)?;
        Self::from_text(path, &text)
    }
}

/// The text of a file that is no longer than `longest` bytes.
pub(super) fn read_bounded(path: &Path, action: RecordAction, longest: u64) -> Result<String, RecordError> {
    use std::io::Read as _;
    let fault = |source| RecordError::Io { action, path: path.to_owned(), source };
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(fault)?;
    file.take(longest.saturating_add(1)).read_to_string(&mut text).map_err(fault)?;
    if text.len() as u64 > longest {
        let reason = format!("it is longer than {longest} bytes");
        return Err(RecordError::Record { path: path.to_owned(), reason });
    }
    Ok(text)
}
