//! Session port: storage of a thread's transcript.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::CompactionNote;
use crate::ids::{CallId, RunId, SessionId, TurnId};
use crate::json::Json;
use crate::message::Message;
use crate::outcome::{Stop, StopReason, TotalUsage};
use crate::time::Time;
use crate::tool::RetryClass;
use crate::transcript::{Defect, Plan};
use crate::twin;

/// Time, run and turn of entries.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EntryHead {
    /// Time.
    pub at: Time,
    /// Run.
    pub run: Option<RunId>,
    /// Turn of the run, starting at 1.
    pub turn: u32,
    /// Turn id.
    pub turn_id: Option<TurnId>,
    /// Hash of the descriptor. A session keeps that of its first entry.
    pub descriptor: Option<Arc<str>>,
}

impl EntryHead {
    /// Creates the head of a turn's entries.
    pub fn new(at: Time, run: Option<RunId>, turn: u32, turn_id: Option<TurnId>) -> Self {
        Self { at, run, turn, turn_id, descriptor: None }
    }
}

/// Entry to store, in the given order.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Entry<'a> {
    /// Message of the transcript.
    Message(&'a Arc<Message>),
    /// A call is about to run and may have effects from here on.
    CallStarted {
        /// Call.
        call: &'a CallId,
        /// Attempt, starting at 1.
        attempt: u32,
        /// Rule for repeating it.
        class: &'a RetryClass,
    },
    /// A call finished before an earlier one of its batch; its message follows in call order.
    CallFinished {
        /// Call.
        call: &'a CallId,
        /// Attempt, starting at 1; 0 if a person denied the call before it started.
        attempt: u32,
        /// Rule for repeating it.
        class: &'a RetryClass,
        /// Message that will follow.
        result: &'a Arc<Message>,
    },
    /// Compaction of the view or of the transcript. Stored entries are kept.
    Compaction {
        /// Description.
        note: &'a CompactionNote,
        /// Plan from here on, over the current transcript.
        plan: &'a Plan,
        /// Whether the plan replaces the transcript itself, not only the view.
        permanent: bool,
    },
    /// State of a tool that belongs to the thread, from here on ([`Stateful`](super::Stateful)).
    State {
        /// Name of the state.
        name: &'a str,
        /// State.
        state: &'a Json,
    },
    /// End of a run.
    RunEnd {
        /// Stop reason and evidence.
        stop: &'a Stop,
        /// Usage.
        usage: &'a TotalUsage,
    },
}

/// Durability of an append, in ascending order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Durability {
    /// Passed to the operating system: survives a crash of the process.
    #[default]
    Flush,
    /// On stable storage: survives a crash of the machine. Required before an `unsafe` call and at the end of a turn.
    Sync,
}

/// Call that started or was denied, without a result among the messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct OpenCall {
    /// Call id.
    pub call: CallId,
    /// Last attempt; 0 if a person denied the call before it started.
    pub attempt: u32,
    /// Rule for repeating it.
    pub class: RetryClass,
    /// Result, if it had finished.
    pub result: Option<Arc<Message>>,
}

impl OpenCall {
    /// Creates a started call.
    pub fn new(call: CallId, attempt: u32, class: RetryClass, result: Option<Arc<Message>>) -> Self {
        Self { call, attempt, class, result }
    }

    /// Whether it has started; a call that a person denied before has not.
    pub fn has_started(&self) -> bool {
        self.attempt > 0
    }
}

/// Incomplete last line, which was skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TornTail {
    /// Line, starting at 1.
    pub line: u64,
    /// Skipped bytes.
    pub bytes: u64,
}

/// Content of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loaded {
    /// Transcript, repaired.
    pub messages: Vec<Arc<Message>>,
    /// Started calls of the last batch without a result among the messages, in order of their start.
    pub open_calls: Vec<OpenCall>,
    /// Whether the last run has ended.
    pub ended: bool,
    /// Stop reason of the last run, if it has ended and the session records it.
    pub stop: Option<StopReason>,
    /// View to continue with, if the last compaction was not permanent.
    pub plan: Option<Plan>,
    /// Incomplete last line, if any.
    pub torn_tail: Option<TornTail>,
    /// Repairs of calls and results.
    pub repairs: Vec<TranscriptRepair>,
    /// Hash of the session's descriptor, if recorded.
    pub descriptor: Option<Arc<str>>,
    /// Last states of the thread's tools, by name.
    pub states: BTreeMap<String, Json>,
}

