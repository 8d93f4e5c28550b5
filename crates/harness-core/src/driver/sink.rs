//! Passes on the deltas of a model's answer, and keeps its text until the answer is whole.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::redact::{RedactedDeltas, Redactor};
use crate::event::{Delta, Hub};
use crate::ids::OpId;
use crate::message::{AssistantMessage, Block, FinishReason, Message};
use crate::port::{DeltaPart, Deltas};

/// Text that is kept of an answer in case it is cut off: 1 MiB.
const PARTIAL_BOUND: usize = 1 << 20;

/// The sink of a driver: a machine calls one model at a time.
#[derive(Debug)]
pub(crate) struct Sink<'h> {
    hub: &'h Hub,
    redactor: Option<&'h Redactor>,
    /// The number of the event that was published last.
    after: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The operation whose answer streams.
    of: Option<OpId>,
    /// Deltas of that answer so far.
    count: u32,
    /// The text of the answer so far.
    partial: String,
    held: RedactedDeltas,
}

impl<'h> Sink<'h> {
    pub(crate) fn new(hub: &'h Hub, redactor: Option<&'h Redactor>) -> Self {
        Self { hub, redactor, after: AtomicU64::new(0), state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts an answer: deltas belong to this operation from now on.
    pub(super) fn start(&self, op: OpId) {
        *self.lock() = State { of: Some(op), ..State::default() };
    }

    /// Remembers the event that was published last.
    pub(crate) fn saw(&self, seq: u64) {
        self.after.store(seq, Ordering::Relaxed);
    }

    /// Passes on what was held back of an answer that is over.
    pub(super) fn finish(&self) {
        let Some(redactor) = self.redactor else { return };
        let mut state = self.lock();
        let mut held = std::mem::take(&mut state.held);
        held.finish(redactor, &mut |part| self.pass(&mut state, part));
    }

    /// Takes the text of an answer that was cut off; `None` when there is none.
    pub(super) fn partial(&self, op: OpId) -> Option<Arc<Message>> {
        self.finish();
        let mut state = self.lock();
        state.of.take_if(|of| *of == op)?;
        let text = std::mem::take(&mut state.partial);
        (!text.is_empty()).then(|| {
            Arc::new(Message::Assistant(AssistantMessage {
                content: vec![Block::text(text)],
                stop_reason: FinishReason::Aborted,
                ..AssistantMessage::default()
            }))
        })
    }

    fn pass(&self, state: &mut State, part: DeltaPart) {
        if let DeltaPart::Text(text) = &part
            && state.partial.len() + text.len() <= PARTIAL_BOUND
        {
            state.partial.push_str(text);
        }
        let Some(op) = state.of.filter(|_| self.hub.wants_deltas()) else { return };
        let (n, after) = (state.count, self.after.load(Ordering::Relaxed));
        self.hub.delta(&Delta { op, n, after, part });
        state.count += 1;
    }
}

impl Deltas for Sink<'_> {
    fn part(&self, part: DeltaPart) {
        let mut state = self.lock();
        let Some(redactor) = self.redactor else { return self.pass(&mut state, part) };
        let mut held = std::mem::take(&mut state.held);
        held.push(redactor, part, &mut |part| self.pass(&mut state, part));
        state.held = held;
    }
}
