//! Sessions in files and databases.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use harness_core::SessionId;
use harness_core::message::Message;
use harness_core::port::{Durability, Entry, EntryHead, Loaded, Session, SessionError};
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::append::Batch;
use super::disk::{Disk, create_folder, sweep};
use super::entries::OwnEntry;
use super::home::{Held, Home, io_error, refused_lock};
use super::line::Header;
use super::lock::{Owner, hold, hold_new, is_at, release};
use super::options::OpenOptions;
use super::read::{self, Scan, Tail};
use crate::blocking;
use crate::chain::{Chain, End};
use crate::error::{Action, Disturbance, Error};
use crate::spine::{Spine, Step};

/// A stored session, open for writing by its one owner: a JSON Lines file, or a thread of a SQLite
/// (feature `sqlite`) or PostgreSQL database (feature `postgres`). The path says which ([`Location`](crate::Location)); both hold the same lines.
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
/// In a database an append is one transaction, and nothing can be torn.
///
/// # Blocking
/// An append that only hands its entries to the operating system is made in place: one write to an open file
/// takes a few microseconds, less than handing it to another thread and back. Whatever waits, for stable
/// storage or for other appends, waits on a blocking thread of the tokio runtime, and so does a load. Without
/// a runtime all of it happens in place. Every append to a database runs on a blocking thread.
///
/// Other methods block: [`FileSession::open`], [`FileSession::append_blocking`], [`FileSession::replace_blocking`].
///
/// # One owner
/// [`FileSession::open`] takes a lock that holds until the value and all its clones are dropped or their
/// process ends. It holds for every name of the file, hard links included. Reading
/// ([`FileSession::read`]) needs no lock.
///
/// Before each append the file is checked. A file that was removed is written again from what is still
/// open; one that was cut, added to or replaced by another program refuses every further append
/// ([`Error::Disturbed`]), because what was acknowledged may be gone.
///
/// # Many threads
/// Clones are handles of one session. Appends of several threads that ask for stable storage while a sync is
/// on its way share the next one.
#[derive(Clone, Debug)]
pub struct FileSession(pub(super) Arc<Shared>);

/// Shared state of the handles of a session.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) home: Home,
    pub(super) options: OpenOptions,
    pub(super) state: Mutex<State>,
    /// Those that wait for a thread to block, in the order in which they came.
    pub(super) queue: Arc<tokio::sync::Mutex<()>>,
    /// Signalled when no disk operation is in progress.
    pub(super) free: Condvar,
    /// The owner before, when it did not give the lock back.
    left_by: Option<Owner>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    /// Lock of the file while this session owns it.
    pub(super) lock: Option<Held>,
    pub(super) header: Option<Header>,
    /// The file, locked, once it exists.
    pub(super) file: Option<Arc<File>>,
    /// The end of the file, once it is known.
    pub(super) tail: Option<Tail>,
    /// Whether bytes may follow that end which do not count.
    pub(super) dirty: bool,
    /// The length up to which a sync has succeeded, once something is to be written; what the file held when
    /// it was opened is its earlier owners' matter.
    pub(super) synced: Option<u64>,
    /// Whether a sync has failed since. The system may then take pages for written that are not, so that the
    /// next sync would succeed without them.
    pub(super) suspect: bool,
    /// Whether the directory durably lists the file.
    pub(super) listed: bool,
    /// The end of what is on its way to stable storage just now. Nothing is written meanwhile.
    pub(super) on_its_way: Option<Tail>,
    /// Batch being collected.
    pub(super) next: Option<Batch>,
    /// Room for the lines of the next batch.
    pub(super) buffer: Vec<u8>,
    /// Room for what its entries do.
    pub(super) steps: Vec<Step>,
    /// The entries, once the file was read.
    pub(super) chain: Chain,
    /// Where the next entry goes in the tree.
    pub(super) end: End,
    /// Where the messages of the transcript came from.
    pub(super) spine: Spine,
    /// Whether the file and its lock were just checked.
    pub(super) checked: bool,
    /// Notice for the caller, without data loss.
    pub(super) notice: Option<SessionError>,
}

/// Content of a session file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stored {
    /// The first line; absent in a file of bare messages, and while nothing was appended.
    pub header: Option<Header>,
    /// The transcript and what belongs to it.
    pub loaded: Loaded,
}

