//! Session files of conversations, one for each, with their complete history.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use harness::core::message::{Message, UserMessage};
use harness::core::port::{DynSession, EntryHead, Session as _, SessionError};
use harness::core::{EntryId, Json, ThreadId, Time};
use harness::runtime::Sessions;
use harness::session::{Body, FileSession, ForkOptions, Leaf, Location, Note, Tree};
use parking_lot::Mutex;

use super::attach;
use crate::error::CliError;
use crate::session::{options, stem};

/// Open conversations: one for each thread of this chat.
#[derive(Clone, Debug, Default)]
pub(super) struct Store(Arc<Mutex<HashMap<ThreadId, FileSession>>>);

/// Result of `/undo`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Undone {
    /// Number of the user's messages.
    pub(super) messages: usize,
    /// Text of the first of them.
    pub(super) text: String,
}

impl Store {
    /// Opens or creates a file and locks it. The thread is named after the session.
    pub(super) fn open(&self, path: &Path, meta: Json, now: Time) -> Result<ThreadId, CliError> {
        let stem = stem(path);
        let options = options().id(format!("{stem}-{:x}", now.0)).meta(meta);
        let session = FileSession::open(path, options)?;
        let thread = session.id().map_or(stem, |id| id.as_str().to_owned());
        let thread = ThreadId::from(thread);
        self.0.lock().insert(thread.clone(), session);
        Ok(thread)
    }

    /// Session of a thread.
    pub(super) fn session(&self, thread: &ThreadId) -> Option<FileSession> {
        self.0.lock().get(thread).cloned()
    }

    /// Session file of a thread.
    pub(super) fn path(&self, thread: &ThreadId) -> Option<PathBuf> {
        self.session(thread).map(|session| session.path().to_owned())
    }

    /// Session of a thread that has messages.
    fn written(&self, thread: &ThreadId) -> Option<FileSession> {
        self.session(thread).filter(|session| Location::of(session.path()).exists().unwrap_or(true))
    }

    /// Returns to the state before the last `count` messages of the user. They stay in the file on a named branch. `None`
    /// without messages.
    pub(super) fn undo(
        &self,
        thread: &ThreadId,
        count: usize,
        now: Time,
    ) -> Result<Option<Undone>, CliError> {
        let Some(session) = self.written(thread) else { return Ok(None) };
        let (tree, leaf) = (session.tree()?, session.leaf()?);
        let leaf = leaf.as_ref().map_or(Leaf::Start, Leaf::At);
        let said: Vec<_> = tree.path(leaf).filter_map(|node| Some((node, said(&node.body)?))).collect();
        let from = said.len().saturating_sub(count);
        let Some((node, text)) = said.get(from) else { return Ok(None) };
        session.branch(node.parent.as_ref())?;
        // The last line of a file is where it goes on when it is opened again.
        let head = EntryHead::new(now, None, 0, None);
        session.note(&head, &Note::label(node.id.clone(), "undone"))?;
        Ok(Some(Undone { messages: said.len() - from, text: text.clone() }))
    }

    /// Copies a conversation into a new file and opens it. `None` without messages.
    pub(super) fn fork(
        &self,
        thread: &ThreadId,
        path: &Path,
        now: Time,
    ) -> Result<Option<ThreadId>, CliError> {
        let Some(session) = self.written(thread) else { return Ok(None) };
        let (tree, leaf) = (session.tree()?, session.leaf()?);
        let fork = ForkOptions::new(format!("{}-{:x}", stem(path), now.0), now);
        tree.fork(leaf.as_ref().map_or(Leaf::Start, Leaf::At), fork)?.save(path, &options())?;
        self.open(path, Json::empty_object(), now).map(Some)
    }

    /// The conversation as Markdown. `None` without messages.
    pub(super) fn markdown(&self, thread: &ThreadId) -> Result<Option<String>, CliError> {
        let Some(session) = self.written(thread) else { return Ok(None) };
        let (tree, leaf): (Tree, Option<EntryId>) = (session.tree()?, session.leaf()?);
        let mut text = Vec::new();
        tree.write_markdown(leaf.as_ref().map_or(Leaf::Start, Leaf::At), &mut text)
            .map_err(|source| CliError::Io { action: "write the conversation", source })?;
        Ok(Some(String::from_utf8_lossy(&text).into_owned()))
    }
}

