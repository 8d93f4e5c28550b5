//! Where a thread's transcript is kept.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::CompactionNote;
use crate::ids::{CallId, RunId, SessionId, TurnId};
use crate::message::Message;
use crate::outcome::{Stop, StopReason, TotalUsage};
use crate::time::Time;
use crate::tool::RetryClass;
use crate::transcript::{Defect, Plan};
use crate::twin;

/// When something happened, and in which run and turn.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EntryHead {
    /// When.
    pub at: Time,
    /// The run.
    pub run: Option<RunId>,
    /// The turn of the run, from 1.
    pub turn: u32,
    /// The turn's id.
    pub turn_id: Option<TurnId>,
    /// The hash of the descriptor in force. A session keeps the one of its first entry.
    pub descriptor: Option<Arc<str>>,
}

impl EntryHead {
    /// The head of entries of a turn.
    pub fn new(at: Time, run: Option<RunId>, turn: u32, turn_id: Option<TurnId>) -> Self {
        Self { at, run, turn, turn_id, descriptor: None }
    }
}

/// One thing to store. Entries are written in the order in which they are given.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Entry<'a> {
    /// A message of the transcript.
    Message(&'a Arc<Message>),
    /// A call is about to run: from here on it may have had effects.
    CallStarted {
        /// The call.
        call: &'a CallId,
        /// The attempt, from 1.
        attempt: u32,
        /// What a restart may do with it.
        class: &'a RetryClass,
    },
    /// A call has finished before an earlier one of its batch; its message follows later, in call order.
    CallFinished {
        /// The call.
        call: &'a CallId,
        /// The attempt, from 1.
        attempt: u32,
        /// What a restart may do with it.
        class: &'a RetryClass,
        /// The message that will follow.
        result: &'a Arc<Message>,
    },
    /// The view, or the transcript itself, became shorter. Nothing that was stored before is removed.
    Compaction {
        /// What was done.
        note: &'a CompactionNote,
        /// What is shown from here on, over the transcript as it is now.
        plan: &'a Plan,
        /// Whether the transcript itself is what the plan shows from here on; otherwise only the view is.
        permanent: bool,
    },
    /// A run ended.
    RunEnd {
        /// Why.
        stop: &'a Stop,
        /// What it used.
        usage: &'a TotalUsage,
    },
}

/// How safe an append must be when it returns, from the least on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Durability {
    /// Handed to the operating system: survives the end of the process.
    #[default]
    Flush,
    /// On stable storage: survives the end of the machine. Asked for before an `unsafe` call and at the
    /// end of a turn.
    Sync,
}

/// A call that a session shows as started, without a result among its messages.
///
/// ```
/// use harness_core::port::OpenCall;
/// use harness_core::tool::RetryClass;
///
/// // After a crash: what runs again, and what nobody knows the end of.
/// let open = OpenCall::new("c1".into(), 1, RetryClass::Unsafe, None);
/// assert!(open.result.is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct OpenCall {
    /// The call.
    pub call: CallId,
    /// The last attempt that started.
    pub attempt: u32,
    /// What a restart may do with it.
    pub class: RetryClass,
    /// Its result, when it had finished before the session ended.
    pub result: Option<Arc<Message>>,
}

impl OpenCall {
    /// A started call, and its result when it had finished.
    pub fn new(call: CallId, attempt: u32, class: RetryClass, result: Option<Arc<Message>>) -> Self {
        Self { call, attempt, class, result }
    }
}

/// A last line that was not written to its end. It was left out.
///
/// ```
/// use harness_core::port::{Loaded, OtherDescriptor, TornTail};
///
/// let mut loaded = Loaded::default();
/// loaded.torn_tail = Some(TornTail::new(812, 37));
/// loaded.descriptor = Some("v1".into());
/// let refused: Option<OtherDescriptor> = loaded.check_descriptor(Some("v2")).err();
/// assert!(refused.is_some());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TornTail {
    /// The line, from 1.
    pub line: u64,
    /// Bytes that were left out.
    pub bytes: u64,
}

impl TornTail {
    /// The line and the bytes that were left out.
    pub fn new(line: u64, bytes: u64) -> Self {
        Self { line, bytes }
    }
}

/// What a session holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loaded {
    /// The transcript.
    pub messages: Vec<Arc<Message>>,
    /// Calls of the last batch that had started, in the order of their start; those with a result among
    /// the messages are left out.
    pub open_calls: Vec<OpenCall>,
    /// Whether the last run that was begun has ended.
    pub ended: bool,
    /// Why it ended; `None` when it has not, or the session does not say.
    pub stop: Option<StopReason>,
    /// The view to go on with, when the last compaction was one of the view.
    pub plan: Option<Plan>,
    /// A tail that was left out.
    pub torn_tail: Option<TornTail>,
    /// What was wrong with calls and results of what is stored; `messages` is repaired.
    pub repairs: Vec<TranscriptRepair>,
    /// The hash of the descriptor under which the session was started; `None` when it names none.
    pub descriptor: Option<Arc<str>>,
}

