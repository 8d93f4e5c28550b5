//! Every change to the disk goes through here, so that tests can break each of them.

use std::fmt::Debug;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

/// How much of a file is moved at a time.
const CHUNK: usize = 64 * 1024;

/// What becomes of a change to the disk.
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

/// Decides what becomes of each change.
pub(crate) trait Probe: Debug + Send + Sync {
    fn step(&self) -> Fate;
}

/// The disk, in tests one that breaks when told to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    pub(crate) probe: Option<Arc<dyn Probe>>,
}

impl Disk {
    /// Writes at the end of a file that is open for appending: one call, unless the system takes less.
    pub(crate) fn write(&self, mut file: &File, bytes: &[u8]) -> io::Result<()> {
        match self.fate() {
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
        self.whole(|| file.set_len(length))
    }

    /// Brings a file's content to stable storage.
    pub(crate) fn sync(&self, file: &File) -> io::Result<()> {
        self.whole(|| file.sync_data())
    }

    /// Writes the bytes of a file between two places once more, so that the next sync takes them with it.
    pub(crate) fn write_again(&self, path: &Path, from: u64, to: u64) -> io::Result<()> {
        self.whole(|| {
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

    /// Brings a folder's list of files to stable storage.
    pub(crate) fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.whole(|| File::open(folder)?.sync_all())
    }

    /// Does what puts one file in another's place.
    pub(crate) fn rename(&self, rename: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        self.whole(rename)
    }

    fn whole(&self, act: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        match self.fate() {
            Fate::Done => act(),
            Fate::Torn(_, error) => Err(error),
            Fate::DoneThen(error) => act().and(Err(error)),
        }
    }

    fn fate(&self) -> Fate {
        self.probe.as_ref().map_or(Fate::Done, |probe| probe.step())
    }
}

/// Opens a file for appending; one that it makes can be read by its owner alone.
pub(crate) fn open_to_append(path: &Path) -> io::Result<File> {
    fs::OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

/// Makes a file that is complete and on stable storage before it has its name; one that is there already stays.
pub(crate) fn new_file(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    create_folder(folder)?;
    let mut file = tempfile::Builder::new().prefix(".session-").suffix(".tmp").tempfile_in(folder)?;
    write(file.as_file_mut())?;
    file.as_file().sync_all()?;
    file.persist_noclobber(path).map_err(|failed| failed.error)?;
    File::open(folder)?.sync_all()
}

/// Makes a folder and those above it; the ones it makes can be entered by their owner alone.
pub(crate) fn create_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Adds what `path` holds from `start` on to the file `aside`, unless it is nothing but NUL bytes.
pub(crate) fn set_aside(path: &Path, start: u64, aside: &Path) -> io::Result<()> {
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
            kept = Some(open_to_append(aside)?);
        }
        if let Some(file) = &mut kept {
            file.write_all(bytes)?;
        }
    }
    kept.map_or(Ok(()), |mut file| file.write_all(b"\n"))
}