impl FileSession {
    /// Opens the session at `path` and becomes its owner. Symbolic links are followed.
    ///
    /// # Errors
    /// [`Error::Locked`] when it has an owner, [`Error::NotFound`] when it is missing and must not be
    /// created, [`Error::NewerVersion`] and [`Error::WrongFormat`] by its header, and those of the
    /// operating system.
    pub fn open(path: impl AsRef<Path>, options: OpenOptions) -> Result<Self, Error> {
        let home = Home::of(path.as_ref(), options.create)?;
        let path = &home.path;
        if !home.exists()? && !options.create {
            return Err(Error::NotFound { path: path.clone() });
        }
        if let Some(folder) = home.folder() {
            create_folder(folder).map_err(|source| io_error(Action::CreateFolder, folder, source))?;
        }
        let lock = home.lock()?;
        if lock.left_by().is_some()
            && let Err(error) = sweep(&home.real)
        {
            tracing::debug!(path = %path.display(), %error, "unfinished files stay");
        }
        let file = if home.rows.is_none() { own(&home, &lock)?.map(Arc::new) } else { None };
        let header = match home.reader(&options, Some(2))? {
            Some(reader) => read::header(reader, path, &options)?,
            None => None,
        };
        let left_by = lock.left_by().cloned();
        let state = Mutex::new(State { lock: Some(lock), header, file, ..State::default() });
        let (free, queue) = (Condvar::new(), Arc::default());
        Ok(Self(Arc::new(Shared { home, options, state, queue, free, left_by })))
    }

    /// Opens the session as [`FileSession::open`] does, on a thread where it may wait for the disk and for an
    /// owner that is about to end.
    ///
    /// # Errors
    /// As of [`FileSession::open`], and [`Error::Stopped`].
    pub async fn open_async(path: impl Into<PathBuf>, options: OpenOptions) -> Result<Self, Error> {
        let path = path.into();
        blocking::run(move || Self::open(path, options)).await?
    }