impl Sessions for Store {
    async fn open(&self, thread: &ThreadId) -> Result<Arc<dyn DynSession>, SessionError> {
        let session = self.session(thread);
        let missing =
            || SessionError::new("session.not_open", format!("the session of `{thread}` is not open"));
        session.map(|session| Arc::new(session) as _).ok_or_else(missing)
    }
}

/// Text of the user's message in an entry.
fn said(body: &Body) -> Option<String> {
    let Body::Message(message) = body else { return None };
    let Message::User(UserMessage { origin, .. }) = &**message else { return None };
    let own = !matches!(origin.as_deref(), Some("summary" | "hook"));
    own.then(|| attach::typed(message.content()))
}

/// Session files of a directory, most recently used first.
pub(super) fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<(SystemTime, PathBuf)> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .filter_map(|path| Some((path.metadata().ok()?.modified().ok()?, path)))
        .collect();
    files.sort_unstable_by(|left, right| right.cmp(left));
    files.into_iter().map(|(_, path)| path).collect()
}

/// Maximum bytes of a conversation that a selection searches.
const SEARCHED: usize = 64 << 10;

/// Text of a conversation in lower case: its latest messages that fit. Empty if it cannot be read.
pub(super) fn searched(path: &Path) -> String {
    let Ok(tree) = Tree::read(path, &options()) else { return String::new() };
    let mut text = String::new();
    for node in tree.nodes().iter().rev() {
        let Body::Message(message) = &node.body else { continue };
        let more = message.joined_text().to_lowercase();
        if text.len() + more.len() >= SEARCHED {
            break;
        }
        text += &more;
        text.push('\n');
    }
    text
}

/// Path of a new session beside another: a file in the same directory, or a thread in the same database.
pub(super) fn new_beside(session: &Path, now: Time) -> PathBuf {
    match Location::of(session) {
        Location::File(file) => new_file(file.parent().unwrap_or(Path::new("")), now),
        Location::Thread { database, .. } | Location::Database(database) => {
            let free = |path: &PathBuf| !Location::of(path).exists().unwrap_or(false);
            let named =
                |number: u32| PathBuf::from(format!("{}#{}-{number}", database.display(), file_name(now)));
            (1..1_000).map(named).find(free).unwrap_or_else(|| named(1_000))
        }
    }
}

fn file_name(now: Time) -> String {
    let name: String = now.iso().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    name.trim_end_matches('Z').to_owned()
}

/// Path of a new session file.
pub(super) fn new_file(folder: &Path, now: Time) -> PathBuf {
    let name = file_name(now);
    let free = |path: &PathBuf| !path.exists();
    let mut numbered = (1..1_000).map(|number| match number {
        1 => folder.join(format!("{name}.jsonl")),
        _ => folder.join(format!("{name}-{number}.jsonl")),
    });
    numbered.find(free).unwrap_or_else(|| folder.join(format!("{name}.jsonl")))
}

/// Directory of the conversations with a descriptor, or with the assistant in the current directory.
pub(super) fn folder(state: &Path, descriptor: Option<&Path>) -> PathBuf {
    let chats = state.join("chats");
    let place = descriptor.unwrap_or(Path::new("."));
    let whole = place.canonicalize().unwrap_or_else(|_| place.to_owned());
    let near = |path: Option<&std::ffi::OsStr>| path.unwrap_or_default().to_string_lossy().into_owned();
    let parent = match descriptor {
        Some(_) => near(whole.parent().and_then(Path::file_name)),
        None => "assistant".to_owned(),
    };
    let stem = near(whole.file_stem());
    let name = format!("{parent}-{stem}-{:016x}", fnv(whole.to_string_lossy().as_bytes()));
    chats.join(name.replace(|c: char| !(c.is_alphanumeric() || c == '-' || c == '_'), "_"))
}

