//! Directory of a store: file names from keys, atomic files, and writers in several processes that
//! take turns.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::disk::{Disk, create_folder, is_unfinished};
use crate::error::{Action, Error, Store};

/// The longest key, in bytes.
pub(crate) const LONGEST_KEY: usize = 1_000;

/// The longest part of an encoded key that is one name: names of files have 255 bytes at most, and what is
/// not complete yet has a longer one.
pub(crate) const LONGEST_NAME: usize = 200;

/// Suffix of a directory with the rest of a long key.
const GOES_ON: &str = "~";

/// The file that writers lock.
const LOCK: &str = "lock";

/// Directory of a store.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    store: Store,
    pub(crate) disk: Disk,
}

impl Folder {
    /// Opens the directory at `path`, and creates it if it does not exist, accessible only to its
    /// owner.
    pub(crate) fn open(path: PathBuf, store: Store) -> Result<Self, Error> {
        let folder = Self { path, store, disk: Disk::default() };
        create_folder(&folder.path).map_err(|source| folder.refused(Action::CreateFolder, "", source))?;
        Ok(folder)
    }

    pub(crate) fn path(&self, file: impl AsRef<Path>) -> PathBuf {
        self.path.join(file)
    }

    /// The writers' turn, until it is dropped.
    pub(crate) fn lock(&self) -> Result<File, Error> {
        let mut options = fs::OpenOptions::new();
        let opened = options.create(true).truncate(false).write(true).mode(0o600).open(self.path(LOCK));
        let locked = opened.and_then(|file| file.lock().map(|()| file));
        locked.map_err(|source| self.refused(Action::Lock, LOCK, source))
    }

    /// Content of a file of at most `most` bytes; `None` if the file does not exist.
    pub(crate) fn read(&self, file: &Path, most: u64) -> Result<Option<Vec<u8>>, Error> {
        let mut bytes = Vec::new();
        let path = self.path(file);
        let read =
            File::open(&path).and_then(|file| file.take(most.saturating_add(1)).read_to_end(&mut bytes));
        match read {
            Ok(count) if count as u64 > most => {
                let size = fs::metadata(&path).map_or(count as u64, |metadata| metadata.len());
                Err(self.too_large(path.display().to_string(), size, most))
            }
            Ok(_) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(source) => Err(self.refused(Action::Read, file, source)),
        }
    }

    /// Puts a file of these bytes in place; the earlier one is there until the new one is complete and on
    /// stable storage. Only in the writers' turn.
    pub(crate) fn write(&self, file: &Path, bytes: &[u8]) -> Result<(), Error> {
        let path = self.path(file);
        let written =
            self.make_room(file).and_then(|()| self.disk.put_in_place(&path, bytes, None, |_| Ok(())));
        written.map_err(|source| self.refused(Action::Write, file, source))
    }

    /// Creates the directories of a file, durably.
    fn make_room(&self, file: &Path) -> io::Result<()> {
        let Some(parent) = file.parent().filter(|parent| !self.path(parent).is_dir()) else { return Ok(()) };
        create_folder(&self.path(parent))?;
        let above = parent.ancestors().skip(1);
        above.into_iter().try_for_each(|folder| self.disk.sync_folder(&self.path(folder)))
    }

    /// Removes a file and returns whether it existed. Requires the writer's turn.
    pub(crate) fn remove(&self, file: &Path) -> Result<bool, Error> {
        let path = self.path(file);
        let folder = path.parent().unwrap_or(&self.path);
        let removed = match self.disk.remove(&path) {
            Ok(true) => self.disk.sync_folder(folder).map(|()| true),
            other => other,
        };
        removed.map_err(|source| self.refused(Action::Remove, file, source))
    }

    /// Removes an empty directory, if it exists. Requires the writer's turn.
    pub(crate) fn remove_folder(&self, folder: &Path) -> Result<(), Error> {
        match fs::remove_dir(self.path(folder)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(|source| self.refused(Action::Remove, folder, source)),
        }
    }

    /// Calls `see` with each name in the directory, parents first. `see` returns whether to enter a
    /// directory.
    pub(crate) fn walk(&self, see: &mut impl FnMut(&Path, bool) -> bool) -> Result<(), Error> {
        self.walk_below(Path::new(""), see)
    }

    /// [`Folder::walk`] in a subdirectory.
    pub(crate) fn walk_below(
        &self,
        below: &Path,
        see: &mut impl FnMut(&Path, bool) -> bool,
    ) -> Result<(), Error> {
        let listed = match fs::read_dir(self.path(below)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            listed => listed.and_then(Iterator::collect::<io::Result<Vec<_>>>),
        };
        for entry in listed.map_err(|source| self.refused(Action::List, below, source))? {
            let path = below.join(entry.file_name());
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if see(&path, is_folder) && is_folder {
                self.walk_below(&path, see)?;
            }
        }
        Ok(())
    }

