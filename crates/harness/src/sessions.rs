//! Sessions of many threads: the files of a directory, or the threads of a database.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use harness_core::message::Message;
use harness_core::port::{DynSession, EntryHead, SessionError};
use harness_core::{Json, ThreadId};
use harness_runtime::Sessions;
use harness_session::{Body, FileSession, Leaf, Location, Note, OpenOptions, Tree};

/// How the files end.
const EXTENSION: &str = "jsonl";

/// The longest name of a file without its extension, in bytes: file systems have 255 at most.
const LONGEST: usize = 240;

/// Characters of a title, at most.
const TITLE: usize = 80;

/// Stores each thread of a [runtime](crate::Builder::build_runtime) as a JSON Lines file of one directory, or in one
/// SQLite database (feature `sqlite`), whose path ends in `.db`, `.sqlite` or `.sqlite3`, or in one PostgreSQL database
/// (feature `postgres`), whose URL begins with `postgres://`.
///
/// A file is named after its thread: letters, digits, `-`, `_` and inner dots are kept, each other byte is
/// `%` and two hexadecimal digits. A thread whose name comes out longer than 240 bytes cannot be opened. One
/// process owns a thread at a time; a second one is refused with its owner's name.
///
/// ```
/// use harness::SessionStore;
///
/// let store = SessionStore::new("sessions");
/// assert_eq!(store.path(&"support-17".into())?, std::path::Path::new("sessions/support-17.jsonl"));
/// assert_eq!(store.path(&"a/b".into())?, std::path::Path::new("sessions/a%2Fb.jsonl"));
/// let store = SessionStore::new("chats.db");
/// assert_eq!(store.path(&"a/b".into())?, std::path::Path::new("chats.db#a/b"));
/// # Ok::<(), harness::core::port::SessionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct SessionStore {
    place: PathBuf,
    options: OpenOptions,
    elsewhere: HashMap<ThreadId, PathBuf>,
}

/// A thread that a store holds.
///
/// ```
/// use harness::{SessionStore, StoredThread};
///
/// fn line(stored: &StoredThread) -> String {
///     let title = stored.title.as_deref().unwrap_or("untitled");
///     format!("{}: {title} ({} messages)", stored.thread, stored.messages)
/// }
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path();
///
/// let lines: Vec<String> = SessionStore::new(path).list()?.iter().map(line).collect();
/// # assert!(lines.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredThread {
    /// Name of the thread.
    pub thread: ThreadId,
    /// Path of its session.
    pub path: PathBuf,
    /// Title, or the first words of its user: one line of at most 80 characters.
    pub title: Option<String>,
    /// Messages of the conversation, as far as it goes now.
    pub messages: usize,
    /// Data of the caller ([`SessionStore::create`]).
    pub meta: Option<Json>,
    /// When it was created, as ISO text.
    pub created_at: Option<String>,
    /// When the last message was stored, as ISO text.
    pub last_at: Option<String>,
    /// Reason why it cannot be read.
    pub problem: Option<String>,
}

impl SessionStore {
    /// The sessions of a directory or a database, which appears with the first thread.
    pub fn new(place: impl Into<PathBuf>) -> Self {
        Self { place: place.into(), options: OpenOptions::new(), elsewhere: HashMap::new() }
    }

    /// How sessions are opened. Default [`OpenOptions::new`].
    #[must_use]
    pub fn options(mut self, options: OpenOptions) -> Self {
        self.options = options;
        self
    }

    /// Keeps one thread in a file of another place.
    #[must_use]
    pub fn at(mut self, thread: impl Into<ThreadId>, file: impl Into<PathBuf>) -> Self {
        self.elsewhere.insert(thread.into(), file.into());
        self
    }

    /// The path of a thread's session.
    ///
    /// # Errors
    /// `session.thread_name` for a name that is empty or too long.
    pub fn path(&self, thread: &ThreadId) -> Result<PathBuf, SessionError> {
        if let Some(file) = self.elsewhere.get(thread) {
            return Ok(file.clone());
        }
        if let Location::Database(database) = Location::of(&self.place) {
            return Ok(PathBuf::from(format!("{}#{thread}", database.display())));
        }
        let name = encoded(thread.as_str());
        if name.is_empty() || name.len() > LONGEST {
            let why = format!(
                "`{}` cannot be the name of a thread: as a file name it has {} bytes, and 1 to {LONGEST} are possible",
                thread.as_str().chars().take(TITLE).collect::<String>(),
                name.len()
            );
            return Err(SessionError::new("session.thread_name", why));
        }
        Ok(self.place.join(name).with_added_extension(EXTENSION))
    }

    /// The threads of the store, those with the latest message first. Reads every session.
    ///
    /// # Errors
    /// The directory or the database cannot be read; a missing one has no threads.
    pub fn list(&self) -> Result<Vec<StoredThread>, SessionError> {
        let place = Location::of(&self.place);
        if !place.exists()? {
            return Ok(Vec::new());
        }
        let paths = place.sessions()?.into_iter();
        let named = paths.filter_map(|path| Some((StoredThread::name(&path)?, path)));
        let mut threads: Vec<_> =
            named.map(|(thread, path)| StoredThread::of(thread, path, &self.options)).collect();
        threads.sort_by(|a, b| b.last_at.cmp(&a.last_at).then_with(|| a.thread.cmp(&b.thread)));
        Ok(threads)
    }

