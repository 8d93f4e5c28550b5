//! Every change to the disk goes through here, so that tests can break each of them.

use std::fmt::Debug;
use std::fs::{self, File, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use tempfile::NamedTempFile;

/// How much of a file is moved at a time.
const CHUNK: usize = 64 * 1024;

/// Random characters in the name of a file that is not complete yet.
const RANDOM: usize = 6;

/// A change to the disk.
#[cfg_attr(not(feature = "testing"), expect(unreachable_pub, reason = "only tests see changes"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// A file is opened for writing, and made when there is none.
    Open,
    /// Bytes are added to a file.
    Write {
        /// Number of bytes.
        bytes: usize,
    },
    /// A file is cut to a length.
    Cut,
    /// Bytes that are in a file already are written again, because a sync of them has failed.
    Rewrite,
    /// A file's content is brought to stable storage.
    Sync,
    /// A file is put in another's place.
    Rename,
    /// A file is removed.
    Remove,
    /// Sync of a directory's list of files.
    SyncFolder,
}

/// Outcome of a change to the disk.
#[derive(Debug)]
#[cfg_attr(not(feature = "testing"), expect(dead_code, reason = "only tests break the disk"))]
pub(crate) enum Fate {
    /// It is done.
    Done,
    /// The first bytes are written (all of them when there are fewer), then it fails.
    Torn(usize, io::Error),
    /// It is done, and yet reported as failed.
    DoneThen(io::Error),
}

/// Decides the outcome of each change.
pub(crate) trait Probe: Debug + Send + Sync {
    fn step(&self, change: Change) -> Fate;

    /// An append begins to wait for a batch that is on its way.
    fn waits(&self);
}

/// The disk; in tests, one that fails on request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    pub(crate) probe: Option<Arc<dyn Probe>>,
}

impl Disk {
    /// Opens a file for reading and appending; one that it makes can be read by its owner alone.
    pub(crate) fn open_to_append(&self, path: &Path) -> io::Result<File> {
        let options = &mut fs::OpenOptions::new();
        self.whole(Change::Open, || options.read(true).append(true).create(true).mode(0o600).open(path))
    }

    /// Adds bytes at the end of a file, which is made if there is none, and brings them to stable storage.
    pub(crate) fn add(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let file = self.open_to_append(path)?;
        (&file).write_all(bytes)?;
        file.sync_all()?;
        File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
    }

    /// Writes at the end of a file that is open for appending: one call, unless the system takes less.
    pub(crate) fn write(&self, mut file: &File, bytes: &[u8]) -> io::Result<()> {
        match self.fate(Change::Write { bytes: bytes.len() }) {
            Fate::Done => file.write_all(bytes),
            Fate::Torn(most, error) => {
                file.write_all(bytes.get(..most).unwrap_or(bytes))?;
                Err(error)
            }
            Fate::DoneThen(error) => file.write_all(bytes).and(Err(error)),
        }
    }

    /// Cuts a file to a length.
    pub(crate) fn cut(&self, file: &File, length: u64) -> io::Result<()> {
        self.whole(Change::Cut, || file.set_len(length))
    }

    /// Brings a file's content to stable storage.
    pub(crate) fn sync(&self, file: &File) -> io::Result<()> {
        self.whole(Change::Sync, || file.sync_data())
    }

    /// Writes the bytes of a file between two places once more, so that the next sync takes them with it.
    pub(crate) fn write_again(&self, path: &Path, from: u64, to: u64) -> io::Result<()> {
        self.whole(Change::Rewrite, || {
            let file = fs::OpenOptions::new().read(true).write(true).open(path)?;
            let mut chunk = vec![0; CHUNK];
            let mut at = from;
            while at < to {
                let most = usize::try_from(to - at).unwrap_or(CHUNK).min(CHUNK);
                let bytes = chunk.get_mut(..most).unwrap_or_default();
                file.read_exact_at(bytes, at)?;
                file.write_all_at(bytes, at)?;
                at += most as u64;
            }
            Ok(())
        })
    }