/// A short name for a path that is equal on every start.
fn fnv(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use harness::core::message::AssistantMessage;
    use harness::core::port::{Durability, Entry};
    use harness::session::OpenOptions;

    use super::*;

    async fn said(session: &FileSession) -> Vec<String> {
        let loaded = session.load().await.unwrap();
        loaded.messages.iter().map(|message| message.joined_text()).collect()
    }

    async fn exchange(session: &FileSession, question: &str) {
        let head = EntryHead::new(Time(0), None, 0, None);
        let messages = [Message::user(question), Message::Assistant(AssistantMessage::text("yes"))];
        for message in messages {
            let entry = Arc::new(message);
            session.append(&head, &[Entry::Message(&entry)], Durability::Sync).await.unwrap();
        }
    }

    #[tokio::test]
    async fn what_is_taken_back_stays_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = new_file(folder.path(), Time(0));
        let store = Store::default();
        let thread = store.open(&path, Json::empty_object(), Time(0)).unwrap();
        let session = store.session(&thread).unwrap();
        for question in ["one", "two", "three"] {
            exchange(&session, question).await;
        }
        let undone = store.undo(&thread, 2, Time(1)).unwrap();
        assert_eq!(undone, Some(Undone { messages: 2, text: "two".to_owned() }));
        assert_eq!(said(&session).await, ["one", "yes"]);
        exchange(&session, "four").await;
        assert_eq!(said(&session).await, ["one", "yes", "four", "yes"]);
        let copy = new_file(folder.path(), Time(1));
        let fork = store.fork(&thread, &copy, Time(1)).unwrap().unwrap();
        assert_eq!(said(&store.session(&fork).unwrap()).await, ["one", "yes", "four", "yes"]);
        assert!(store.markdown(&thread).unwrap().unwrap().contains("four"));
        drop((store, session));
        let again = FileSession::open(&path, OpenOptions::new()).unwrap();
        assert_eq!(said(&again).await, ["one", "yes", "four", "yes"]);
        let everything = fs::read_to_string(&path).unwrap();
        assert!(["two", "three"].iter().all(|text| everything.contains(text)));
    }

    #[tokio::test]
    async fn selection_searches_the_latest_messages() {
        let folder = tempfile::tempdir().unwrap();
        let path = new_file(folder.path(), Time(0));
        let session = FileSession::open(&path, OpenOptions::new()).unwrap();
        exchange(&session, "First").await;
        exchange(&session, &"x".repeat(SEARCHED - 20)).await;
        exchange(&session, "Last").await;
        drop(session);
        let text = searched(&path);
        assert!(text.contains("last") && !text.contains("first"));
        assert_eq!(searched(&folder.path().join("none.jsonl")), "");
    }

    #[tokio::test]
    async fn everything_can_be_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = new_file(folder.path(), Time(0));
        let store = Store::default();
        let thread = store.open(&path, Json::empty_object(), Time(0)).unwrap();
        assert_eq!(store.undo(&thread, 1, Time(1)).unwrap(), None);
        let session = store.session(&thread).unwrap();
        exchange(&session, "one").await;
        assert_eq!(store.undo(&thread, 9, Time(1)).unwrap().map(|undone| undone.messages), Some(1));
        drop((store, session));
        let again = FileSession::open(&path, OpenOptions::new()).unwrap();
        assert_eq!(said(&again).await, Vec::<String>::new());
    }

    #[test]
    fn each_descriptor_has_a_folder_of_its_own() {
        let here = folder(Path::new("/state"), Some(Path::new("/a b/desk/harness.yaml")));
        let there = folder(Path::new("/state"), Some(Path::new("/c/desk/harness.yaml")));
        assert!(here.starts_with("/state/chats") && here != there);
        assert!(here.to_string_lossy().contains("desk-harness-"));
        assert!(folder(Path::new("/state"), None).to_string_lossy().starts_with("/state/chats/assistant-"));
    }
}
