//! Opens files below one directory and nowhere else.

use std::ffi::CStr;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use harness_host::{EntryKind, WorkspaceFault, WorkspaceFaultCode as Code};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

/// Maximum number of names of one directory.
const MAX_NAMES: usize = 20_000;

/// How many names a path has at most.
pub(super) const MAX_DEPTH: usize = 64;

/// A directory that no path escapes.
///
/// Each name of a path is opened on its own, relative to the directory opened before, and never through a
/// symbolic link. Neither `..` nor a link escapes, even if a link replaces a directory while a path is
/// opened: an open directory stays the same.
#[derive(Debug)]
pub(super) struct Jail(OwnedFd);

/// The names of a path, from the root down.
#[derive(Clone, Debug)]
pub(super) struct Names<'p> {
    names: Vec<&'p str>,
    path: &'p str,
}

impl<'p> Names<'p> {
    /// The names of a path exactly as a model wrote it; it starts at the root, whether it has a slash or not.
    pub(super) fn of(path: &'p str) -> Result<Self, WorkspaceFault> {
        let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
        if names.contains(&"..") || path.contains('\0') {
            let problem = format!("`{path}` leads out of the workspace; write the path from its root");
            return Err(WorkspaceFault::new(Code::OutsideWorkspace, problem));
        }
        if names.len() > MAX_DEPTH {
            let problem = format!(
                "the path has {} names, one below the other; at most {MAX_DEPTH} are allowed",
                names.len()
            );
            return Err(WorkspaceFault::new(Code::TooDeep, problem));
        }
        Ok(Self { names, path })
    }

    /// The names of the directories and the last name; `None` for the root.
    pub(super) fn split_last(&self) -> Option<(&'p str, &[&'p str])> {
        self.names.split_last().map(|(last, folders)| (*last, folders))
    }

    pub(super) fn all(&self) -> &[&'p str] {
        &self.names
    }

    /// `/a/b`.
    pub(super) fn normal(&self) -> String {
        format!("/{}", self.names.join("/"))
    }

    /// Error of the operating system.
    pub(super) fn refused(&self, what: &str, error: Errno) -> WorkspaceFault {
        unavailable(&format!("{what} `{}`", self.path), error)
    }
}

/// A failure of the operating system.
pub(super) fn unavailable(what: &str, error: impl std::fmt::Display) -> WorkspaceFault {
    WorkspaceFault::new(Code::Unavailable, format!("cannot {what}: {error}"))
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Entry of a directory.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) name: String,
    pub(super) kind: EntryKind,
    pub(super) stat: Stat,
}

impl Jail {
    /// Opens a directory. Links in its path are followed, because the host chooses it, not the model.
    pub(super) fn open(folder: &Path) -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::openat(CWD, folder, flags, Mode::empty()).map(Self)
    }

    /// Directory at the end of some names, if it exists.
    pub(super) fn folder(&self, names: &Names<'_>, of: &[&str]) -> Result<Option<OwnedFd>, WorkspaceFault> {
        let mut folder = self.root(names)?;
        for name in of {
            match rustix::fs::openat(&folder, *name, FOLDER, Mode::empty()) {
                Ok(next) => folder = next,
                Err(Errno::NOENT | Errno::NAMETOOLONG) => return Ok(None),
                Err(Errno::NOTDIR | Errno::LOOP) => {
                    return no_folder(folder.as_fd(), name, names).map(|()| None);
                }
                Err(error) => return Err(names.refused("open", error)),
            }
        }
        Ok(Some(folder))
    }

    /// Directory at the end of some names; missing ones are created.
    pub(super) fn folder_made(&self, names: &Names<'_>, of: &[&str]) -> Result<OwnedFd, WorkspaceFault> {
        let mut folder = self.root(names)?;
        for name in of {
            match rustix::fs::mkdirat(&folder, *name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(names.refused("create the directories of", error)),
            }
            folder = match rustix::fs::openat(&folder, *name, FOLDER, Mode::empty()) {
                Ok(next) => next,
                Err(error @ (Errno::NOTDIR | Errno::LOOP)) => {
                    no_folder(folder.as_fd(), name, names)?;
                    return Err(wrong_kind(names, &format!("`{name}` is not a directory ({error})")));
                }
                Err(error) => return Err(names.refused("open", error)),
            };
        }
        Ok(folder)
    }

    fn root(&self, names: &Names<'_>) -> Result<OwnedFd, WorkspaceFault> {
        // A descriptor of its own: reading a folder moves the position of the one it is read through.
        rustix::fs::openat(&self.0, ".", FOLDER, Mode::empty()).map_err(|e| names.refused("open", e))
    }
}

