//! Passes on the deltas of a model's answer, and keeps its text until the answer is whole.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::redact::{RedactedDeltas, Redactor};
use crate::event::{Delta, Hub};
use crate::ids::OpId;
use crate::message::{AssistantMessage, Block, FinishReason, Message};
use crate::port::{Clock, DeltaPart, Deltas};
use crate::time::Time;

/// Text that is kept of an answer in case it is cut off: 1 MiB.
const PARTIAL_BOUND: usize = 1 << 20;

/// Bytes for which there is room before the first delta: readers do not wait for memory.
const ROOM: usize = 256;

/// The sink of a driver: a machine calls one model at a time.
pub(crate) struct Sink<'h> {
    hub: &'h Hub,
    redactor: Option<&'h Redactor>,
    /// Reports when answers start.
    clock: Option<&'h dyn Clock>,
    /// The number of the event that was published last.
    after: AtomicU64,
    /// The operation whose answer streams.
    op: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The operation whose deltas came last.
    of: Option<OpId>,
    /// When the first of them came.
    first: Option<Time>,
    /// Whether its answer was cut off: later deltas are dropped.
    is_over: bool,
    /// Deltas of that answer so far.
    count: u32,
    /// The text of the answer so far.
    partial: String,
    held: RedactedDeltas,
}

impl<'h> Sink<'h> {
    pub(crate) fn new(hub: &'h Hub, redactor: Option<&'h Redactor>) -> Self {
        let (after, op) = (AtomicU64::new(0), AtomicU64::new(0));
        let state = State { partial: String::with_capacity(ROOM), ..State::default() };
        Self { hub, redactor, clock: None, after, op, state: Mutex::new(state) }
    }

    /// Notes when answers begin.
    pub(super) fn timed(self, clock: &'h dyn Clock) -> Self {
        Self { clock: Some(clock), ..self }
    }

    /// When the first delta of the last answer came; `None` if it had none.
    pub(super) fn first_delta(&self) -> Option<Time> {
        let state = self.state.lock();
        state.first.filter(|_| state.of == Some(OpId(self.op.load(Ordering::Acquire))))
    }

    /// Starts an answer: deltas belong to this operation from now on.
    pub(super) fn start(&self, op: OpId) {
        self.op.store(op.0, Ordering::Release);
    }

    /// Remembers the event that was published last.
    pub(crate) fn saw(&self, seq: u64) {
        self.after.store(seq, Ordering::Relaxed);
    }

    /// Passes on what was held back of an answer that is over.
    pub(super) fn finish(&self) {
        let Some(redactor) = self.redactor else { return };
        let mut state = self.state.lock();
        let mut held = std::mem::take(&mut state.held);
        held.finish(redactor, &mut |part| self.pass(&mut state, part));
    }

    /// Takes the text of an answer that was cut off; `None` when there is none.
    pub(super) fn partial(&self, op: OpId) -> Option<Arc<Message>> {
        self.finish();
        let mut state = self.state.lock();
        if state.of != Some(op) {
            return None;
        }
        state.is_over = true;
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
        let Some(op) = state.of.filter(|_| !state.is_over) else { return };
        if let DeltaPart::Text(text) = &part
            && state.partial.len() + text.len() <= PARTIAL_BOUND
        {
            state.partial.push_str(text);
        }
        if !self.hub.wants_deltas() {
            return;
        }
        let (n, after) = (state.count, self.after.load(Ordering::Relaxed));
        self.hub.delta(&Delta { op, n, after, part });
        state.count += 1;
    }
}

impl Deltas for Sink<'_> {
    fn part(&self, part: DeltaPart) {
        let mut state = self.state.lock();
        let op = Some(OpId(self.op.load(Ordering::Acquire)));
        if state.of != op {
            let mut partial = std::mem::take(&mut state.partial);
            partial.clear();
            *state = State { of: op, partial, ..State::default() };
        }
        if state.first.is_none() && !matches!(part, DeltaPart::Note(_)) {
            state.first = self.clock.map(Clock::now);
        }
        let Some(redactor) = self.redactor else { return self.pass(&mut state, part) };
        let mut held = std::mem::take(&mut state.held);
        held.push(redactor, part, &mut |part| self.pass(&mut state, part));
        state.held = held;
    }
}
