//! Passes on the deltas of a model's answer, and keeps its text until the answer is whole.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::redact::{RedactedDeltas, Redactor};
use crate::event::{Delta, Hub};
use crate::ids::{AgentId, OpId};
use crate::message::{AssistantMessage, Block, FinishReason, Message};
use crate::port::{DeltaPart, Deltas};

/// Text that is kept of an answer in case it is cut off: 1 MiB.
const PARTIAL_BOUND: usize = 1 << 20;

/// The sink of a driver: a machine calls one model at a time.
#[derive(Debug)]
pub(crate) struct Sink<'h> {
    hub: &'h Hub,
    redactor: Option<&'h Redactor>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The operation whose answer streams, and its agent.
    of: Option<(OpId, AgentId)>,
    /// Deltas of that answer so far.
    count: u32,
    /// The number of the event that was published last.
    after: u64,
    /// The text of the answer so far.
    partial: String,
    held: RedactedDeltas,
}

impl<'h> Sink<'h> {
    pub(crate) fn new(hub: &'h Hub, redactor: Option<&'h Redactor>) -> Self {
        Self { hub, redactor, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts an answer: deltas belong to this operation from now on.
    pub(super) fn start(&self, op: OpId, agent: AgentId) {
        let mut state = self.lock();
        *state = State { of: Some((op, agent)), after: state.after, ..State::default() };
    }

    /// Remembers the event that was published last.
    pub(crate) fn saw(&self, seq: u64) {
        self.lock().after = seq;
    }

    /// Passes on what was held back of an answer that is over.
    pub(super) fn finish(&self) {
        let mut state = self.lock();
        if let Some(redactor) = self.redactor {
            let mut held = std::mem::take(&mut state.held);
            held.finish(redactor, &mut |part| state.pass(self.hub, part));
        }
    }

    /// Takes the text of an answer that was cut off; `None` when there is none.
    pub(super) fn partial(&self, op: OpId) -> Option<Arc<Message>> {
        self.finish();
        let mut state = self.lock();
        let (_, agent) = state.of.take_if(|(of, _)| *of == op)?;
        let text = std::mem::take(&mut state.partial);
        (!text.is_empty()).then(|| {
            Arc::new(Message::Assistant(AssistantMessage {
                content: vec![Block::text(text)],
                stop_reason: FinishReason::Aborted,
                agent: Some(agent),
                ..AssistantMessage::default()
            }))
        })
    }
}

impl Deltas for Sink<'_> {
    fn part(&self, part: DeltaPart) {
        let mut state = self.lock();
        let Some(redactor) = self.redactor else { return state.pass(self.hub, part) };
        let mut held = std::mem::take(&mut state.held);
        held.push(redactor, part, &mut |part| state.pass(self.hub, part));
        state.held = held;
    }
}

impl State {
    fn pass(&mut self, hub: &Hub, part: DeltaPart) {
        if let DeltaPart::Text(text) = &part
            && self.partial.len() + text.len() <= PARTIAL_BOUND
        {
            self.partial.push_str(text);
        }
        let Some((op, _)) = self.of.as_ref().filter(|_| hub.wants_deltas()) else { return };
        hub.delta(&Delta { op: *op, n: self.count, after: self.after, part });
        self.count += 1;
    }
}
