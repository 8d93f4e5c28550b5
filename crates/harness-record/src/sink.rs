//! Sinks of records.

use std::io::{self, Write as _};
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
}

impl RecordSink for FileSink {
    async fn write(&self, record: Arc<RunRecord>) -> Result<(), RecordError> {
        store(&self.path, &text_of(&self.path, &record)?)
    }
}

/// Maximum number of records in the directory of a [`FolderSink`].
const MOST: usize = 1_000;

/// Maximum size of one record of a [`FolderSink`], and of all of them, in bytes.
const SIZES: (u64, u64) = (64 << 20, 256 << 20);

/// Sink that writes each record to a separate file in a directory, which is created if it is missing.
///
/// The files are named after the start and the id of their run, so that names sort by time. The directory keeps at most
/// 1,000 records and 256 MiB: the oldest are removed. Other files stay and do not count. A record of more than 64 MiB is
/// not written. The files are readable only by their owner. Writing uses a blocking thread of tokio.
#[derive(Clone, Debug)]
pub struct FolderSink {
    folder: PathBuf,
}

impl FolderSink {
    /// Creates a sink for `folder`, without creating the directory.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Path of the directory.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn store(&self, record: &RunRecord) -> Result<(), RecordError> {
        let path = self.folder.join(name_of(record));
        let fault = |source| fault(&path, source);
        let text = text_of(&path, record)?;
        let (one, all) = SIZES;
        if text.len() as u64 > one {
            let (file, part) = (RecordFile::Record, "content");
            return Err(RecordError::Size { file, path, part, limit: one });
        }
        std::fs::create_dir_all(&self.folder).map_err(fault)?;
        store(&path, &text)?;
        self.remove_oldest(MOST, all).map_err(fault)
    }

    /// Removes the oldest records beyond these limits.
    fn remove_oldest(&self, most: usize, bytes: u64) -> io::Result<()> {
        let mut records = Vec::new();
        for entry in std::fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if name.to_str().is_some_and(is_name)
                // A file that another process has removed is gone.
                && let Ok(found) = entry.metadata()
            {
                records.push((name, found.len()));
            }
        }
        records.sort_unstable();
        let mut left = bytes;
        let newest = records.iter().rev().take(most);
        let kept = newest.take_while(|(_, size)| left.checked_sub(*size).map(|rest| left = rest).is_some());
        let gone = records.len() - kept.count();
        for (name, _) in records.iter().take(gone) {
            match std::fs::remove_file(self.folder.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Err(_) | Ok(()) => {}
            }
        }
        Ok(())
    }
}

impl RecordSink for FolderSink {
    async fn write(&self, record: Arc<RunRecord>) -> Result<(), RecordError> {
        let sink = self.clone();
        let written = tokio::task::spawn_blocking(move || sink.store(&record)).await;
        written.unwrap_or_else(|lost| Err(fault(&self.folder, io::Error::other(lost))))
    }
}

/// Form of the start time in a file name.
const TIME: &[u8] = b"00000000T000000.000Z-";

/// File name of a record: its start and its run.
fn name_of(record: &RunRecord) -> String {
    let start: String = record.started_at.chars().filter(|c| !matches!(c, '-' | ':')).collect();
    let plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let run: String = record.run_id.chars().filter(plain).take(64).collect();
    format!("{start}-{run}.json")
}

/// Whether a file has a name of this sink.
pub(super) fn is_name(name: &str) -> bool {
    let is_form = |(form, byte): (&u8, u8)| if *form == b'0' { byte.is_ascii_digit() } else { byte == *form };
    name.len() > TIME.len()
        && name.strip_suffix(".json").is_some()
        && TIME.iter().zip(name.bytes()).all(is_form)
}

fn fault(path: &Path, source: io::Error) -> RecordError {
    RecordError::Io { file: RecordFile::Record, action: "write", path: path.to_owned(), source }
}

fn text_of(path: &Path, record: &RunRecord) -> Result<String, RecordError> {
    let text = serde_json::to_string_pretty(record).map_err(|error| fault(path, error.into()))?;
    Ok(text + "\n")
}

/// Replaces a file.
fn store(path: &Path, text: &str) -> Result<(), RecordError> {
    let fault = |source| fault(path, source);
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    // A temporary file is readable only by its owner, and stays so when it is renamed.
    let made = tempfile::NamedTempFile::new_in(parent.unwrap_or(Path::new(".")));
    // The original text names the temporary file.
    let mut file = made.map_err(|error| fault(error.kind().into()))?;
    file.write_all(text.as_bytes()).and_then(|()| file.as_file().sync_all()).map_err(fault)?;
    file.persist(path).map_err(|error| fault(error.error))?;
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(most: usize, bytes: u64, expected: &[&str]) {
        let folder = tempfile::tempdir().unwrap();
        let names = [
            "20260101T000000.001Z-run-a.json",
            "20260101T000000.002Z-run-b.json",
            "20260102T000000.000Z-run-c.json",
            "order.json",
            "20260101T000000.000Z-notes.txt",
        ];
        for name in names {
            std::fs::write(folder.path().join(name), "0123456789").unwrap();
        }
        FolderSink::new(folder.path()).remove_oldest(most, bytes).unwrap();
        let left = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut left: Vec<_> = left.map(|name| name.into_string().unwrap()).collect();
        left.retain(|name| !names[3..].contains(&name.as_str()));
        left.sort();
        assert_eq!(left, expected);
        assert!(names[3..].iter().all(|name| folder.path().join(name).exists()), "other files stay");
    }

    #[test]
    fn folder_keeps_the_newest_records_within_both_limits() {
        let [a, b, c] = [
            "20260101T000000.001Z-run-a.json",
            "20260101T000000.002Z-run-b.json",
            "20260102T000000.000Z-run-c.json",
        ];
        check(3, 30, &[a, b, c]);
        check(2, 30, &[b, c]);
        check(3, 29, &[b, c]);
        check(3, 10, &[c]);
    }
}
