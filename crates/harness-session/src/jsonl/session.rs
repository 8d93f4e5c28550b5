//! The store.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use harness_core::SessionId;
use harness_core::message::Message;
use harness_core::port::{Durability, Entry, EntryHead, Loaded, Session, SessionError};
use serde::Serialize;

use super::compaction::WrittenCompaction;
use super::disk::{create_folder, open_to_append, set_aside};
use super::line::{Header, Written, WrittenHeader, encode, placed, reason};
use super::lock::{Lock, Refused};
use super::options::{Limits, OpenOptions};
use super::read::{self, Scan, Tail};
use crate::chain::{Chain, numbered};
use crate::error::{Action, Error};
use crate::spine::{Spine, advance};

/// The largest buffer that is kept from one append to the next.
const KEPT_BUFFER: usize = 1 << 20;

/// How many symbolic links may lead from one to the next.
const MOST_LINKS: usize = 40;

/// A session in a JSON Lines file, open for writing by its one owner.
///
/// # What an append does
/// All entries of an append are encoded first, then written with one call at the end of the file, which is
/// held open. When that returns, they are with the operating system and survive the end of the process.
/// [`OpenOptions::sync`] says when they are on stable storage, too. When it fails, nothing of them counts:
/// [`Session::load`] does not show them, and the next append first cuts off what may have been written.
///
/// A last line that was not written to its end (the process or the machine ended in the middle) is passed
/// over by a load, which reports it and never changes the file. The next append moves it to a file beside
/// the session, `NAME.torn`, and cuts it off, so that nothing is ever added to it.
///
/// # Blocking
/// Appends are made in place, on the caller's thread, although the port is asynchronous: a write to the page
/// cache takes about a microsecond and a sync of one line well below a millisecond, less than handing the
/// work to another thread and back costs; and a run cannot go on before its entry is stored anyway. A load
/// reads the whole file in place. On a server, load long sessions off the executor's threads with
/// [`JsonlSession::read`].
///
/// # One owner
/// [`JsonlSession::open`] takes a lock that holds until the value is dropped or its process ends. Anybody
/// may [`JsonlSession::read`] meanwhile.
#[derive(Debug)]
pub struct JsonlSession {
    /// As the caller named it, for messages.
    pub(super) path: PathBuf,
    /// Without symbolic links.
    pub(super) real: PathBuf,
    pub(super) options: OpenOptions,
    pub(super) state: Mutex<State>,
    _lock: Lock,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) header: Option<Header>,
    /// The file, once something was appended.
    pub(super) file: Option<File>,
    /// The end of the file, once it is known.
    pub(super) tail: Option<Tail>,
    /// Whether bytes may follow that end which do not count.
    pub(super) dirty: bool,
    /// The length up to which a sync has succeeded; what the file held when it was opened is its earlier
    /// owners' matter.
    pub(super) synced: u64,
    /// Whether a sync has failed since. The system may then take pages for written that are not, so that the
    /// next sync would succeed without them.
    pub(super) suspect: bool,
    /// Whether the folder durably lists the file.
    pub(super) listed: bool,
    pub(super) buffer: Vec<u8>,
    /// The entries, once the file was read.
    pub(super) chain: Chain,
    /// Where the messages of the transcript came from.
    pub(super) spine: Spine,
}

/// What a session file holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stored {
    /// The first line; absent in a file of source 004, and while nothing was appended.
    pub header: Option<Header>,
    /// The transcript and what belongs to it.
    pub loaded: Loaded,
}

impl JsonlSession {
    /// Opens the session at `path` and becomes its owner. Symbolic links are followed.
    ///
    /// # Errors
    /// [`Error::Locked`] when it has an owner, [`Error::NotFound`] when it is missing and must not be
    /// created, [`Error::NewerVersion`] and [`Error::WrongFormat`] by its header, and those of the
    /// operating system.
    pub fn open(path: impl AsRef<Path>, options: OpenOptions) -> Result<Self, Error> {
        let path = path.as_ref().to_path_buf();
        let real = resolve(&path).map_err(|source| io_error(Action::Open, &path, source))?;
        let exists = check_file(&path, &real)?;
        if !exists && !options.create {
            return Err(Error::NotFound { path });
        }
        if let Some(folder) = real.parent() {
            create_folder(folder).map_err(|source| io_error(Action::CreateFolder, folder, source))?;
        }
        let lock_path = beside(&real, ".lock");
        let lock = Lock::take(lock_path.clone()).map_err(|refused| match refused {
            Refused::Held(pid) => Error::Locked { path: path.clone(), pid },
            Refused::Io(source) => io_error(Action::Lock, &lock_path, source),
        })?;
        let header = read::header(&real, &path, options.limits)?;
        let state = Mutex::new(State { header, ..State::default() });
        Ok(Self { path, real, options, state, _lock: lock })
    }

