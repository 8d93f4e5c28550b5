//! Answers of models and progress of tools while they come.

use std::fmt;
use std::sync::Arc;

use harness::core::event::Hub;
use harness::core::machine::Op;
use harness::core::message::{Block, ToolCall};
use harness::core::port::DeltaPart;
use harness::core::tool::ToolUpdates;
use harness::core::{Json, OpId, ThreadId};
use serde::{Deserialize, Serialize};

use super::context::StepAsk;

/// Bytes of the content of a report, at most; a larger one is dropped. 64 KiB.
const PROGRESS_BYTES: usize = 64 << 10;

/// An attempt at the answer of a model. Later answers and later attempts of a thread are greater.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AnswerId {
    /// Thread of the answer.
    pub thread: ThreadId,
    /// Log entries before its start.
    pub log: u64,
    /// Log entries with the events of its start. An answer is over when a later one ends or repeats it.
    pub shown: u64,
    /// Operation of the model.
    pub op: OpId,
    /// 0 for the first attempt, or the time of its start in milliseconds for one after a worker was lost.
    pub attempt: u64,
}

impl AnswerId {
    /// The first attempt at the answer that a step asks for; `None` for other steps.
    pub(super) fn of(ask: &StepAsk) -> Option<Self> {
        let is_known = matches!(ask.what, Op::Model { .. }) && ask.shown > ask.log;
        let thread = ask.origin.thread.clone().filter(|_| is_known)?;
        Some(Self { thread, log: ask.log, shown: ask.shown, op: ask.op, attempt: 0 })
    }

    /// Whether the two are attempts at one answer.
    pub fn is_same_answer(&self, other: &Self) -> bool {
        self.thread == other.thread && (self.log, self.op) == (other.log, other.op)
    }
}

/// A report of a tool about its progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolProgress {
    /// Thread of the call.
    pub thread: ThreadId,
    /// Log entries with the events of its start.
    pub shown: u64,
    /// Call that reports.
    pub call: Arc<ToolCall>,
    /// Content of the report.
    pub content: Vec<Block>,
}

/// Receives the deltas of answers and the progress of tools, in the process that makes them. Best effort: it must not wait.
///
/// Both are redacted as replies are: of deltas, at most the length of the longest secret is held back.
pub trait DeltaReceiver: Send + Sync {
    /// An answer starts.
    fn start(&self, answer: &AnswerId);

    /// A delta of an answer.
    fn delta(&self, answer: &AnswerId, part: DeltaPart);

    /// An answer has no further deltas.
    fn end(&self, answer: &AnswerId);

    /// A tool reports its progress.
    fn progress(&self, progress: ToolProgress);
}

/// The receiver of the deltas of a process.
#[derive(Clone)]
pub struct DeltaSink(Arc<dyn DeltaReceiver>);

impl DeltaSink {
    /// A sink that passes deltas on.
    pub fn new(receiver: Arc<dyn DeltaReceiver>) -> Self {
        Self(receiver)
    }

    /// Passes on the deltas of an answer. It ends when the result is dropped.
    pub(super) fn stream(self, answer: AnswerId, hub: &mut Hub) -> Streamed {
        self.0.start(&answer);
        let (to, of) = (self.clone(), answer.clone());
        hub.on_delta(move |delta| to.0.delta(&of, delta.part.clone()));
        Streamed { sink: self, answer }
    }

    /// Receives the progress of the call of a step; `None` for other steps.
    pub(super) fn progress_of(&self, ask: &StepAsk) -> Option<Arc<dyn ToolUpdates>> {
        let is_known = matches!(ask.what, Op::Tool { .. }) && ask.shown > ask.log;
        let thread = ask.origin.thread.clone().filter(|_| is_known)?;
        Some(Arc::new(Reporter { sink: self.clone(), thread, shown: ask.shown }))
    }
}

/// The reports of one call on their way to a sink.
struct Reporter {
    sink: DeltaSink,
    thread: ThreadId,
    shown: u64,
}

impl ToolUpdates for Reporter {
    fn update(&self, call: &Arc<ToolCall>, content: Vec<Block>) {
        if Json::size_of(&content) > PROGRESS_BYTES {
            return;
        }
        let (thread, shown, call) = (self.thread.clone(), self.shown, Arc::clone(call));
        self.sink.0.progress(ToolProgress { thread, shown, call, content });
    }
}

impl fmt::Debug for DeltaSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeltaSink").finish_non_exhaustive()
    }
}

/// An answer on its way to a sink.
#[derive(Debug)]
pub(super) struct Streamed {
    sink: DeltaSink,
    answer: AnswerId,
}

impl Drop for Streamed {
    fn drop(&mut self) {
        self.sink.0.end(&self.answer);
    }
}
