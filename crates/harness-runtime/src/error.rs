//! Errors of threads.

use harness_core::machine::ResumeError;
use harness_core::port::SessionError;
use harness_core::{ApprovalId, CallDigest, EntryId, Fault, RunId, StopReason, ThreadId, ToolName};

/// Error of a thread or the runtime. The end of a run is never an error: see its [`Report`](crate::Report).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// A run or a compaction is in progress. Nothing was started.
    #[error("thread `{thread}` is busy")]
    Busy {
        /// Id of the thread.
        thread: ThreadId,
    },
    /// The thread is closed.
    #[error("thread `{thread}` is closed")]
    Closed {
        /// Id of the thread.
        thread: ThreadId,
    },
    /// Nothing can be resumed.
    #[error("thread `{thread}` has an empty transcript: nothing can be continued")]
    EmptyTranscript {
        /// Id of the thread.
        thread: ThreadId,
    },
    /// The last run completed, and nothing new was said or waits: nothing was asked and nothing ran.
    #[error("nothing to resume: the run completed ({})", reason.as_str())]
    NothingToResume {
        /// Stop reason of the last run.
        reason: StopReason,
    },
    /// A user message without content was to be queued.
    #[error("thread `{thread}`: the message is empty")]
    EmptyMessage {
        /// Id of the thread.
        thread: ThreadId,
    },
    /// Names that the registry does not list, in the order in which they were given.
    #[error("unknown tools: {}", join(.names))]
    UnknownTools {
        /// Names of the tools.
        names: Vec<ToolName>,
    },
    /// No skill has that name.
    #[error("unknown skill: {name}")]
    UnknownSkill {
        /// Unknown name.
        name: String,
    },
    /// No prompt template has that name.
    #[error("unknown prompt template: {name}")]
    UnknownTemplate {
        /// Unknown name.
        name: String,
    },
    /// A queue that is full.
    #[error("the queue of thread `{thread}` is full: {bound} messages wait")]
    QueueFull {
        /// Id of the thread.
        thread: ThreadId,
        /// How many it holds at most.
        bound: usize,
    },
    /// A message that does not fit in the bytes that the queue of its thread may hold.
    #[error(
        "a message of {bytes} bytes does not fit in the queue of thread `{thread}`: {used} of {bound} bytes are taken"
    )]
    QueueBytesFull {
        /// Id of the thread.
        thread: ThreadId,
        /// Bytes of the message, as JSON.
        bytes: usize,
        /// Bytes that wait already.
        used: usize,
        /// Bytes that may wait ([`Limits::queue_bytes`](crate::Limits::queue_bytes)).
        bound: usize,
    },
    /// A message that does not fit in the bytes that the queues of all threads may hold together.
    #[error(
        "a message of {bytes} bytes for thread `{thread}` does not fit: all queues together hold at most {bound} bytes"
    )]
    AllQueuesFull {
        /// Id of the thread.
        thread: ThreadId,
        /// Bytes of the message, as JSON.
        bytes: usize,
        /// Bytes that may wait ([`Limits::total_queue_bytes`](crate::Limits::total_queue_bytes)).
        bound: usize,
    },
    /// No waiting message has that id: it was never there, was removed, or is delivered.
    #[error("no message `{entry}` waits in thread `{thread}`")]
    NotWaiting {
        /// Id of the thread.
        thread: ThreadId,
        /// Id of the entry.
        entry: EntryId,
    },
    /// A message has that id already.
    #[error("a message `{entry}` waits in thread `{thread}` already")]
    EntryExists {
        /// Id of the thread.
        thread: ThreadId,
        /// Id of the entry.
        entry: EntryId,
    },
    /// No call waits under this approval.
    #[error("approval `{approval}` of thread `{thread}` is not pending")]
    NotHeld {
        /// Id of the thread.
        thread: ThreadId,
        /// Id of the approval.
        approval: ApprovalId,
    },
    /// The decision was made about another call. Nothing was decided.
    #[error("approval `{approval}`: the decision is for digest {seen}, the call has digest {held}")]
    OtherCall {
        /// Id of the approval.
        approval: ApprovalId,
        /// The digest that the decision names.
        seen: CallDigest,
        /// The digest of the call.
        held: CallDigest,
    },
    /// The approval is settled: another decision was given before, or its run ended without one.
    #[error("approval `{approval}` is settled: another decision was given, or its run ended without one")]
    Decided {
        /// Id of the approval.
        approval: ApprovalId,
    },
    /// The output schema of a prompt is invalid.
    #[error("invalid output schema: {problem}")]
    OutputSchema {
        /// Problem of the schema.
        problem: String,
    },
    /// A continuation or a checkpoint that does not fit.
    #[error(transparent)]
    Resume(#[from] ResumeError),
    /// There is no checkpoint of the run.
    #[error("no checkpoint of run `{run}`: it was started elsewhere, or it has completed")]
    NoCheckpoint {
        /// Id of the run.
        run: RunId,
    },
    /// A run was to be resumed from a checkpoint, and none are kept.
    #[error("no checkpoints are kept: give the ports a store of them")]
    NoCheckpoints,
    /// The session of the thread was started under another descriptor, and
    /// [`ThreadConfig::any_descriptor`](crate::ThreadConfig::any_descriptor) is not set.
    #[error(transparent)]
    OtherDescriptor(SessionError),
    /// The session cannot be read or written.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// There is no compactor, or it failed.
    #[error("the transcript could not be made shorter: {0}")]
    Compaction(Fault),
    /// Tools could not be listed, or an agent not be prepared.
    #[error(transparent)]
    Part(Fault),
    /// The task that drove the run is gone: its tokio runtime was shut down, or it panicked.
    #[error("the run of thread `{thread}` was lost: its task is gone")]
    Lost {
        /// Id of the thread.
        thread: ThreadId,
    },
    /// The engine of durable threads cannot be reached, failed, or refused the request. The code is that of the error.
    #[error("{}", .0.message)]
    Engine(Fault),
    /// Threads of this kind cannot do this.
    #[error("threads on an engine do not support {what}")]
    Unsupported {
        /// Operation that is not supported.
        what: &'static str,
    },
    /// There is no tokio runtime to drive runs on: neither where the [`Runtime`](crate::Runtime) was made, nor here.
    #[error("there is no tokio runtime")]
    NoTokio,
}

