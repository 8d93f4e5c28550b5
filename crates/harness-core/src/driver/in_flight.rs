//! What is being performed.

use std::collections::VecDeque;
use std::task::{Context, Poll};

use super::perform::Performer;
use super::ports::Ports;
use super::running::Running;
use super::sink::Sink;
use crate::cancel::Cancel;
use crate::ids::OpId;
use crate::machine::{Machine, Op, Phase, Reply};
use crate::outcome::{Purpose, TotalUsage};
use crate::port::{AppendSource, Ledger};

/// Operations on their way to their replies.
pub(crate) struct InFlight<'p> {
    ports: &'p Ports,
    sink: &'p Sink<'p>,
    /// Given to what is being performed; a new one after each abort. Not a child of the caller's signal: what
    /// is performed must not hear of a cancellation, and fail of it, before the machine has fixed its stop reason.
    token: Cancel,
    /// Where parts reserve and settle their model calls.
    ledger: Ledger,
    running: Vec<(OpId, Running<'p>)>,
    /// Replies that needed no waiting, or wait for something that the caller wants first.
    ready: VecDeque<(OpId, Reply)>,
    /// The operation in which layers look at what was drained: it is not stored before.
    injecting: Option<OpId>,
}

impl Drop for InFlight<'_> {
    /// Work that a port has detached hears that nobody waits for it any more, and calls no model.
    fn drop(&mut self) {
        self.ledger.close();
        self.token.cancel();
    }
}

impl<'p> InFlight<'p> {
    pub(crate) fn new(ports: &'p Ports, sink: &'p Sink<'p>) -> Self {
        let (running, ready) = (Vec::new(), VecDeque::new());
        let ledger = Ledger::unlimited(Purpose::Answer);
        Self { ports, sink, token: Cancel::new(), ledger, running, ready, injecting: None }
    }

    /// Starts an operation.
    pub(crate) fn start<P: Phase>(&mut self, machine: &Machine<P>, id: OpId, op: &mut Op) {
        if let Op::Append { source: AppendSource::Steering, .. } = op {
            self.injecting = Some(id);
        }
        self.ledger.sync(machine.left());
        let performer = Performer {
            ports: self.ports,
            sink: self.sink,
            machine,
            token: &self.token,
            ledger: &self.ledger,
        };
        match performer.start(id, op).into_ready() {
            Ok(reply) => self.ready.push_back((id, reply)),
            Err(running) => self.running.push((id, running)),
        }
    }

    /// What parts have spent on models since the last time.
    pub(crate) fn take_spent(&self) -> Option<TotalUsage> {
        self.ledger.take()
    }

    /// Whether nothing is being waited for.
    pub(crate) fn is_idle(&self) -> bool {
        self.running.is_empty()
    }

    /// Whether layers are looking at what was drained.
    pub(crate) fn is_injecting(&self) -> bool {
        self.injecting.is_some()
    }

    /// The first reply that is there, if any; polls everything that runs until then.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Option<(OpId, Reply)> {
        if !self.ready.is_empty() {
            return self.ready.pop_front();
        }
        for (at, (id, running)) in self.running.iter_mut().enumerate() {
            if let Poll::Ready(reply) = running.poll(cx) {
                let id = *id;
                self.running.remove(at);
                return Some((id, reply));
            }
        }
        None
    }

    /// Keeps a reply for the next time.
    pub(crate) fn keep(&mut self, id: OpId, reply: Reply) {
        self.ready.push_front((id, reply));
    }

    /// A reply is handed on.
    pub(crate) fn answered(&mut self, id: OpId) {
        if self.injecting == Some(id) {
            self.injecting = None;
        }
    }

    /// Tells everything that it is not wanted any more.
    pub(crate) fn abort(&mut self) {
        self.token.cancel();
        self.token = Cancel::new();
    }

    /// What has not answered is dropped and answered for; stores go on.
    pub(crate) fn give_up(&mut self) {
        let running = std::mem::take(&mut self.running);
        for (id, running) in running {
            if running.is_store() {
                self.running.push((id, running));
                continue;
            }
            let partial = running.model_of().and_then(|agent| self.sink.partial(id, agent));
            self.ready.push_back((id, Reply::Interrupted { partial }));
        }
    }
}
