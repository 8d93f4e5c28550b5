//! Takes the pieces of a model's answer and passes them on.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::redact::{RedactedDeltas, Redactor};
use crate::event::{Delta, Hub};
use crate::ids::{AgentId, OpId};
use crate::message::{AssistantMessage, Block, FinishReason, Message};
use crate::port::{DeltaPart, Deltas};

/// Text of an answer that is kept for the case that it is cut off: 1 MiB.
const PARTIAL_BOUND: usize = 1 << 20;

/// Bytes for which an answer begins with room, so that it does not move while readers wait for its pieces.
const PARTIAL_ROOM: usize = 256;

/// One sink per drive: a machine asks one model at a time.
#[derive(Debug)]
pub(crate) struct Sink<'h> {
    hub: &'h Hub,
    op: AtomicU64,
    n: AtomicU32,
    after: AtomicU64,
    /// Whether there is partial text, so that a model that streams nothing costs no lock.
    has_partial: AtomicBool,
    partial: Mutex<String>,
    redaction: Option<Redaction<'h>>,
}

/// What keeps secrets out of an answer while it comes.
#[derive(Debug)]
struct Redaction<'h> {
    redactor: &'h Redactor,
    deltas: Mutex<RedactedDeltas>,
}

impl<'h> Sink<'h> {
    pub(crate) fn new(hub: &'h Hub, redactor: Option<&'h Redactor>) -> Self {
        Self {
            hub,
            op: AtomicU64::new(u64::MAX),
            n: AtomicU32::new(0),
            after: AtomicU64::new(0),
            has_partial: AtomicBool::new(false),
            partial: Mutex::default(),
            redaction: redactor.map(|redactor| Redaction { redactor, deltas: Mutex::default() }),
        }
    }

    /// A model is asked: pieces belong to this operation from now on.
    pub(super) fn begin(&self, op: OpId) {
        self.op.store(op.0, Ordering::Relaxed);
        self.n.store(0, Ordering::Relaxed);
        if let Some(redaction) = &self.redaction {
            *redaction.deltas.lock().unwrap_or_else(PoisonError::into_inner) = RedactedDeltas::default();
        }
        if self.has_partial.load(Ordering::Acquire) {
            self.has_partial.store(false, Ordering::Release);
            self.partial.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }

    /// An event was published.
    pub(crate) fn saw(&self, seq: u64) {
        self.after.store(seq, Ordering::Relaxed);
    }

    /// What the model of an agent had said before it was cut off.
    pub(super) fn partial(&self, op: OpId, agent: &AgentId) -> Option<Arc<Message>> {
        self.finish();
        let mut partial = self.partial.lock().unwrap_or_else(PoisonError::into_inner);
        if self.op.load(Ordering::Relaxed) != op.0 || partial.is_empty() {
            return None;
        }
        Some(Arc::new(Message::Assistant(AssistantMessage {
            content: vec![Block::text(std::mem::take(&mut *partial))],
            stop_reason: FinishReason::Aborted,
            agent: Some(agent.clone()),
            ..AssistantMessage::default()
        })))
    }
}

impl Deltas for Sink<'_> {
    fn part(&self, part: DeltaPart) {
        let Some(Redaction { redactor, deltas }) = &self.redaction else { return self.pass(part) };
        let mut deltas = deltas.lock().unwrap_or_else(PoisonError::into_inner);
        deltas.push(redactor, part, &mut |part| self.pass(part));
    }
}

impl Sink<'_> {
    /// The answer is over: what was held back of it is passed on.
    pub(super) fn finish(&self) {
        if let Some(Redaction { redactor, deltas }) = &self.redaction {
            let mut deltas = deltas.lock().unwrap_or_else(PoisonError::into_inner);
            deltas.finish(redactor, &mut |part| self.pass(part));
        }
    }

    fn pass(&self, part: DeltaPart) {
        if let DeltaPart::Text(text) = &part {
            let mut partial = self.partial.lock().unwrap_or_else(PoisonError::into_inner);
            if partial.len() + text.len() <= PARTIAL_BOUND {
                if partial.is_empty() {
                    partial.reserve(PARTIAL_ROOM);
                }
                partial.push_str(text);
                self.has_partial.store(true, Ordering::Release);
            }
        }
        if self.hub.wants_deltas() {
            let op = OpId(self.op.load(Ordering::Relaxed));
            let n = self.n.fetch_add(1, Ordering::Relaxed);
            self.hub.delta(&Delta { op, n, after: self.after.load(Ordering::Relaxed), part });
        }
    }
}
