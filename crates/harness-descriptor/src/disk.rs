//! Files on disk: what is opened is checked, and prompts are read side by side.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::iter;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use harness_diagnostics::decode_lossy;

use crate::error::Fault;
use crate::limits::Limits;
use crate::materialize::PromptRef;
use crate::paths::is_inside;

/// An open regular file and where it really lies.
///
/// The path is that of the file which was opened, whatever a link on the way to it says now: a
/// link that is swapped between the check and the reading changes nothing.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) real: PathBuf,
    file: File,
    length: u64,
}

/// Reason for not reading an open file.
#[derive(Debug)]
pub(crate) enum ReadFault {
    Io(io::Error),
    /// It has at least so many bytes.
    TooLarge(u64),
}

impl Opened {
    /// Opens a regular file, following links. Directories, pipes and devices are rejected and never
    /// block.
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        let file = open_without_waiting(path)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        Ok(Self { real: real_path(&file, path)?, file, length: metadata.len() })
    }

    /// Reads all of it, at most `limit` bytes.
    pub(crate) fn read(self, limit: u64) -> Result<Vec<u8>, ReadFault> {
        // One byte more shows whether the file has grown beyond the limit; another one is the room
        // for the line end that a YAML text gets.
        let room = usize::try_from(self.length.min(limit)).unwrap_or(0) + 2;
        let mut bytes = Vec::with_capacity(room);
        self.file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(ReadFault::Io)?;
        let actual = bytes.len() as u64;
        if actual > limit { Err(ReadFault::TooLarge(actual.max(self.length))) } else { Ok(bytes) }
    }
}

#[cfg(unix)]
fn open_without_waiting(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;

    // A pipe without a writer would hold the call up; for regular files the flags mean nothing.
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)
}

#[cfg(not(unix))]
fn open_without_waiting(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).open(path)
}

/// The path of an open file without links.
fn real_path(file: &File, path: &Path) -> io::Result<PathBuf> {
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd as _;

        if let Ok(real) = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())) {
            return Ok(real);
        }
    }
    let real = fs::canonicalize(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;

        let (opened, named) = (file.metadata()?, fs::symlink_metadata(&real)?);
        if (opened.dev(), opened.ino()) != (named.dev(), named.ino()) {
            return Err(io::Error::other("another file took its place while it was opened"));
        }
    }
    Ok(real)
}

/// The texts of all prompt files of a descriptor, each read once.
#[derive(Debug)]
pub(crate) struct PromptFiles {
    texts: HashMap<PathBuf, Result<PromptText, Missing>>,
}

/// The text of a prompt file.
#[derive(Clone, Debug)]
pub(crate) struct PromptText {
    pub(crate) text: Arc<str>,
    /// Whether some bytes were not UTF-8 and became U+FFFD.
    pub(crate) lossy: bool,
}

/// Reason for a prompt file without text.
#[derive(Debug)]
enum Missing {
    /// It could not be read; the error is there for the first who asks.
    Io(Option<io::Error>, io::ErrorKind),
    Outside(String),
    TooLarge {
        limit: u64,
        actual: u64,
    },
    /// The files before it are too large together.
    Budget {
        limit: u64,
        actual: u64,
    },
}

/// Below this number of files, starting threads costs more than it gives.
const FILES_PER_THREAD: usize = 24;
/// More files at once would only wait for the same disk.
const MAX_THREADS: usize = 8;

