//! Takes the pieces of a model's answer and passes them on.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::event::{Delta, Hub};
use crate::ids::{AgentId, OpId};
use crate::message::{AssistantMessage, Block, FinishReason, Message};
use crate::port::{DeltaPart, Deltas};

/// Text of an answer that is kept for the case that it is cut off: 1 MiB.
const PARTIAL_BOUND: usize = 1 << 20;

#[derive(Debug, Default)]
struct Partial {
    agent: Option<AgentId>,
    text: String,
}

/// One sink per drive: a machine asks one model at a time.
#[derive(Debug)]
pub(super) struct Sink<'h> {
    hub: &'h Hub,
    op: AtomicU64,
    n: AtomicU32,
    after: AtomicU64,
    partial: Mutex<Partial>,
}

impl<'h> Sink<'h> {
    pub(super) fn new(hub: &'h Hub) -> Self {
        Self {
            hub,
            op: AtomicU64::new(u64::MAX),
            n: AtomicU32::new(0),
            after: AtomicU64::new(0),
            partial: Mutex::default(),
        }
    }

    /// A model is asked: pieces belong to this operation from now on.
    pub(super) fn begin(&self, op: OpId, agent: &AgentId) {
        self.op.store(op.0, Ordering::Relaxed);
        self.n.store(0, Ordering::Relaxed);
        let mut partial = self.partial.lock().unwrap_or_else(PoisonError::into_inner);
        partial.text.clear();
        partial.agent = Some(agent.clone());
    }

    /// An event was published.
    pub(super) fn saw(&self, seq: u64) {
        self.after.store(seq, Ordering::Relaxed);
    }

    /// What the model had said before it was cut off.
    pub(super) fn partial(&self, op: OpId) -> Option<Arc<Message>> {
        let mut partial = self.partial.lock().unwrap_or_else(PoisonError::into_inner);
        if self.op.load(Ordering::Relaxed) != op.0 || partial.text.is_empty() {
            return None;
        }
        let mut message = AssistantMessage {
            content: vec![Block::text(std::mem::take(&mut partial.text))],
            stop_reason: FinishReason::Aborted,
            ..AssistantMessage::default()
        };
        message.agent.clone_from(&partial.agent);
        Some(Arc::new(Message::Assistant(message)))
    }
}

impl Deltas for Sink<'_> {
    fn part(&self, part: DeltaPart) {
        if let DeltaPart::Text(text) = &part {
            let mut partial = self.partial.lock().unwrap_or_else(PoisonError::into_inner);
            if partial.text.len() + text.len() <= PARTIAL_BOUND {
                partial.text.push_str(text);
            }
        }
        if self.hub.wants_deltas() {
            let op = OpId(self.op.load(Ordering::Relaxed));
            let n = self.n.fetch_add(1, Ordering::Relaxed);
            self.hub.delta(&Delta { op, n, after: self.after.load(Ordering::Relaxed), part });
        }
    }
}