impl Loaded {
    /// Checks the descriptor: resuming with a different one is an explicit choice (law 9). A session without a recorded
    /// descriptor fits all.
    ///
    /// # Errors
    /// `session.other_descriptor` with both hashes, if they differ.
    pub fn check_descriptor(&self, here: Option<&str>) -> Result<(), SessionError> {
        match &self.descriptor {
            Some(started) if Some(&**started) != here => {
                let here =
                    here.map_or_else(|| "no descriptor".to_owned(), |hash| format!("descriptor {hash}"));
                let text = format!("the session was started under descriptor {started}, this is {here}");
                Err(SessionError::new("session.other_descriptor", text))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// Repair of a stored transcript ([`transcript::repair`](crate::transcript::repair)).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TranscriptRepair {
    /// Line of the message, starting at 1, if the store has lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// Defect, with its position in the stored transcript.
    pub defect: Defect,
}

impl fmt::Display for TranscriptRepair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.defect),
            None => write!(f, "message {}: {}", self.defect.at.saturating_add(1), self.defect),
        }
    }
}

/// Error of a session store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct SessionError {
    /// Stable code, for example `session.locked`.
    pub kind: Arc<str>,
    /// Message: what failed, where, and what to do.
    pub message: String,
}

impl SessionError {
    /// Creates an error.
    pub fn new(kind: impl Into<Arc<str>>, message: impl Into<String>) -> Self {
        Self { kind: kind.into(), message: message.into() }
    }
}

/// Store of one thread's transcript, with one writer at a time. Appended entries survive crashes (law 4).
///
/// ```
/// use std::sync::{Arc, Mutex};
///
/// use harness_core::message::Message;
/// use harness_core::port::{Durability, Entry, EntryHead, Loaded, Session, SessionError};
///
/// /// Stores messages in memory.
/// #[derive(Default)]
/// struct Memory(Mutex<Vec<Arc<Message>>>);
///
/// impl Session for Memory {
///     async fn append(
///         &self,
///         _: &EntryHead,
///         entries: &[Entry<'_>],
///         _: Durability,
///     ) -> Result<(), SessionError> {
///         let messages = entries.iter().filter_map(|entry| match entry {
///             Entry::Message(message) => Some(Arc::clone(message)),
///             _ => None,
///         });
///         self.0.lock().map_err(|e| SessionError::new("memory.poisoned", e.to_string()))?.extend(messages);
///         Ok(())
///     }
///
///     async fn load(&self) -> Result<Loaded, SessionError> {
///         let messages = self.0.lock().map_err(|e| SessionError::new("memory.poisoned", e.to_string()))?.clone();
///         let mut loaded = Loaded::default();
///         loaded.messages = messages;
///         Ok(loaded)
///     }
/// }
/// ```
pub trait Session: Send + Sync {
    /// Returns the session's name, if any.
    fn id(&self) -> Option<SessionId> {
        None
    }

    /// Appends entries in order, with the given durability. It is never interrupted: a store that may hang must have a
    /// timeout. A panic counts as an error.
    ///
    /// # Errors
    /// None of the entries counts as stored; they are part of the next append.
    fn append(
        &self,
        head: &EntryHead,
        entries: &[Entry<'_>],
        durability: Durability,
    ) -> impl Future<Output = Result<(), SessionError>> + Send;

    /// Returns a notice for the user, once, for example that the session file was removed and written again. Called after
    /// appends.
    fn notice(&self) -> Option<SessionError> {
        None
    }

    /// Replaces the content by these messages. Entries of kept messages, records of their calls, the last run state
    /// and the last states of tools are kept. Returns false if the store only appends (the default).
    ///
    /// # Errors
    /// If it cannot be written; the content is unchanged.
    fn replace(
        &self,
        _head: &EntryHead,
        _messages: &[Arc<Message>],
    ) -> impl Future<Output = Result<bool, SessionError>> + Send {
        std::future::ready(Ok(false))
    }

    /// Loads the session. The store repairs the pairing of calls and results, and reports it ([`Loaded::repairs`]).
    ///
    /// # Errors
    /// If the store cannot be read, is damaged except in its last line, or has a newer version.
    fn load(&self) -> impl Future<Output = Result<Loaded, SessionError>> + Send;
}

twin! {
    DynSession of Session {
        async fn append_boxed = append(head: &'a EntryHead, entries: &'a [Entry<'a>], durability: Durability) -> Result<(), SessionError>;
        async fn replace_boxed = replace(head: &'a EntryHead, messages: &'a [Arc<Message>]) -> Result<bool, SessionError>;
        async fn load_boxed = load() -> Result<Loaded, SessionError>;
        fn session_id = id() -> Option<SessionId>;
        fn take_notice = notice() -> Option<SessionError>;
    }
}
