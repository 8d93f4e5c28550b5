//! Sources of stored records.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use harness_core::ThreadId;
use parking_lot::Mutex;
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};

use super::run_record::RunRecord;
use super::sink::is_name;
use crate::error::{RecordError, RecordFile};

/// Maximum number of a thread's records.
const MOST: usize = 200;

/// Maximum size of a thread's records, and of those that stay in memory, in bytes of their files.
const BYTES: u64 = 64 << 20;

/// Maximum size of the part of a file that names its thread.
const HEAD: u64 = 64 << 10;

/// Stored records of one thread.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ThreadRecords {
    /// Newest records, in the order of their starts.
    pub records: Vec<Arc<RunRecord>>,
    /// Number of older records that are left out.
    pub omitted: usize,
    /// Number of files that cannot be read, or are not valid records.
    pub invalid: usize,
}

/// Source of the records that a [`RecordSink`](super::RecordSink) stored, also in an earlier process.
pub trait RecordSource: Send + Sync {
    /// Returns the newest records of a thread.
    ///
    /// # Errors
    /// The storage cannot be read.
    fn of_thread(&self, thread: &ThreadId)
    -> impl Future<Output = Result<ThreadRecords, RecordError>> + Send;
}

harness_core::twin! {
    DynRecordSource of RecordSource {
        async fn of_thread_boxed = of_thread(thread: &'a ThreadId) -> Result<ThreadRecords, RecordError>;
    }
}

/// Source of the records in the directory of a [`FolderSink`](super::FolderSink): the last 200 of a thread, of at most
/// 64 MiB. Other files are ignored, and a missing directory has no records.
///
/// Clones share an index of the directory and the records that were read last, within 64 MiB. Reading uses a blocking
/// thread of tokio.
///
/// ```
/// use harness_record::{FolderSource, RecordSource};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), harness_record::RecordError> {
/// let source = FolderSource::new("no/such/records");
/// assert!(source.of_thread(&"ada".into()).await?.records.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct FolderSource {
    folder: PathBuf,
    index: Arc<Mutex<Index>>,
}

/// Known files of a directory. A file never changes.
#[derive(Debug, Default)]
struct Index {
    /// Threads of the files, by name; `None` for a file without a thread.
    threads: HashMap<String, Option<ThreadId>>,
    /// Records that were read last, with the sizes of their files.
    read: VecDeque<(String, u64, Arc<RunRecord>)>,
}

impl FolderSource {
    /// Creates a source of the records in `folder`.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), index: Arc::default() }
    }

    fn read(&self, thread: &ThreadId) -> Result<ThreadRecords, RecordError> {
        let names = names(&self.folder)?;
        let mut index = self.index.lock();
        index.update(&self.folder, names);
        let mut names = index.of_thread(thread);
        let (mut found, mut bytes) = (ThreadRecords::default(), 0);
        for _ in 0..MOST {
            let Some(name) = names.pop() else { break };
            // A file that was removed in the meantime is gone.
            let Ok(size) = std::fs::metadata(self.folder.join(&name)).map(|file| file.len()) else {
                continue;
            };
            bytes += size;
            if bytes > BYTES {
                names.push(name);
                break;
            }
            match index.record(&self.folder, name, size) {
                Ok(record) => found.records.push(record),
                Err(_) => found.invalid += 1,
            }
        }
        found.records.reverse();
        found.omitted = names.len();
        Ok(found)
    }
}

impl RecordSource for FolderSource {
    async fn of_thread(&self, thread: &ThreadId) -> Result<ThreadRecords, RecordError> {
        let (source, thread) = (self.clone(), thread.clone());
        let read = tokio::task::spawn_blocking(move || source.read(&thread)).await;
        read.unwrap_or_else(|lost| Err(fault(&self.folder, io::Error::other(lost))))
    }
}

impl Index {
    /// Adds new files, and forgets those that are gone.
    fn update(&mut self, folder: &Path, names: Vec<String>) {
        let mut known = std::mem::take(&mut self.threads);
        for name in names {
            let thread = known.remove(&name).unwrap_or_else(|| thread_of(&folder.join(&name)));
            self.threads.insert(name, thread);
        }
        self.read.retain(|(name, ..)| self.threads.contains_key(name));
    }

    /// Names of the files of a thread, by time.
    fn of_thread(&self, thread: &ThreadId) -> Vec<String> {
        let of_thread = self.threads.iter().filter(|(_, of)| of.as_ref() == Some(thread));
        let mut names: Vec<String> = of_thread.map(|(name, _)| name.clone()).collect();
        names.sort_unstable();
        names
    }

    /// The record of a file of this size.
    fn record(&mut self, folder: &Path, name: String, size: u64) -> Result<Arc<RunRecord>, RecordError> {
        if let Some((.., record)) = self.read.iter().find(|(known, ..)| *known == name) {
            return Ok(Arc::clone(record));
        }
        let record = Arc::new(RunRecord::read(folder.join(&name))?);
        self.read.push_back((name, size, Arc::clone(&record)));
        let mut bytes: u64 = self.read.iter().map(|(_, size, _)| size).sum();
        while bytes > BYTES {
            let Some((_, size, _)) = self.read.pop_front() else { break };
            bytes = bytes.saturating_sub(size);
        }
        Ok(record)
    }
}

/// Names of the records in a directory.
fn names(folder: &Path) -> Result<Vec<String>, RecordError> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(fault(folder, error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(|error| fault(folder, error))?.file_name();
        names.extend(name.to_str().filter(|name| is_name(name)).map(str::to_owned));
    }
    Ok(names)
}

/// Thread of a record, from the start of its file; `None` for a record without one, and for any other file.
fn thread_of(path: &Path) -> Option<ThreadId> {
    let file = File::open(path).ok()?;
    let mut thread = None;
    let mut json = serde_json::Deserializer::from_reader(BufReader::new(file.take(HEAD)));
    // The rest of the file is not read, which is an error of its own.
    let _ = json.deserialize_map(Head(&mut thread));
    thread
}

/// Start of a record up to its thread.
struct Head<'a>(&'a mut Option<ThreadId>);

impl<'de> Visitor<'de> for Head<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a run record")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == "threadId" {
                *self.0 = Some(map.next_value()?);
                break;
            }
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

fn fault(path: &Path, source: io::Error) -> RecordError {
    RecordError::Io { file: RecordFile::Record, action: "read", path: path.to_owned(), source }
}