/// Distinguishes links, which are never followed, from other files.
fn no_folder(folder: BorrowedFd<'_>, name: &str, names: &Names<'_>) -> Result<(), WorkspaceFault> {
    match look(folder, name) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode).is_symlink() => Err(is_link(names, name)),
        _ => Ok(()),
    }
}

fn is_link(names: &Names<'_>, name: &str) -> WorkspaceFault {
    let problem =
        format!("`{}` goes through the symbolic link `{name}`, and links are not followed", names.path);
    WorkspaceFault::new(Code::OutsideWorkspace, problem)
}

fn wrong_kind(names: &Names<'_>, problem: &str) -> WorkspaceFault {
    WorkspaceFault::new(Code::WrongKind, format!("`{}` cannot be used: {problem}", names.path))
}

fn look(folder: BorrowedFd<'_>, name: &str) -> Result<Stat, Errno> {
    rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
}

/// State of a regular file; `None` if it does not exist.
///
/// # Errors
/// If it is not a regular file.
pub(super) fn regular(
    folder: BorrowedFd<'_>,
    name: &str,
    names: &Names<'_>,
) -> Result<Option<Stat>, WorkspaceFault> {
    let stat = match look(folder, name) {
        Ok(stat) => stat,
        Err(Errno::NOENT | Errno::NAMETOOLONG) => return Ok(None),
        Err(error) => return Err(names.refused("look at", error)),
    };
    check_regular(&stat, name, names).map(|()| Some(stat))
}

fn check_regular(stat: &Stat, name: &str, names: &Names<'_>) -> Result<(), WorkspaceFault> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(()),
        FileType::Symlink => Err(is_link(names, name)),
        FileType::Directory => Err(wrong_kind(names, "it is a directory; list it, or name a file in it")),
        FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => Err(wrong_kind(names, "it is a device, a pipe or a socket, no file")),
    }
}

/// Content of a regular file of at most `most` bytes; `None` if it does not exist.
///
/// # Errors
/// If it is not a regular file, or larger.
pub(super) fn bytes(
    folder: BorrowedFd<'_>,
    name: &str,
    names: &Names<'_>,
    most: u64,
) -> Result<Option<(Vec<u8>, Stat)>, WorkspaceFault> {
    // A device is not even opened: opening one may do something.
    if regular(folder, name, names)?.is_none() {
        return Ok(None);
    }
    // It may have been exchanged since: a link is not followed, a pipe does not block, and what was opened
    // is looked at once more.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(folder, name, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(is_link(names, name)),
        Err(error) => return Err(names.refused("open", error)),
    };
    let stat = rustix::fs::fstat(&file).map_err(|e| names.refused("look at", e))?;
    check_regular(&stat, name, names)?;
    let mut bytes = Vec::new();
    let read = File::from(file).take(most + 1).read_to_end(&mut bytes);
    read.map_err(|e| unavailable(&format!("read `{}`", names.path), e))?;
    if bytes.len() as u64 > most {
        let size = stat.st_size;
        let problem = format!("`{}` has {size} bytes; at most {most} are read", names.path);
        return Err(WorkspaceFault::new(Code::TooLarge, problem));
    }
    Ok(Some((bytes, stat)))
}

/// Entries of a directory, by name. Names that are not UTF-8 are omitted, because no path can name them.
///
/// # Errors
/// If the directory cannot be read, or has too many names.
pub(super) fn entries(folder: BorrowedFd<'_>, shown: &str) -> Result<Vec<Found>, WorkspaceFault> {
    let refused = |error: Errno| unavailable(&format!("read the directory `{shown}`"), error);
    let mut found = Vec::new();
    for entry in Dir::read_from(folder).map_err(refused)? {
        let entry = entry.map_err(refused)?;
        let Some(name) = name_of(entry.file_name()) else { continue };
        if found.len() == MAX_NAMES {
            let problem = format!("the directory `{shown}` has more than {MAX_NAMES} names");
            return Err(WorkspaceFault::new(Code::TooLarge, problem));
        }
        // What vanished meanwhile is left out.
        if let Ok(stat) = look(folder, name) {
            let kind = kind_of(&stat);
            found.push(Found { name: name.to_owned(), kind, stat });
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

fn name_of(name: &CStr) -> Option<&str> {
    name.to_str().ok().filter(|name| *name != "." && *name != "..")
}

fn kind_of(stat: &Stat) -> EntryKind {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => EntryKind::File,
        FileType::Directory => EntryKind::Dir,
        FileType::Symlink
        | FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => EntryKind::Unknown,
    }
}

/// Opens a directory inside a directory.
pub(super) fn enter(folder: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(folder, name, FOLDER, Mode::empty())
}