    /// Syncs a directory's list of files to stable storage.
    pub(crate) fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.whole(Change::SyncFolder, || File::open(folder)?.sync_all())
    }

    /// Removes a file and returns whether it existed.
    pub(crate) fn remove(&self, path: &Path) -> io::Result<bool> {
        self.whole(Change::Remove, || match fs::remove_file(path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        })
    }

    /// Replaces or creates the file at `path`. The new file is complete and on stable storage
    /// before it appears, and `hold` receives a handle of it. Only its owner can read it, unless
    /// `permissions` are given.
    pub(crate) fn put_in_place(
        &self,
        path: &Path,
        bytes: &[u8],
        permissions: Option<Permissions>,
        hold: impl FnOnce(File) -> io::Result<()>,
    ) -> io::Result<()> {
        let named = self.unfinished(path, permissions)?;
        self.write(named.as_file(), bytes)?;
        self.sync(named.as_file())?;
        hold(named.as_file().try_clone()?)?;
        self.whole(Change::Rename, || named.persist(path).map(drop).map_err(|failed| failed.error))?;
        self.sync_folder(folder_of(path))
    }

    /// Creates the file at `path`, complete and on stable storage before it appears. An existing one is kept, and
    /// an error.
    pub(crate) fn put_new(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let named = self.unfinished(path, None)?;
        self.write(named.as_file(), bytes)?;
        self.sync(named.as_file())?;
        let persist = || named.persist_noclobber(path).map(drop).map_err(|failed| failed.error);
        self.whole(Change::Rename, persist)?;
        self.sync_folder(folder_of(path))
    }

    /// Puts the first `length` bytes of a file that was removed back at `path`, unless there is another file
    /// by then. As of [`Disk::put_in_place`].
    pub(crate) fn restore(
        &self,
        path: &Path,
        removed: &File,
        length: u64,
        hold: impl FnOnce(File) -> io::Result<()>,
    ) -> io::Result<()> {
        let named = self.unfinished(path, Some(removed.metadata()?.permissions()))?;
        let mut chunk = vec![0; CHUNK];
        let mut at = 0;
        while at < length {
            let most = usize::try_from(length - at).unwrap_or(CHUNK).min(CHUNK);
            let bytes = chunk.get_mut(..most).unwrap_or_default();
            removed.read_exact_at(bytes, at)?;
            self.write(named.as_file(), bytes)?;
            at += most as u64;
        }
        self.sync(named.as_file())?;
        hold(named.as_file().try_clone()?)?;
        let persist = || named.persist_noclobber(path).map(drop).map_err(|failed| failed.error);
        self.whole(Change::Rename, persist)?;
        self.sync_folder(folder_of(path))
    }

    /// Creates a file next to `path` under a unique name.
    fn unfinished(&self, path: &Path, permissions: Option<Permissions>) -> io::Result<NamedTempFile> {
        let mut builder = tempfile::Builder::new();
        let named =
            builder.prefix(&unfinished(path)).suffix(UNFINISHED).make_in(folder_of(path), |path| {
                let options = &mut fs::OpenOptions::new();
                options.read(true).append(true).create_new(true).mode(0o600);
                self.whole(Change::Open, || options.open(path))
            })?;
        if let Some(permissions) = permissions {
            named.as_file().set_permissions(permissions)?;
        }
        Ok(named)
    }

    fn whole<T>(&self, change: Change, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        match self.fate(change) {
            Fate::Done => act(),
            Fate::Torn(_, error) => Err(error),
            Fate::DoneThen(error) => act().and(Err(error)),
        }
    }

    /// Notifies tests that an append waits for others.
    pub(crate) fn waits(&self) {
        if let Some(probe) = &self.probe {
            probe.waits();
        }
    }

    fn fate(&self, change: Change) -> Fate {
        self.probe.as_ref().map_or(Fate::Done, |probe| probe.step(change))
    }
}

/// Directory of a file, for a path that has one.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Suffix of incomplete files. A crash may leave one behind.
const UNFINISHED: &str = ".tmp";

/// Prefix of files that will replace `path`.
fn unfinished(path: &Path) -> String {
    format!(".{}-", path.file_name().unwrap_or_default().to_string_lossy())
}

/// Whether a file was going to replace another.
pub(crate) fn is_unfinished(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let made = name.strip_prefix('.').and_then(|name| name.strip_suffix(UNFINISHED));
    made.and_then(|made| made.rsplit_once('-')).is_some_and(|(_, random)| random.len() == RANDOM)
}

/// Removes what earlier owners of the file at `path` were about to put in its place when they were killed.
pub(crate) fn sweep(path: &Path) -> io::Result<()> {
    let prefix = unfinished(path);
    for entry in fs::read_dir(folder_of(path))? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(&prefix) && is_unfinished(&entry.path()) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Creates a directory and its parents, accessible only to their owner.
pub(crate) fn create_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Adds what `path` holds from `start` on to the file `aside`, unless it is nothing but NUL bytes.
pub(crate) fn set_aside(disk: &Disk, path: &Path, start: u64, aside: &Path) -> io::Result<()> {
    let mut from = File::open(path)?;
    from.seek(SeekFrom::Start(start))?;
    let mut rest = from.take(u64::MAX);
    let mut chunk = vec![0; CHUNK];
    let mut kept: Option<File> = None;
    loop {
        let count = rest.read(&mut chunk)?;
        let bytes = chunk.get(..count).unwrap_or_default();
        if bytes.is_empty() {
            break;
        }
        if kept.is_none() && bytes.iter().any(|byte| *byte != 0) {
            kept = Some(disk.open_to_append(aside)?);
        }
        if let Some(file) = &kept {
            disk.write(file, bytes)?;
        }
    }
    kept.map_or(Ok(()), |file| disk.write(&file, b"\n"))
}