    /// Finds a thread; `None` if it is not stored. Reads its session.
    ///
    /// # Errors
    /// As of [`SessionStore::path`], and a database that cannot be read.
    pub fn find(&self, thread: &ThreadId) -> Result<Option<StoredThread>, SessionError> {
        let path = self.path(thread)?;
        if !Location::of(&path).exists()? {
            return Ok(None);
        }
        Ok(Some(StoredThread::of(thread.clone(), path, &self.options)))
    }

    /// Creates the session of a new thread with data of the caller, which [`StoredThread::meta`] returns. It is stored as
    /// it is: put no secret in it.
    ///
    /// # Errors
    /// As of [`SessionStore::path`] and [`FileSession::open`], and if it cannot be written.
    pub fn create(&self, thread: &ThreadId, head: &EntryHead, meta: Json) -> Result<(), SessionError> {
        let session = FileSession::open(self.path(thread)?, self.options.clone())?;
        session.note(head, &Note::SessionInfo { name: None, meta: Some(meta) })?;
        Ok(())
    }

    /// Permanently removes a thread without an owner. A missing thread is not an error.
    ///
    /// # Errors
    /// As of [`SessionStore::path`] and [`FileSession::remove`].
    pub fn remove(&self, thread: &ThreadId) -> Result<(), SessionError> {
        Ok(FileSession::remove(self.path(thread)?)?)
    }
}

impl Sessions for SessionStore {
    async fn open(&self, thread: &ThreadId) -> Result<Arc<dyn DynSession>, SessionError> {
        let session = FileSession::open_async(self.path(thread)?, self.options.clone()).await?;
        // An earlier owner may have been killed: nothing that it had started works beside what follows.
        let settled = harness_host::process::wait_for_orphans().await;
        settled.map_err(|left| SessionError::new("session.orphans", left.to_string()))?;
        Ok(Arc::new(session))
    }
}

/// The session of one thread.
pub(crate) struct OneSession {
    pub(crate) thread: ThreadId,
    pub(crate) session: Arc<dyn DynSession>,
}

impl Sessions for OneSession {
    async fn open(&self, thread: &ThreadId) -> Result<Arc<dyn DynSession>, SessionError> {
        if *thread != self.thread {
            let why = format!("the session belongs to another thread than `{thread}`");
            return Err(SessionError::new("session.of_another_thread", why));
        }
        Ok(Arc::clone(&self.session))
    }
}

impl StoredThread {
    /// The thread whose session is at a path; `None` for a file of others.
    fn name(path: &Path) -> Option<ThreadId> {
        Some(match Location::of(path) {
            Location::Thread { name, .. } => ThreadId::from(name),
            Location::File(file) | Location::Database(file) => {
                ThreadId::from(decoded(file.file_stem()?.to_str()?)?)
            }
        })
    }

    fn of(thread: ThreadId, path: PathBuf, options: &OpenOptions) -> Self {
        let unread = Self {
            thread,
            path,
            title: None,
            messages: 0,
            meta: None,
            created_at: None,
            last_at: None,
            problem: None,
        };
        match Tree::read(&unread.path, options) {
            Ok(tree) => unread.read(&tree),
            Err(error) => Self { problem: Some(error.to_string()), ..unread },
        }
    }

    fn read(self, tree: &Tree) -> Self {
        let loaded = tree.loaded(Leaf::Last);
        let title = tree.name().map(short).or_else(|| Self::title_of(loaded.messages.iter()));
        let last = tree.nodes().iter().rev().find(|node| matches!(node.body, Body::Message(_)));
        let last_at = last.map(|node| node.at.clone()).filter(|at| !at.is_empty());
        let created_at = tree.header().map(|header| header.created_at.clone()).filter(|at| !at.is_empty());
        Self {
            title,
            messages: loaded.messages.len(),
            meta: tree.meta().cloned(),
            created_at,
            last_at,
            ..self
        }
    }

    /// Title of a conversation without a name: the start of its first user message, in one line of at most 80 characters.
    pub fn title_of<'m>(messages: impl IntoIterator<Item = &'m Arc<Message>>) -> Option<String> {
        let first = messages.into_iter().find(|message| matches!(***message, Message::User(_)))?;
        Some(short(&first.joined_text()))
    }
}

/// One line of it, its beginning.
fn short(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ").chars().filter(|letter| !letter.is_control()).collect::<String>();
    match line.char_indices().nth(TITLE) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default().trim_end()),
        None => line,
    }
}

/// A name that is one file's, whatever is in it.
fn encoded(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for (at, byte) in name.bytes().enumerate() {
        let kept = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') || (byte == b'.' && at > 0);
        if kept {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// The name of which a file's name is made; `None` for a file that is not ours.
fn decoded(name: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next()?, rest.next()?];
        bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
    }
    let decoded = String::from_utf8(bytes).ok()?;
    (encoded(&decoded) == name).then_some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_has_one_file_in_the_folder() {
        #[track_caller]
        fn check(name: &str, file: &str) {
            assert_eq!(encoded(name), file);
            assert_eq!(decoded(file).as_deref(), Some(name));
        }
        check("support-17_b", "support-17_b");
        check("v1.2", "v1.2");
        check("..", "%2E.");
        check("../../etc/passwd", "%2E.%2F..%2Fetc%2Fpasswd");
        check("ä b%", "%C3%A4%20b%25");
    }

    #[test]
    fn files_of_others_are_not_listed() {
        assert_eq!(decoded("a b"), None);
        assert_eq!(decoded("50%"), None);
        assert_eq!(decoded("%zz"), None);
        assert_eq!(decoded("%41"), None, "would be written as A");
    }

    #[test]
    fn titles_are_one_short_line() {
        assert_eq!(short("  one\n two "), "one two");
        assert_eq!(short(&"word ".repeat(40)).chars().count(), 80);
    }
}
