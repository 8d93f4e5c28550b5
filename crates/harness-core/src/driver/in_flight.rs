//! Operations in flight, and the inputs that a driver waits for.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::FutureExt as _;

use super::perform::{OpScope, Starter, Work};
use super::ports::Ports;
use super::sink::Sink;
use crate::cancel::Cancel;
use crate::ids::OpId;
use crate::machine::{Input, Op, Reply};
use crate::outcome::TotalUsage;
use crate::port::{AppendSource, Ledger};
use crate::time::{Millis, Time};

/// Operations in flight, and the inputs that a driver waits for: replies, the caller's cancellation, and wake-ups.
pub(crate) struct InFlight<'p> {
    ports: &'p Ports,
    sink: &'p Sink<'p>,
    /// The caller's signal, and whether the machine knows of it.
    cancel: &'p Cancel,
    cancel_sent: bool,
    /// The signal of the operations; a new one after each abort. Not a child of the caller's: an operation must not
    /// fail of a cancellation before the machine has fixed its stop reason.
    token: Cancel,
    /// Reserves and charges model calls that ports make.
    ledger: &'p Ledger,
    running: Vec<Running<'p>>,
    /// Replies that are handed on before anything is polled.
    ready: VecDeque<(OpId, Reply)>,
    /// The time that aborted operations have to reply.
    grace: Millis,
    /// When aborted operations are given up.
    grace_until: Option<Time>,
    /// The operation in which layers look at drained messages: these are not stored before.
    injecting: Option<OpId>,
}

struct Running<'p> {
    id: OpId,
    /// A store is never given up: what it did would be unknown, and a message that is stored twice is twice in the
    /// conversation.
    is_store: bool,
    work: Work<'p>,
}

impl Drop for InFlight<'_> {
    /// Cancels work that a port has detached, and refuses its model calls.
    fn drop(&mut self) {
        self.ledger.close();
        self.token.cancel();
    }
}

impl<'p> InFlight<'p> {
    pub(crate) fn new(
        ports: &'p Ports,
        sink: &'p Sink<'p>,
        ledger: &'p Ledger,
        cancel: &'p Cancel,
        grace: Millis,
    ) -> Self {
        Self {
            ports,
            sink,
            cancel,
            cancel_sent: false,
            token: Cancel::new(),
            ledger,
            running: Vec::new(),
            ready: VecDeque::new(),
            grace,
            grace_until: None,
            injecting: None,
        }
    }

    /// Starts an operation. It runs when [`InFlight::next`] polls it.
    pub(crate) fn start(&mut self, scope: OpScope<'_>, id: OpId, op: Op) {
        if let Op::Append { source: AppendSource::Steering, .. } = op {
            self.injecting = Some(id);
        }
        // A request has no ledger: the machine has reserved its budget.
        if !matches!(op, Op::Model { .. }) {
            self.ledger.sync(scope.left);
        }
        let &mut Self { ports, sink, ledger, .. } = self;
        let starter = Starter { ports, sink, ledger, scope, cancel: &self.token };
        let is_store = matches!(op, Op::Store { .. } | Op::Save { .. });
        let work = starter.start(id, op);
        self.running.push(Running { id, is_store, work });
    }

    /// Takes what ports have spent on models since the last call.
    pub(crate) fn take_spent(&self) -> Option<TotalUsage> {
        self.ledger.take()
    }

    /// Whether layers look at drained messages.
    pub(crate) fn is_injecting(&self) -> bool {
        self.injecting.is_some()
    }

    /// Cancels all operations; those that have not replied after the grace period are given up.
    pub(crate) fn abort(&mut self, now: Time) {
        self.token.cancel();
        self.token = Cancel::new();
        self.grace_until = (!self.running.is_empty()).then(|| now.after(self.grace));
    }

    /// Waits for the next input: a reply, the cancellation, or the wake-up at `wake_at`.
    pub(crate) async fn next(&mut self, wake_at: Option<Time>) -> Input {
        loop {
            // A reply that is ready needs no timer.
            if let Some(input) = poll_fn(|cx| Poll::Ready(self.poll(cx))).await {
                return input;
            }
            let timer = self.grace_until.or(wake_at);
            let mut timer = timer.map(|at| self.ports.clock.sleep_until(at));
            let cancel = self.cancel;
            let mut cancelled = std::pin::pin!(cancel.cancelled());
            let input = poll_fn(|cx| {
                if let Some(input) = self.poll(cx) {
                    return Poll::Ready(Some(input));
                }
                if !self.cancel_sent && cancelled.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(self.cancellation());
                }
                timer.as_mut().map_or(Poll::Pending, |timer| timer.poll_unpin(cx)).map(|()| None)
            })
            .await;
            match input {
                Some(input) => return input,
                None if self.grace_until.take().is_some() => self.give_up(),
                None => return Input::Wake,
            }
        }
    }

    /// Polls for a reply. The cancellation comes first: ports that always reply at once would hide it.
    fn poll(&mut self, cx: &mut Context<'_>) -> Option<Input> {
        if let Some(input) = self.cancellation() {
            return Some(input);
        }
        let (id, reply) = self.poll_reply(cx)?;
        let cancellation = self.cancellation();
        if cancellation.is_some() {
            self.ready.push_front((id, reply));
            return cancellation;
        }
        self.injecting.take_if(|injecting| *injecting == id);
        Some(Input::Reply(id, reply))
    }

    /// The first reply; polls the operations in the order of their start.
    fn poll_reply(&mut self, cx: &mut Context<'_>) -> Option<(OpId, Reply)> {
        if let Some(ready) = self.ready.pop_front() {
            return Some(ready);
        }
        let mut running = self.running.iter_mut().enumerate();
        let (at, reply) = running.find_map(|(at, running)| match running.work.poll_unpin(cx) {
            Poll::Ready(reply) => Some((at, reply)),
            Poll::Pending => None,
        })?;
        let id = self.running.remove(at).id;
        // An operation that starts after all aborted ones have replied was not aborted.
        self.grace_until = self.grace_until.filter(|_| !self.running.is_empty());
        Some((id, reply))
    }

    /// The cancellation, once.
    fn cancellation(&mut self) -> Option<Input> {
        let is_new = self.cancel.is_cancelled() && !std::mem::replace(&mut self.cancel_sent, true);
        is_new.then(|| Input::Cancel { by: Arc::from("caller") })
    }

    /// Drops the operations that have not replied, and replies for them.
    fn give_up(&mut self) {
        for running in self.running.extract_if(.., |running| !running.is_store) {
            let partial = self.sink.partial(running.id);
            self.ready.push_back((running.id, Reply::Interrupted { partial }));
        }
    }
}
