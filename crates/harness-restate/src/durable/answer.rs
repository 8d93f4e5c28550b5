//! Answers of models while they come.

use std::fmt;
use std::sync::Arc;

use harness::core::event::Hub;
use harness::core::machine::Op;
use harness::core::port::DeltaPart;
use harness::core::{OpId, ThreadId};
use serde::{Deserialize, Serialize};

use super::context::StepAsk;

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

/// Receives the deltas of answers, in the process that makes them. Best effort: it must not wait.
///
/// Deltas are redacted as replies are: at most the length of the longest secret is held back.
pub trait DeltaReceiver: Send + Sync {
    /// An answer starts.
    fn start(&self, answer: &AnswerId);

    /// A delta of an answer.
    fn delta(&self, answer: &AnswerId, part: DeltaPart);

    /// An answer has no further deltas.
    fn end(&self, answer: &AnswerId);
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