    /// Keys of all files or directories with this suffix, sorted.
    pub(crate) fn keys(&self, suffix: &str) -> Result<Vec<String>, Error> {
        let mut keys = Vec::new();
        self.walk(&mut |path, is_folder| {
            if let Some(key) = key_of(path, suffix) {
                keys.push(key);
            }
            is_folder && path.to_string_lossy().ends_with(GOES_ON)
        })?;
        keys.sort();
        Ok(keys)
    }

    /// Removes what writers that were killed have left unfinished. Only in the writers' turn.
    pub(crate) fn sweep(&self) -> Result<(), Error> {
        let mut unfinished = Vec::new();
        self.walk(&mut |path, is_folder| {
            if !is_folder && is_unfinished(path) {
                unfinished.push(path.to_path_buf());
            }
            true
        })?;
        unfinished.iter().try_for_each(|file| self.remove(file).map(drop))
    }

    /// The file of a key.
    pub(crate) fn file_of(&self, key: &str, suffix: &str) -> Result<PathBuf, Error> {
        if key.len() > LONGEST_KEY {
            return Err(Error::LongKey { store: self.store, bytes: key.len(), limit: LONGEST_KEY });
        }
        let encoded = encode(key);
        let mut path = PathBuf::new();
        let mut rest = &*encoded;
        while let Some((name, more)) = rest.split_at_checked(LONGEST_NAME) {
            path.push(format!("{name}{GOES_ON}"));
            rest = more;
        }
        path.push(format!("{rest}{suffix}"));
        Ok(path)
    }

    pub(crate) fn damaged(&self, file: &Path, reason: impl Into<String>) -> Error {
        Error::Damaged { store: self.store, path: self.path(file), reason: reason.into() }
    }

    pub(crate) fn too_large(&self, name: String, bytes: u64, limit: u64) -> Error {
        Error::Oversize { store: self.store, name, bytes, limit }
    }

    fn refused(&self, action: Action, file: impl AsRef<Path>, source: io::Error) -> Error {
        Error::Io { store: self.store, action, path: self.path(file), source }
    }
}

/// A key as a name that every file system keeps as it is, those that take capital letters for small ones too.
pub(crate) fn encode(key: &str) -> String {
    let mut name = String::with_capacity(key.len());
    for byte in key.bytes() {
        if byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-') {
            name.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(name, "%{byte:02x}");
        }
    }
    name
}

/// The key whose file this is; none for a file that [`Folder::file_of`] does not name.
fn key_of(path: &Path, suffix: &str) -> Option<String> {
    let mut encoded = String::new();
    let mut parts = path.iter().map(|part| part.to_str()).collect::<Option<Vec<_>>>()?;
    let last = parts.pop()?.strip_suffix(suffix)?;
    for part in parts {
        encoded.push_str(part.strip_suffix(GOES_ON).filter(|name| name.len() == LONGEST_NAME)?);
    }
    encoded.push_str(last);
    let key = decode(&encoded)?;
    (encode(&key) == encoded && last.len() < LONGEST_NAME).then_some(key)
}

fn decode(name: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        rest = more;
        if *first == b'%' {
            let (digits, more) = rest.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = more;
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(key: &str, file: &str) {
        let folder = tempfile::tempdir().unwrap();
        let folder = Folder::open(folder.path().into(), Store::Storage).unwrap();
        let path = folder.file_of(key, ".json").unwrap();
        assert_eq!(path, Path::new(file));
        assert_eq!(key_of(&path, ".json").as_deref(), Some(key));
    }

    #[test]
    fn keys_are_names_and_names_are_keys() {
        check("plan", "plan.json");
        check("", ".json");
        check("..", "%2e%2e.json");
        check("a/b:c d%", "a%2fb%3ac%20d%25.json");
        check("Aa\u{e4}", "%41a%c3%a4.json");
        check("lock", "lock.json");
        let x = "x".repeat(200);
        check(&x, &format!("{x}~/.json"));
        check(&format!("{x}{x}y"), &format!("{x}~/{x}~/y.json"));
    }

    #[test]
    fn other_names_are_no_keys() {
        for name in ["lock", "a.txt", "A.json", "%2E.json", "%zz.json", "%2.json", "x~/y.json", "%ff.json"] {
            assert_eq!(key_of(Path::new(name), ".json"), None, "{name}");
        }
    }
}
