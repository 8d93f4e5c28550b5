//! The session of a vector's thread.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use harness::session::{FileSession, MemorySession, OpenOptions};
use harness_core::ThreadId;
use harness_core::message::Message;
use harness_core::port::{Durability, DynSession, Entry, EntryHead, Loaded, Session, SessionError};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::words::{self, Options};
use crate::Done;
use crate::jsonl_session::{failure, lines};

/// Store of a vector's thread.
pub(super) struct Sessions {
    kind: words::Session,
    folder: tempfile::TempDir,
    memory: Arc<MemorySession>,
    file: Mutex<Option<Arc<FileSession>>>,
    /// Runs whose appends fail, and runs so far.
    failing: u64,
    runs: Arc<AtomicU64>,
}

impl Sessions {
    pub(super) fn new(options: &Options) -> Done<Self> {
        let sessions = Self {
            kind: options.session,
            folder: tempfile::tempdir().map_err(|e| e.to_string())?,
            memory: Arc::new(MemorySession::new()),
            file: Mutex::default(),
            failing: options.fail_appends,
            runs: Arc::default(),
        };
        if let Some(seed) = &options.seed_file {
            std::fs::write(sessions.path(), seed).map_err(|e| e.to_string())?;
        }
        Ok(sessions)
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("session.jsonl")
    }

    /// Whether the thread has a session at all.
    pub(super) fn any(&self) -> bool {
        self.kind != words::Session::No
    }

    /// The thread is closed: the file may be opened again.
    pub(super) fn release(&self) {
        *self.file.lock() = None;
    }

    /// A run begins.
    pub(super) fn count_run(&self) {
        self.runs.fetch_add(1, Ordering::Relaxed);
    }

    /// Content of the session at the end.
    pub(super) async fn report(&self, got: &mut Map<String, Value>) -> Done<()> {
        if self.kind == words::Session::Memory {
            let loaded = Session::load(&*self.memory).await.map_err(|e| e.message)?;
            got.insert("session_count".to_owned(), json!(loaded.messages.len()));
        } else if self.any() {
            got.insert("session".to_owned(), self.lines()?);
        }
        Ok(())
    }

    fn lines(&self) -> Done<Value> {
        if self.path().exists() { lines(&self.path()) } else { Ok(json!([])) }
    }

    /// Reason why the session cannot be loaded.
    pub(super) fn failure(&self, error: &SessionError) -> Value {
        failure(&self.path(), error)
    }
}

/// The port over [`Sessions`].
pub(super) struct Opener(pub(super) Arc<Sessions>);

impl harness_runtime::Sessions for Opener {
    async fn open(&self, _: &ThreadId) -> Result<Arc<dyn DynSession>, SessionError> {
        let sessions = &self.0;
        if sessions.kind == words::Session::Memory {
            return Ok(Arc::clone(&sessions.memory) as _);
        }
        let file = Arc::new(FileSession::open(sessions.path(), OpenOptions::new())?);
        *sessions.file.lock() = Some(Arc::clone(&file));
        if sessions.kind == words::Session::Failing {
            let (until, runs) = (sessions.failing, Arc::clone(&sessions.runs));
            return Ok(Arc::new(Failing { file, until, runs }) as _);
        }
        Ok(file as _)
    }
}

/// A session whose appends fail during the first runs.
struct Failing {
    file: Arc<FileSession>,
    until: u64,
    runs: Arc<AtomicU64>,
}

impl Session for Failing {
    async fn append(
        &self,
        head: &EntryHead,
        entries: &[Entry<'_>],
        durability: Durability,
    ) -> Result<(), SessionError> {
        if self.runs.load(Ordering::Relaxed) <= self.until {
            return Err(SessionError::new("session.write_failed", "the append fails as the vector wants"));
        }
        self.file.append(head, entries, durability).await
    }

    async fn replace(&self, head: &EntryHead, messages: &[Arc<Message>]) -> Result<bool, SessionError> {
        self.file.replace(head, messages).await
    }

    async fn load(&self) -> Result<Loaded, SessionError> {
        self.file.load().await
    }
}