    /// Reads the session at `path` without owning it, even while somebody else writes to it. A missing file
    /// is an empty session. Never changes anything.
    ///
    /// # Errors
    /// Damage anywhere but in an unfinished last line, a newer version, another format, limits, and those of
    /// the operating system.
    pub fn read(path: impl AsRef<Path>, limits: Limits) -> Result<Stored, Error> {
        let path = path.as_ref();
        check_file(path, path)?;
        let Scan { header, loaded, .. } = read::scan(path, path, limits, u64::MAX)?;
        Ok(Stored { header, loaded })
    }

    /// The file as the caller named it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The first line of the file; absent in a file of source 004, and while nothing was appended.
    pub fn header(&self) -> Option<Header> {
        self.state().header.clone()
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn load_now(&self) -> Result<Loaded, Error> {
        self.scan(&mut self.state())
    }

    /// Reads the file and remembers its end. What a failed append left behind is not read.
    pub(super) fn scan(&self, state: &mut State) -> Result<Loaded, Error> {
        let most = match &state.tail {
            Some(tail) if state.dirty => tail.length,
            Some(_) | None => u64::MAX,
        };
        let scan = read::scan(&self.real, &self.path, self.options.limits, most)?;
        state.tail = Some(scan.tail);
        state.header = scan.header;
        state.chain = scan.chain;
        state.spine = scan.spine;
        Ok(scan.loaded)
    }

    fn write(&self, head: &EntryHead, entries: &[Entry<'_>], asked: Durability) -> Result<(), Error> {
        let sync = self.options.sync.wants(asked);
        let state = &mut *self.state();
        if entries.is_empty() {
            return if sync { self.sync(state) } else { Ok(()) };
        }
        if state.tail.is_none() {
            self.scan(state)?;
        }
        let mut buffer = std::mem::take(&mut state.buffer);
        buffer.clear();
        let outcome = self
            .encode(state, head, entries, &mut buffer)
            .and_then(|(tail, header)| self.put(state, &buffer, sync).map(|()| (tail, header)));
        if buffer.capacity() <= KEPT_BUFFER {
            state.buffer = buffer;
        }
        let (tail, header) = outcome?;
        state.tail = Some(tail);
        state.header = header.or(state.header.take());
        state.dirty = false;
        for entry in entries {
            let parent = state.chain.len().checked_sub(1);
            let place = state.chain.grow(parent);
            advance(&mut state.spine, place, entry);
        }
        Ok(())
    }

    /// Encodes entries into `buffer`; tells the end that the file will have then, and its header when it gets
    /// one.
    fn encode(
        &self,
        state: &State,
        head: &EntryHead,
        entries: &[Entry<'_>],
        buffer: &mut Vec<u8>,
    ) -> Result<(Tail, Option<Header>), Error> {
        let mut tail = state.tail.clone().unwrap_or_default();
        let mut header = None;
        if tail.open {
            buffer.push(b'\n');
        }
        if !tail.used {
            let first = self.first_line(head);
            self.line(&WrittenHeader::from(&first), tail.lines, buffer)?;
            tail.lines = tail.lines.saturating_add(1);
            tail.used = true;
            header = Some(first);
        }
        let shortens = entries.iter().any(|entry| matches!(entry, Entry::Compaction { .. }));
        let mut spine = if shortens { state.spine.clone() } else { Spine::default() };
        for (place, entry) in (state.chain.len()..).zip(entries) {
            if let Entry::Message(message) | Entry::CallFinished { result: message, .. } = entry {
                self.check(message)?;
            }
            tail.made = tail.made.saturating_add(1);
            let id = numbered(tail.made);
            let compaction = self.name(entry, &spine, &state.chain)?;
            let compaction = compaction.as_ref();
            let written = Written { id: &id, parent: tail.last.as_ref(), head, entry, compaction };
            self.line(&written, tail.lines, buffer)?;
            if shortens {
                advance(&mut spine, place, entry);
            }
            tail.lines = tail.lines.saturating_add(1);
            tail.last = Some(id);
        }
        tail.length = tail.length.saturating_add(buffer.len() as u64);
        tail.open = false;
        tail.torn = 0;
        if tail.length > self.options.limits.file_bytes {
            let limit = self.options.limits.file_bytes;
            return Err(Error::TooLarge { path: self.path.clone(), bytes: tail.length, limit });
        }
        Ok((tail, header))
    }

    /// Names the messages that a compaction keeps.
    fn name(
        &self,
        entry: &Entry<'_>,
        spine: &Spine,
        chain: &Chain,
    ) -> Result<Option<WrittenCompaction>, Error> {
        let Entry::Compaction { note, plan, permanent } = entry else { return Ok(None) };
        let named = WrittenCompaction::new(note, plan, *permanent, spine, chain);
        named.map(Some).map_err(|reason| self.unstorable(reason))
    }

    /// Checks that a message can be read back.
    pub(super) fn check(&self, message: &Message) -> Result<(), Error> {
        placed(message).map_err(|reason| self.unstorable(reason))
    }

    pub(super) fn line<T: Serialize>(
        &self,
        line: &T,
        before: u64,
        buffer: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let bytes = encode(line, buffer).map_err(|error| self.unstorable(reason(&error)))? as u64;
        let limit = self.options.limits.line_bytes;
        if bytes > limit {
            let line = before.saturating_add(1);
            return Err(Error::LineTooLong { path: self.path.clone(), line, bytes, limit });
        }
        Ok(())
    }

    pub(super) fn first_line(&self, head: &EntryHead) -> Header {
        let id = self.options.id.clone().unwrap_or_else(|| {
            let stem = self.real.file_stem().unwrap_or_default().to_string_lossy();
            SessionId::from(format!("{stem}-{:x}", head.at.0))
        });
        let mut header = Header::new(id);
        header.created_at = head.at.iso();
        header.program = Some(self.options.program.clone());
        header.meta.clone_from(&self.options.meta);
        header
    }

    pub(super) fn unstorable(&self, reason: String) -> Error {
        Error::Unstorable { path: self.path.clone(), reason }
    }

    /// Writes encoded lines behind the last one that counts.
    fn put(&self, state: &mut State, lines: &[u8], sync: bool) -> Result<(), Error> {
        self.heal(state)?;
        state.dirty = true;
        if let Some(file) = &state.file {
            let written = self.options.disk.write(file, lines);
            written.map_err(|source| io_error(Action::Write, &self.path, source))?;
        }
        if sync { self.sync(state) } else { Ok(()) }
    }

    /// Opens the file when it is not open yet, and cuts off what does not count.
    pub(super) fn heal(&self, state: &mut State) -> Result<(), Error> {
        let write_error = |source| io_error(Action::Write, &self.path, source);
        let tail = state.tail.get_or_insert_default();
        if state.file.is_none() {
            let opened = open_to_append(&self.real);
            state.file = Some(opened.map_err(|source| io_error(Action::Open, &self.path, source))?);
            state.synced = tail.length;
        }
        let Some(file) = &state.file else { return Ok(()) };
        if tail.torn > 0 && !state.dirty {
            set_aside(&self.real, tail.length, &beside(&self.real, ".torn")).map_err(write_error)?;
            state.dirty = true;
        }
        if state.dirty {
            self.options.disk.cut(file, tail.length).map_err(write_error)?;
            state.dirty = false;
            tail.torn = 0;
        }
        Ok(())
    }

    fn sync(&self, state: &mut State) -> Result<(), Error> {
        let Some(file) = &state.file else { return Ok(()) };
        let sync_error = |source| io_error(Action::Sync, &self.path, source);
        let acknowledged = state.tail.as_ref().map_or(0, |tail| tail.length);
        if std::mem::replace(&mut state.suspect, true) {
            self.options.disk.write_again(&self.real, state.synced, acknowledged).map_err(sync_error)?;
        }
        self.options.disk.sync(file).map_err(sync_error)?;
        state.suspect = false;
        state.synced = acknowledged;
        if !state.listed {
            if let Some(folder) = self.real.parent() {
                self.options.disk.sync_folder(folder).map_err(sync_error)?;
            }
            state.listed = true;
        }
        Ok(())
    }
}

impl Session for JsonlSession {
    /// The name in the header, else the one that a new session will get when the options give one.
    fn id(&self) -> Option<SessionId> {
        let state = self.state();
        state.header.as_ref().map(|header| header.id.clone()).or_else(|| self.options.id.clone())
    }

    fn try_append(
        &self,
        head: &EntryHead,
        entries: &[Entry<'_>],
        durability: Durability,
    ) -> Option<Result<(), SessionError>> {
        Some(self.write(head, entries, durability).map_err(SessionError::from))
    }

    async fn append(
        &self,
        head: &EntryHead,
        entries: &[Entry<'_>],
        durability: Durability,
    ) -> Result<(), SessionError> {
        Ok(self.write(head, entries, durability)?)
    }

    async fn load(&self) -> Result<Loaded, SessionError> {
        Ok(self.load_now()?)
    }
}

pub(super) fn io_error(action: Action, path: &Path, source: io::Error) -> Error {
    Error::Io { action, path: path.into(), source }
}

/// The path with `suffix` added to its file name.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// Whether the file exists.
pub(crate) fn check_file(named: &Path, path: &Path) -> Result<bool, Error> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(true),
        Ok(_) => Err(Error::NotAFile { path: named.into() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(io_error(Action::Open, named, source)),
    }
}

/// The path without symbolic links, so that every way to a session leads to one lock. What does not exist
/// yet stays as it is named.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        match fs::canonicalize(&path) {
            Ok(real) => return Ok(real),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Err(_) => {}
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let Ok(target) = fs::read_link(&path) else {
            let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
            let folder = fs::canonicalize(folder).or_else(|_| std::path::absolute(folder))?;
            return Ok(folder.join(name));
        };
        path = folder.join(target);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "too many symbolic links"))
}