fn join(names: &[ToolName]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// Classes of [`RuntimeError`]: how a caller, for example a server, has to treat an error. Exhaustive, so that a new
/// class or a new error without a class does not compile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// The request is invalid as it is: it names something unknown.
    Invalid,
    /// The named message or call is not pending.
    NotFound,
    /// The thread is not in a state that allows the request.
    Conflict,
    /// The thread is closed.
    Closed,
    /// A bound is reached; the request may succeed later.
    Full,
    /// Another process owns the session; the request may succeed there, or here once that process has ended.
    Elsewhere,
    /// The thread, its session or the process failed.
    Failed,
    /// Threads of this kind cannot do this.
    Unsupported,
}

impl RuntimeError {
    /// Returns the class of the error.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::EmptyMessage { .. }
            | Self::OutputSchema { .. }
            | Self::UnknownTools { .. }
            | Self::UnknownSkill { .. }
            | Self::UnknownTemplate { .. } => ErrorClass::Invalid,
            Self::NotWaiting { .. } | Self::NotHeld { .. } | Self::NoCheckpoint { .. } => {
                ErrorClass::NotFound
            }
            Self::Busy { .. }
            | Self::EmptyTranscript { .. }
            | Self::NothingToResume { .. }
            | Self::NoCheckpoints
            | Self::EntryExists { .. }
            | Self::OtherCall { .. }
            | Self::Decided { .. }
            | Self::Compaction(_)
            | Self::OtherDescriptor(_)
            | Self::Resume(_) => ErrorClass::Conflict,
            Self::Closed { .. } => ErrorClass::Closed,
            Self::QueueFull { .. } | Self::QueueBytesFull { .. } | Self::AllQueuesFull { .. } => {
                ErrorClass::Full
            }
            // Context of the caller that the agents do not declare, or need.
            Self::Part(fault) if fault.code.split('.').next() == Some("context") => ErrorClass::Invalid,
            Self::Session(error) if &*error.kind == "session.locked" => ErrorClass::Elsewhere,
            Self::Engine(fault) => class_of_engine(&fault.code),
            Self::Unsupported { .. } => ErrorClass::Unsupported,
            Self::Session(_) | Self::Part(_) | Self::Lost { .. } | Self::NoTokio => ErrorClass::Failed,
        }
    }

    /// A stable code.
    pub fn kind(&self) -> &str {
        match self {
            Self::Busy { .. } => "runtime.busy",
            Self::Closed { .. } => "runtime.closed",
            Self::EmptyTranscript { .. } => "runtime.empty_transcript",
            Self::NothingToResume { .. } => "runtime.nothing_to_resume",
            Self::EmptyMessage { .. } => "runtime.empty_message",
            Self::OutputSchema { .. } => "runtime.output_schema",
            Self::UnknownTools { .. } => "runtime.unknown_tools",
            Self::UnknownSkill { .. } => "runtime.unknown_skill",
            Self::UnknownTemplate { .. } => "runtime.unknown_template",
            Self::QueueFull { .. } => "runtime.queue_full",
            Self::QueueBytesFull { .. } => "runtime.queue_bytes_full",
            Self::AllQueuesFull { .. } => "runtime.all_queues_full",
            Self::NotWaiting { .. } => "runtime.not_waiting",
            Self::EntryExists { .. } => "runtime.entry_exists",
            Self::NotHeld { .. } => "runtime.not_held",
            Self::OtherCall { .. } => "runtime.other_call",
            Self::Decided { .. } => "runtime.decided",
            Self::Resume(error) => error.kind.as_str(),
            Self::NoCheckpoint { .. } => "runtime.no_checkpoint",
            Self::NoCheckpoints => "runtime.no_checkpoints",
            Self::OtherDescriptor(error) | Self::Session(error) => &error.kind,
            Self::Compaction(_) => "runtime.compaction",
            Self::Part(_) => "runtime.part",
            Self::Lost { .. } => "runtime.lost",
            Self::Engine(fault) => &fault.code,
            Self::Unsupported { .. } => "runtime.unsupported",
            Self::NoTokio => "runtime.no_tokio",
        }
    }

    /// Hint, if the message needs one.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Busy { .. } => {
                Some("queue the message with `execute`, `steer` or `follow_up`, or wait with `wait_idle`")
            }
            Self::NothingToResume { .. } => Some("prompt the thread, or queue a message first"),
            Self::UnknownTools { .. } => Some("bind the tools with `set_tools` first"),
            Self::UnknownSkill { .. } => Some("give the thread the skill with `set_skills` first"),
            Self::UnknownTemplate { .. } => Some("give the thread the template with `set_templates` first"),
            Self::QueueFull { .. } | Self::QueueBytesFull { .. } => {
                Some("wait until the thread has caught up, or remove what waits")
            }
            Self::AllQueuesFull { .. } => {
                Some("wait until threads have caught up, or raise `Limits::total_queue_bytes`")
            }
            Self::NotHeld { .. } | Self::OtherCall { .. } => {
                Some("list the pending approvals again, and decide about the call that is shown now")
            }
            Self::OtherDescriptor(_) => Some(
                "use the descriptor that the session was started under, another session, or allow any descriptor",
            ),
            Self::Unsupported { .. } => Some("use threads of a runtime in this process for it"),
            Self::NoTokio => Some("prompt the thread inside a tokio runtime"),
            Self::Closed { .. }
            | Self::EmptyTranscript { .. }
            | Self::EmptyMessage { .. }
            | Self::OutputSchema { .. }
            | Self::NotWaiting { .. }
            | Self::EntryExists { .. }
            | Self::Decided { .. }
            | Self::Resume(_)
            | Self::NoCheckpoint { .. }
            | Self::NoCheckpoints
            | Self::Session(_)
            | Self::Compaction(_)
            | Self::Part(_)
            | Self::Lost { .. } => None,
            Self::Engine(fault) => hint_of_engine(&fault.code),
        }
    }
}