    /// Reads the session at `path` without owning it, even during writes by another owner. A
    /// missing session is an empty one. Never changes anything. Of the options, the limits and the key count.
    ///
    /// # Errors
    /// Damage except in an unfinished last line, a newer version, a different format, limits, and
    /// those of the operating system.
    pub fn read(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Stored, Error> {
        let home = match Home::of(path.as_ref(), false) {
            Err(Error::NotFound { .. }) => return Ok(Stored::default()),
            home => home?,
        };
        let Some(reader) = home.reader(options, None)? else { return Ok(Stored::default()) };
        let Scan { header, loaded, .. } = read::scan(reader, &home.path, options, End::Last)?;
        Ok(Stored { header, loaded })
    }

    /// Appends entries in order, as [`Session::append`] does, and blocks until they are as safe as asked. For
    /// threads that drive no tasks.
    ///
    /// # Errors
    /// As of [`Session::append`].
    pub fn append_blocking(
        &self,
        head: &EntryHead,
        entries: &[Entry<'_>],
        durability: Durability,
    ) -> Result<(), SessionError> {
        self.0.append(head, entries, durability, None)
    }

    /// The path as the caller named it.
    pub fn path(&self) -> &Path {
        &self.0.home.path
    }

    /// The first line of the file; absent in a file of bare messages, and while nothing was appended.
    pub fn header(&self) -> Option<Header> {
        self.0.state().header.clone()
    }

    /// The owner before, when it ended without giving the session back: it was killed, or the machine went
    /// down. Its last entry may be torn then, and calls may lack their results.
    pub fn left_by(&self) -> Option<&Owner> {
        self.0.left_by.as_ref()
    }
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Reads the file and remembers its end. What a failed append left behind is not read.
    pub(super) fn scan(&self, state: &mut State) -> Result<Loaded, Error> {
        self.check_file(state)?;
        let most = match &state.tail {
            Some(tail) if state.dirty => tail.length,
            Some(_) | None => u64::MAX,
        };
        let scan = match self.home.reader(&self.options, None)? {
            Some(reader) => read::scan(reader.take(most), &self.home.path, &self.options, state.end)?,
            None => Scan::default(),
        };
        if self.options.key.is_some() && scan.tail.used && scan.tail.seal.is_none() {
            return Err(Error::NotSealed { path: self.home.path.clone() });
        }
        if state.tail.as_ref() != Some(&scan.tail) {
            state.void();
        }
        state.tail = Some(scan.tail);
        state.header = scan.header;
        state.chain = scan.chain;
        state.spine = scan.spine;
        Ok(scan.loaded)
    }
}

impl Session for FileSession {
    /// The name in the header, else the one that a new session will get when the options give one.
    fn id(&self) -> Option<SessionId> {
        let state = self.0.state();
        state.header.as_ref().map(|header| header.id.clone()).or_else(|| self.0.options.id.clone())
    }

    /// Appends in place if there is nothing to wait for and nothing to sync, else on a thread where it may block.
    ///
    /// # Cancel safety
    /// Not cancel safe: entries may be stored although the future was dropped. What is appended or loaded
    /// afterwards comes after them.
    async fn append(
        &self,
        head: &EntryHead,
        entries: &[Entry<'_>],
        durability: Durability,
    ) -> Result<(), SessionError> {
        if let Some(appended) = self.0.append_at_once(head, entries, durability) {
            return appended;
        }
        let own: Option<Vec<OwnEntry>> = entries.iter().map(OwnEntry::of).collect();
        let unknown = || self.0.unstorable("this version has no line for this kind of entry".to_owned());
        let (own, head) = (own.ok_or_else(unknown)?, head.clone());
        let turn = Arc::clone(&self.0.queue).lock_owned().await;
        let shared = Arc::clone(&self.0);
        let append = move || {
            let entries: Vec<_> = own.iter().map(OwnEntry::entry).collect();
            shared.append(&head, &entries, durability, Some(turn))
        };
        blocking::run(append).await?
    }

    async fn replace(&self, head: &EntryHead, messages: &[Arc<Message>]) -> Result<bool, SessionError> {
        let turn = Arc::clone(&self.0.queue).lock_owned().await;
        let (session, head, messages) = (self.clone(), head.clone(), messages.to_vec());
        let replace = move || {
            let _turn = turn;
            session.replace_blocking(&head, &messages)
        };
        blocking::run(replace).await??;
        Ok(true)
    }

    async fn load(&self) -> Result<Loaded, SessionError> {
        let turn = Arc::clone(&self.0.queue).lock_owned().await;
        let shared = Arc::clone(&self.0);
        let load = move || {
            let _turn = turn;
            shared.scan(&mut *shared.at_rest()?)
        };
        Ok(blocking::run(load).await??)
    }

    fn notice(&self) -> Option<SessionError> {
        self.0.state.try_lock()?.notice.take()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Err(error) = self.at_rest() {
            tracing::warn!(path = %self.home.path.display(), %error, "entries that were not written yet are lost");
        }
        if let Some(file) = &self.state().file {
            release(file);
        }
    }
}

/// Opens the session file, if there is one, and locks it. The owner of the lock file is the only one who puts
/// another file in its place.
fn own(home: &Home, lock: &Held) -> Result<Option<File>, Error> {
    let (named, real) = (&home.path, &home.real);
    let file = match fs::OpenOptions::new().read(true).append(true).open(real) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(io_error(Action::Open, named, source)),
    };
    hold(&file, lock.left_by().is_some()).map_err(|refused| refused_lock(refused, named, real))?;
    match is_at(&file, real) {
        Ok(true) => Ok(Some(file)),
        Ok(false) => Err(Error::Disturbed { path: named.clone(), how: Disturbance::Replaced }),
        Err(source) => Err(io_error(Action::Open, named, source)),
    }
}

/// An existing session that is owned until this is dropped.
pub(super) struct Owned {
    pub(super) home: Home,
    /// Its file, when it has one.
    file: Option<File>,
    _lock: Held,
}

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            release(file);
        }
    }
}

impl Owned {
    /// Puts these bytes in the place of the file, which stays locked until this is dropped.
    pub(super) fn replace(&mut self, disk: &Disk, bytes: &[u8]) -> io::Result<()> {
        let permissions = fs::metadata(&self.home.real)?.permissions();
        disk.put_in_place(&self.home.real, bytes, Some(permissions), |file| {
            hold_new(&file)?;
            self.file = Some(file);
            Ok(())
        })
    }
}

/// Takes ownership of an existing session.
pub(super) fn lock(path: &Path) -> Result<Owned, Error> {
    let missing = || Error::NotFound { path: path.into() };
    let home = Home::of(path, false)?;
    if !home.exists()? {
        return Err(missing());
    }
    let lock = home.lock()?;
    let file = if home.rows.is_none() { Some(own(&home, &lock)?.ok_or_else(missing)?) } else { None };
    Ok(Owned { home, file, _lock: lock })
}