impl PromptFiles {
    /// Reads the files of all references, several at once if there are many.
    ///
    /// Errors are kept for the reference that requests the file, so that their order does not
    /// depend on the order of reading.
    pub(crate) fn read<'a>(
        prompts: impl Iterator<Item = &'a PromptRef>,
        real_root: &Path,
        limits: &Limits,
    ) -> Self {
        let mut known = HashSet::new();
        let paths = prompts.map(|prompt| &prompt.resolved).filter(|path| known.insert(*path));
        let paths: Vec<PathBuf> = paths.cloned().collect();
        let threads = thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
        let helpers = threads.min(paths.len() / FILES_PER_THREAD).saturating_sub(1);
        let job = Arc::new(Job {
            paths,
            next: AtomicUsize::new(0),
            real_root: real_root.to_owned(),
            limits: limits.clone(),
            read: AtomicU64::new(0),
        });
        let (sender, receiver) = mpsc::channel();
        for _ in 0..helpers {
            let (job, sender) = (Arc::clone(&job), sender.clone());
            // A thread that cannot be started leaves its share to the others.
            drop(thread::Builder::new().spawn(move || {
                while let Some(done) = job.step() {
                    // Without a receiver nobody waits any more.
                    if sender.send(done).is_err() {
                        break;
                    }
                }
            }));
        }
        drop(sender);
        let mut texts = HashMap::with_capacity(job.paths.len());
        // This thread takes part. A helper that was never given the processor took no file, so
        // nothing waits for it: only files that a helper is reading are waited for.
        texts.extend(iter::from_fn(|| job.step()));
        while texts.len() < job.paths.len()
            && let Ok((path, text)) = receiver.recv()
        {
            texts.insert(path, text);
        }
        Self { texts }
    }

    /// The text of a prompt.
    pub(crate) fn text(&mut self, prompt: &PromptRef) -> Result<PromptText, Fault> {
        let missing = match self.texts.get_mut(&prompt.resolved) {
            Some(Ok(text)) => return Ok(text.clone()),
            Some(Err(missing)) => missing,
            None => &mut Missing::of(io::ErrorKind::NotFound.into()),
        };
        Err(match missing {
            Missing::Io(error, kind) => Fault::Io {
                path: prompt.resolved.clone(),
                wanted_by: prompt.field.clone(),
                source: error.take().unwrap_or_else(|| io::Error::from(*kind)),
            },
            Missing::Outside(root) => Fault::LinkOutsideRoot {
                target: prompt.target.clone(),
                path: prompt.written.clone(),
                root: root.clone(),
            },
            Missing::TooLarge { limit, actual } => {
                Fault::TooLarge { what: "prompt file in bytes", limit: *limit, actual: *actual }
            }
            Missing::Budget { limit, actual } => {
                Fault::TooLarge { what: "text of all instructions in bytes", limit: *limit, actual: *actual }
            }
        })
    }
}

impl Missing {
    fn of(error: io::Error) -> Self {
        let kind = error.kind();
        Self::Io(Some(error), kind)
    }
}

/// Files that several threads read, each taking the next one.
struct Job {
    paths: Vec<PathBuf>,
    next: AtomicUsize,
    real_root: PathBuf,
    limits: Limits,
    /// Bytes of all files so far: no more is held in memory than a descriptor may have.
    read: AtomicU64,
}

impl Job {
    /// Reads the next file that no thread has taken.
    fn step(&self) -> Option<(PathBuf, Result<PromptText, Missing>)> {
        let path = self.paths.get(self.next.fetch_add(1, Ordering::Relaxed))?;
        Some((path.clone(), self.read_one(path)))
    }

    fn read_one(&self, path: &Path) -> Result<PromptText, Missing> {
        let limit = self.limits.text_bytes;
        let read = self.read.load(Ordering::Relaxed);
        if read > limit {
            return Err(Missing::Budget { limit, actual: read });
        }
        let opened = Opened::at(path).map_err(Missing::of)?;
        if !is_inside(&opened.real, &self.real_root) {
            return Err(Missing::Outside(self.real_root.display().to_string()));
        }
        let limit = self.limits.prompt_bytes;
        let bytes = opened.read(limit).map_err(|fault| match fault {
            ReadFault::Io(error) => Missing::of(error),
            ReadFault::TooLarge(actual) => Missing::TooLarge { limit, actual },
        })?;
        self.read.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let (text, lossy_from) = decode_lossy(bytes);
        Ok(PromptText { text: text.into(), lossy: lossy_from.is_some() })
    }
}
