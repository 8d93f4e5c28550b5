//! Records as files of a folder.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::record::ContinuationRecord;
use super::store::{ContinuationStore, StoreError, belongs_to, check_revision, oldest_first};
use crate::blocking;

/// Bytes of a record, at most.
const LONGEST: u64 = 4 << 20;

/// Records as JSON files of a folder, one each. A file appears whole or not at all; writers of several
/// processes take turns over a lock file beside them.
///
/// Reading a session's records reads all files of the folder: remove what is over with
/// [`ContinuationStore::delete`]. Files are read and written, and locks waited for, on a blocking thread of
/// the tokio runtime; in place when there is none.
#[derive(Clone, Debug)]
pub struct FileContinuations {
    folder: PathBuf,
}

impl FileContinuations {
    /// The records of a folder, which is made when there is none.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let folder = folder.into();
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        made.map_err(|source| refused("make the folder", &folder, source))?;
        Ok(Self { folder })
    }

    fn path(&self, id: &str) -> PathBuf {
        let mut name = String::with_capacity(id.len() + 5);
        for byte in id.bytes() {
            if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') {
                name.push(char::from(byte));
            } else {
                let _ = write!(name, "%{byte:02x}");
            }
        }
        self.folder.join(name + ".json")
    }

    /// Held until it is dropped.
    fn lock(&self) -> Result<File, StoreError> {
        let path = self.folder.join("lock");
        let mut options = fs::OpenOptions::new();
        let opened = options.create(true).truncate(false).write(true).mode(0o600).open(&path);
        let locked = opened.and_then(|file| file.lock().map(|()| file));
        locked.map_err(|source| refused("lock", &path, source))
    }

    fn write(&self, record: &ContinuationRecord) -> Result<(), StoreError> {
        let path = self.path(&record.id);
        let bytes = serde_json::to_vec(record).map_err(|fault| unreadable(&path, fault.to_string()))?;
        if bytes.len() as u64 > LONGEST {
            return Err(unreadable(
                &path,
                format!("it would have {} bytes, the limit is {LONGEST}", bytes.len()),
            ));
        }
        let written = tempfile::NamedTempFile::new_in(&self.folder).and_then(|mut file| {
            file.write_all(&bytes)?;
            file.as_file().sync_data()?;
            file.persist(&path).map_err(|fault| fault.error)?;
            File::open(&self.folder)?.sync_all()
        });
        written.map_err(|source| refused("write", &path, source))
    }
}

fn read(path: &Path) -> Result<Option<ContinuationRecord>, StoreError> {
    let mut bytes = Vec::new();
    match File::open(path).and_then(|file| file.take(LONGEST + 1).read_to_end(&mut bytes)) {
        Ok(_) => {}
        Err(fault) if fault.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(refused("read", path, source)),
    }
    if bytes.len() as u64 > LONGEST {
        return Err(unreadable(path, format!("it is longer than {LONGEST} bytes")));
    }
    serde_json::from_slice(&bytes).map(Some).map_err(|fault| unreadable(path, fault.to_string()))
}

fn refused(action: &'static str, path: &Path, source: io::Error) -> StoreError {
    StoreError::Io { action, path: path.to_owned(), source }
}

fn unreadable(path: &Path, reason: String) -> StoreError {
    StoreError::Unreadable { path: path.to_owned(), reason }
}

impl FileContinuations {
    fn put_now(&self, record: &ContinuationRecord) -> Result<(), StoreError> {
        let _lock = self.lock()?;
        check_revision(read(&self.path(&record.id))?.as_ref(), record)?;
        self.write(record)
    }

    fn list(&self, session: &str) -> Result<Vec<ContinuationRecord>, StoreError> {
        let listed = fs::read_dir(&self.folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let listed = listed.map_err(|source| refused("read", &self.folder, source))?;
        let mut found = Vec::new();
        for path in listed.into_iter().map(|entry| entry.path()) {
            if path.extension().is_some_and(|extension| extension == "json")
                && let Some(record) = read(&path)?
                && belongs_to(&record, session)
            {
                found.push(record);
            }
        }
        oldest_first(&mut found);
        Ok(found)
    }

    fn delete_now(&self, id: &str) -> Result<bool, StoreError> {
        let path = self.path(id);
        let _lock = self.lock()?;
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(fault) if fault.kind() == ErrorKind::NotFound => Ok(false),
            Err(source) => Err(refused("remove", &path, source)),
        }
    }

    async fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let store = self.clone();
        blocking::run(move || work(&store)).await.map_err(|_| StoreError::Stopped)?
    }
}

impl ContinuationStore for FileContinuations {
    async fn get(&self, id: &str) -> Result<Option<ContinuationRecord>, StoreError> {
        let path = self.path(id);
        self.aside(move |_| read(&path)).await
    }

    async fn put(&self, record: ContinuationRecord) -> Result<(), StoreError> {
        self.aside(move |store| store.put_now(&record)).await
    }

    async fn of_session(&self, session: &str) -> Result<Vec<ContinuationRecord>, StoreError> {
        let session = session.to_owned();
        self.aside(move |store| store.list(&session)).await
    }

    async fn delete(&self, id: &str) -> Result<bool, StoreError> {
        let id = id.to_owned();
        self.aside(move |store| store.delete_now(&id)).await
    }
}