impl Loaded {
    /// Checks that the session was started under this descriptor: continuing it under another one is an explicit
    /// choice (law 9). A session that names none fits all.
    ///
    /// # Errors
    /// Both hashes, when they differ.
    pub fn check_descriptor(&self, here: Option<&str>) -> Result<(), OtherDescriptor> {
        match &self.descriptor {
            Some(started) if Some(&**started) != here => {
                Err(OtherDescriptor { started: Arc::clone(started), here: here.map(Into::into) })
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// A session that was started under another descriptor than the one in force. Nothing was asked, and nothing ran.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the session was started under descriptor {started}, this is {}",
    here.as_ref().map_or_else(|| "no descriptor".to_owned(), |hash| format!("descriptor {hash}"))
)]
pub struct OtherDescriptor {
    /// The hash of the descriptor of the session.
    pub started: Arc<str>,
    /// The hash of the one in force, if any.
    pub here: Option<Arc<str>>,
}

impl OtherDescriptor {
    /// A stable code.
    pub const KIND: &str = "session.other_descriptor";

    /// What to do about it.
    pub const HINT: &str =
        "use the descriptor that the session was started under, another session, or allow any descriptor";
}

/// A call or a result of a stored transcript that was repaired when it was loaded
/// ([`transcript::repair`](crate::transcript::repair)).
///
/// ```
/// use harness_core::port::TranscriptRepair;
///
/// fn report(repairs: &[TranscriptRepair]) -> Vec<String> {
///     repairs.iter().map(|repair| repair.to_string()).collect()
/// }
/// # assert!(report(&[]).is_empty());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TranscriptRepair {
    /// The line of its message, from 1, where the store has lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// What was wrong; its position is that in the transcript as it was stored.
    pub defect: Defect,
}

impl TranscriptRepair {
    /// A repair of the message in a line.
    pub fn new(line: Option<u64>, defect: Defect) -> Self {
        Self { line, defect }
    }
}

impl fmt::Display for TranscriptRepair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.defect),
            None => write!(f, "message {}: {}", self.defect.at.saturating_add(1), self.defect),
        }
    }
}

/// Why a session could not be read or written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct SessionError {
    /// A stable code, for example `session.locked`.
    pub kind: Arc<str>,
    /// What happened, where, and what to do.
    pub message: String,
}

impl SessionError {
    /// A session error.
    pub fn new(kind: impl Into<Arc<str>>, message: impl Into<String>) -> Self {
        Self { kind: kind.into(), message: message.into() }
    }
}

/// Keeps one thread's transcript. One writer at a time.
///
/// An entry that was appended is there when the session is loaded again, whatever happens in between
/// (law 4).
///
/// ```
/// use std::sync::{Arc, Mutex};
///
/// use harness_core::message::Message;
/// use harness_core::port::{Durability, Entry, EntryHead, Loaded, Session, SessionError};
///
/// /// A session in memory, of messages alone.
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
    /// The session's name, when it has one.
    fn id(&self) -> Option<SessionId> {
        None
    }

    /// Appends without waiting, when the store can: an in-memory store always can. `None` is no failure:
    /// nothing was stored, and [`Session::append`] does it. A store that would have to wait for a disk, a
    /// lock or another task gives `None`, because this runs on a thread that drives other tasks, too.
    fn try_append(
        &self,
        _head: &EntryHead,
        _entries: &[Entry<'_>],
        _durability: Durability,
    ) -> Option<Result<(), SessionError>> {
        None
    }

    /// Appends entries in order, as safely as asked. Nothing cuts it off, because what is not known to be
    /// stored must not be passed over: a store that may hang bounds its own waiting and fails then. A panic
    /// counts as failed.
    ///
    /// # Errors
    /// Nothing of the entries counts as stored then; they are given again with the next append.
    fn append(
        &self,
        head: &EntryHead,
        entries: &[Entry<'_>],
        durability: Durability,
    ) -> impl Future<Output = Result<(), SessionError>> + Send;

    /// What happened to the store that its user has to know, although nothing is lost: its file was removed
    /// and written again, for example. Given once; asked after appends.
    fn notice(&self) -> Option<SessionError> {
        None
    }

    /// Makes the session hold these messages and nothing else, and frees what it held: one that is in the
    /// session keeps its entry, records of calls stay as long as their call, and of the run states the last
    /// one. Whether it did: the default only appends, `false`.
    ///
    /// # Errors
    /// When it cannot be written; what it held before is still there then.
    fn replace(
        &self,
        _head: &EntryHead,
        _messages: &[Arc<Message>],
    ) -> impl Future<Output = Result<bool, SessionError>> + Send {
        std::future::ready(Ok(false))
    }

    /// Reads everything. The messages are a legal transcript: a store repairs what breaks the pairing of calls
    /// and results, and reports it ([`Loaded::repairs`]).
    ///
    /// # Errors
    /// When the store cannot be read, is damaged anywhere but in its last line, or is of a newer version.
    fn load(&self) -> impl Future<Output = Result<Loaded, SessionError>> + Send;
}

twin! {
    DynSession of Session {
        async fn append_boxed = append(head: &'a EntryHead, entries: &'a [Entry<'a>], durability: Durability) -> Result<(), SessionError>;
        async fn replace_boxed = replace(head: &'a EntryHead, messages: &'a [Arc<Message>]) -> Result<bool, SessionError>;
        async fn load_boxed = load() -> Result<Loaded, SessionError>;
        fn session_id = id() -> Option<SessionId>;
        fn try_append_dyn = try_append(head: &EntryHead, entries: &[Entry<'_>], durability: Durability) -> Option<Result<(), SessionError>>;
        fn take_notice = notice() -> Option<SessionError>;
    }
}
