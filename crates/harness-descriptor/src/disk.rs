//! Files on disk: what is opened is checked, and prompts are read side by side.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::error::Fault;
use crate::limits::Limits;
use crate::materialize::PromptRef;
use crate::paths::is_inside;
use crate::yaml::input;

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

/// Why an open file was not read.
#[derive(Debug)]
pub(crate) enum ReadFault {
    Io(io::Error),
    /// It has at least so many bytes.
    TooLarge(u64),
}

impl Opened {
    /// Opens a regular file, links followed. Folders, pipes and devices are refused and never block.
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
    /// Some bytes were no UTF-8 and became U+FFFD.
    pub(crate) lossy: bool,
}

/// Why a prompt file has no text.
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
    /// Reads the files of all references, several at once when there are many.
    ///
    /// Faults are kept for the reference that asks for the file, so that their order does not
    /// depend on the order of reading.
    pub(crate) fn read<'a>(
        prompts: impl Iterator<Item = &'a PromptRef>,
        real_root: &Path,
        limits: &Limits,
    ) -> Self {
        let mut texts = HashMap::new();
        let mut paths = Vec::new();
        for prompt in prompts {
            // What stands here is replaced below, or asked for never.
            if texts
                .insert(prompt.resolved.clone(), Err(Missing::of(io::ErrorKind::NotFound.into())))
                .is_none()
            {
                paths.push(&*prompt.resolved);
            }
        }
        let reader = Reader { real_root, limits, read: AtomicU64::new(0) };
        let threads = thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
        let threads = threads.min(paths.len() / FILES_PER_THREAD).max(1);
        if threads == 1 {
            texts.extend(reader.read_all(&paths));
            return Self { texts };
        }
        let share = paths.len().div_ceil(threads);
        thread::scope(|scope| {
            let mut shares = paths.chunks(share);
            let own = shares.next().unwrap_or_default();
            let others: Vec<_> =
                shares.map(|paths| (paths, scope.spawn(|| reader.read_all(paths)))).collect();
            texts.extend(reader.read_all(own));
            for (paths, thread) in others {
                // A thread that could not do its share leaves it to this one.
                texts.extend(thread.join().unwrap_or_else(|_| reader.read_all(paths)));
            }
        });
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

struct Reader<'a> {
    real_root: &'a Path,
    limits: &'a Limits,
    /// Bytes of all files so far: no more is held in memory than a descriptor may have.
    read: AtomicU64,
}

impl Reader<'_> {
    fn read_all(&self, paths: &[&Path]) -> Vec<(PathBuf, Result<PromptText, Missing>)> {
        paths.iter().map(|path| ((*path).to_owned(), self.read_one(path))).collect()
    }

    fn read_one(&self, path: &Path) -> Result<PromptText, Missing> {
        let limit = self.limits.text_bytes;
        let read = self.read.load(Ordering::Relaxed);
        if read > limit {
            return Err(Missing::Budget { limit, actual: read });
        }
        let opened = Opened::at(path).map_err(Missing::of)?;
        if !is_inside(&opened.real, self.real_root) {
            return Err(Missing::Outside(self.real_root.display().to_string()));
        }
        let limit = self.limits.prompt_bytes;
        let bytes = opened.read(limit).map_err(|fault| match fault {
            ReadFault::Io(error) => Missing::of(error),
            ReadFault::TooLarge(actual) => Missing::TooLarge { limit, actual },
        })?;
        self.read.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let (text, lossy_from) = input::lossy(bytes);
        Ok(PromptText { text: text.into(), lossy: lossy_from.is_some() })
    }
}
