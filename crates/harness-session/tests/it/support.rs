//! What several topics need.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use harness_core::message::{AssistantMessage, Block, Message, ToolCall, ToolResultMessage};
use harness_core::port::{Durability, Entry, EntryHead, Loaded, Session, SessionError};
use harness_core::transcript::repair;
use harness_core::{Json, RunId, Time, TurnId};
use harness_session::{FileSession, OpenOptions, Stored, unanswered};

/// A folder of its own for one test, and the session file in it.
pub(crate) struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    /// In memory where the system has such a folder: thousands of crash points sync what they write.
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap() }
    }

    /// A place whose session file holds `content`.
    pub(crate) fn with(content: impl AsRef<[u8]>) -> Self {
        let place = Self::new();
        std::fs::write(place.path(), content).unwrap();
        place
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("chat.jsonl")
    }

    pub(crate) fn beside(&self, suffix: &str) -> PathBuf {
        self.folder.path().join(format!("chat.jsonl{suffix}"))
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn open(&self) -> FileSession {
        FileSession::open(self.path(), options()).unwrap()
    }

    pub(crate) fn read(&self) -> Stored {
        FileSession::read(self.path(), &OpenOptions::new()).unwrap()
    }

    pub(crate) fn text(&self) -> String {
        std::fs::read_to_string(self.path()).unwrap()
    }

    /// The names of all files in the folder.
    pub(crate) fn files(&self) -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(self.folder.path())
            .unwrap()
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

/// Options whose header is the same with every version of this crate.
pub(crate) fn options() -> OpenOptions {
    OpenOptions::new().program("test", "1")
}

pub(crate) fn head() -> EntryHead {
    EntryHead::new(Time(1_767_225_600_000), Some(RunId::from("r1")), 1, Some(TurnId::from("r1.1")))
}

pub(crate) fn user(text: &str) -> Arc<Message> {
    Arc::new(Message::user(text))
}

pub(crate) fn call(id: &str) -> ToolCall {
    ToolCall::new(id, "refund", Json::parse(r#"{"cents":9007199254740993}"#).unwrap())
}

pub(crate) fn asks(ids: &[&str]) -> Arc<Message> {
    Arc::new(AssistantMessage::calls(ids.iter().map(|id| call(id))).into())
}

pub(crate) fn result(id: &str, text: &str) -> Arc<Message> {
    Arc::new(ToolResultMessage::new(&call(id), vec![Block::text(text)], false).into())
}

pub(crate) fn append(session: &FileSession, entries: &[Entry<'_>]) -> Result<(), SessionError> {
    session.append_blocking(&head(), entries, Durability::Flush)
}

pub(crate) fn say(session: &FileSession, text: &str) -> Result<(), SessionError> {
    append(session, &[Entry::Message(&user(text))])
}

/// What a run that goes on appends: a result for each call that has none, then the next message.
pub(crate) fn going_on(loaded: &Loaded) -> Vec<Arc<Message>> {
    let settled = unanswered(loaded).into_iter().map(|open| result(open.call.id.as_str(), "settled"));
    settled.chain([user("on")]).collect()
}

/// The transcript that a load makes of these messages, when nothing else is stored.
pub(crate) fn legal(messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
    repair(messages).messages.into_iter().map(|(message, _)| message).collect()
}

pub(crate) fn load(session: &impl Session) -> Result<Loaded, SessionError> {
    now(session.load())
}

/// What a store's future gives; stores of this crate never wait.
pub(crate) fn now<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// Every file and folder below `folder`, sorted, with its permissions.
pub(crate) fn tree(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut todo = vec![folder.to_path_buf()];
    while let Some(next) = todo.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            found.push(format!("{} {mode:o}", path.strip_prefix(folder).unwrap().display()));
            if path.is_dir() {
                todo.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The text of each message.
pub(crate) fn texts(loaded: &Loaded) -> Vec<String> {
    loaded.messages.iter().map(|message| message.joined_text()).collect()
}

/// A bare message: a line without a header before it.
pub(crate) fn bare(text: &str) -> String {
    format!("{{\"role\":\"user\",\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}\n")
}