/// The hint for an error of an engine, by its code.
fn hint_of_engine(code: &str) -> Option<&'static str> {
    Some(match code {
        "engine.unreachable" => "start the engine, or correct its URL; a named message may be sent again",
        "engine.no_admin" => "pass `--admin URL`, or use `Engine::admin`",
        "engine.queue_full" => "wait until the thread has caught up, or remove what waits",
        "engine.forgetting" => "send the request again in a moment",
        "engine.not_pending" | "engine.decided" => "list the pending approvals again",
        _ => return None,
    })
}

/// The class of an error of an engine, by its code.
fn class_of_engine(code: &str) -> ErrorClass {
    match code {
        "engine.queue_full" => ErrorClass::Full,
        "engine.options_too_large" | "engine.history_too_large" | "engine.secret_withheld" => {
            ErrorClass::Invalid
        }
        "engine.not_pending" | "engine.decided" | "engine.forgetting" | "engine.not_new"
        | "engine.refused" | "engine.child" => ErrorClass::Conflict,
        // Another server of the engine, or a later attempt, may succeed.
        "engine.unreachable" | "engine.failed" | "engine.log" => ErrorClass::Elsewhere,
        "engine.no_admin" => ErrorClass::Unsupported,
        _ => ErrorClass::Failed,
    }
}

#[cfg(test)]
mod tests {
    use harness_core::FaultSource;

    use super::*;

    #[test]
    fn context_that_does_not_fit_is_an_error_of_the_caller() {
        let class = |code| RuntimeError::Part(Fault::new(FaultSource::Agent, code, "no")).class();
        assert_eq!(class("context.undeclared"), ErrorClass::Invalid);
        assert_eq!(class("environment_unreadable"), ErrorClass::Failed);
    }
}
