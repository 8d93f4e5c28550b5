//! The driver that runs machines on tokio: performs their effects through [`Ports`] and feeds back what
//! came of them.
//!
//! Everything runs in the caller's task: ports are polled in place, several at once. A port that panics
//! becomes a fault, not a panic of the host. Dropping the driver's future is like a crash: what was
//! stored is durable, and the next run repairs the rest.

mod compact;
pub(crate) mod in_flight;
mod perform;
mod persist;
mod ports;
pub(crate) mod redact;
mod running;
pub(crate) mod sink;

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

pub use compact::compact;
pub use ports::Ports;

use in_flight::InFlight;
use sink::Sink;

use crate::cancel::Cancel;
use crate::event::Hub;
use crate::ids::{EntryId, OpId};
use crate::machine::{Effect, Effects, Input, Machine, Phase, Reply, Start};
use crate::origin::Origin;
use crate::outcome::End;
use crate::panics::panic_text;
use crate::time::Time;

/// Runs a machine to its end.
///
/// Ordinary stops (limits, refusals, faults of parts) are in the [`End`], never errors.
///
/// `cancel` aborts: outstanding work is told, given [`Ports::grace`] to answer, and then dropped; every
/// call still gets its result and the transcript stays legal (law 8).
pub async fn drive<P: Phase>(
    machine: &mut Machine<P>,
    ports: &Ports,
    cancel: &Cancel,
    begin: Start,
) -> Arc<End> {
    machine.set_ports(ports.set());
    let sink = Sink::new(&ports.hub, ports.redactor.as_ref());
    let mut told = ReportOnDrop { hub: &ports.hub, origin: Arc::clone(machine.origin()), whole: false };
    let mut driver = Driver::new(machine, ports, &sink, cancel);
    driver.advance(Input::Start(Box::new(begin)));
    loop {
        if let Some(end) = driver.perform().await {
            told.whole = true;
            return end;
        }
        tokio::task::coop::consume_budget().await;
        let input = driver.next().await;
        driver.advance(input);
    }
}

/// Tells folds when a driver's future is dropped before its machine's end.
struct ReportOnDrop<'h> {
    hub: &'h Hub,
    origin: Arc<Origin>,
    whole: bool,
}

impl Drop for ReportOnDrop<'_> {
    fn drop(&mut self) {
        if !self.whole {
            self.hub.abandon(&self.origin);
        }
    }
}

struct Driver<'p, P: Phase> {
    machine: &'p mut Machine<P>,
    ports: &'p Ports,
    sink: &'p Sink<'p>,
    cancel: &'p Cancel,
    cancel_sent: bool,
    grace_until: Option<Time>,
    fx: Effects,
    in_flight: InFlight<'p>,
    /// Steering entries that are let go of once they are stored.
    drained: Vec<EntryId>,
    now: Time,
}

impl<'p, P: Phase> Driver<'p, P> {
    fn new(machine: &'p mut Machine<P>, ports: &'p Ports, sink: &'p Sink<'p>, cancel: &'p Cancel) -> Self {
        let mut fx = Effects::new();
        if ports.hub.is_silent() {
            fx = fx.without_events();
        }
        Self {
            machine,
            ports,
            sink,
            cancel,
            cancel_sent: false,
            grace_until: None,
            fx,
            in_flight: InFlight::new(ports, sink),
            drained: Vec::new(),
            now: Time(0),
        }
    }

    fn advance(&mut self, input: Input) {
        if let Input::Reply(id, reply) = input {
            return self.answer(id, reply);
        }
        self.end_grace();
        self.now = self.ports.clock.now();
        self.emit_spent();
        let input = match &self.ports.redactor {
            Some(redactor) => redactor.input(input),
            None => input,
        };
        self.machine.advance(input, self.now, &mut self.fx);
    }

    /// Charges what parts have spent on models before anything follows from it.
    fn emit_spent(&mut self) {
        if let Some(spent) = self.in_flight.take_spent() {
            self.machine.advance(Input::Spent(Box::new(spent)), self.now, &mut self.fx);
        }
    }

    fn answer(&mut self, id: OpId, mut reply: Reply) {
        self.in_flight.answered(id);
        if let Some(redactor) = &self.ports.redactor {
            if matches!(reply, Reply::Model(_)) {
                self.sink.finish();
            }
            reply = redactor.reply(reply);
        }
        if let Reply::Drained(entries) = &reply {
            self.drained.extend(entries.iter().map(|(id, _)| id.clone()));
        }
        self.end_grace();
        self.now = self.ports.clock.now();
        self.emit_spent();
        let notice = if let Reply::Stored(_) = reply { persist::notice(self.ports) } else { None };
        self.machine.answer(id, reply, self.now, &mut self.fx);
        if let Some(fault) = notice {
            self.machine.advance(Input::PartFailed(fault), self.now, &mut self.fx);
        }
    }

    /// What was aborted has answered: what is started now is not part of it.
    fn end_grace(&mut self) {
        if self.in_flight.is_idle() {
            self.grace_until = None;
        }
    }

    /// Performs the effects in order. Gives the end, when it is among them.
    async fn perform(&mut self) -> Option<Arc<End>> {
        let mut done = None;
        for effect in self.fx.as_mut_slice() {
            match effect {
                Effect::Event(_) => {}
                Effect::Perform(id, op) => self.in_flight.start(self.machine, *id, op),
                Effect::AbortAll => {
                    self.in_flight.abort();
                    self.grace_until = Some(self.now.after(self.ports.grace));
                }
                Effect::Done(end) => done = Some(Arc::clone(end)),
            }
        }
        self.publish();
        self.fx.clear();
        // An end that could not be stored has what was drained in its transcript all the same.
        if done.is_some() || self.machine.is_settled() {
            self.let_go_of_drained();
        }
        if done.is_some() {
            persist::clear(self.ports, self.machine).await;
            self.ports.hub.flush();
        }
        done
    }

    /// Tells the events among the effects.
    fn publish(&self) {
        if !self.fx.events {
            return;
        }
        let events = self.fx.as_slice().iter().filter_map(|effect| match effect {
            Effect::Event(event) => Some(event),
            Effect::Perform(..) | Effect::AbortAll | Effect::Done(_) => None,
        });
        if let Some(last) = events.clone().next_back() {
            self.sink.saw(last.seq);
            self.ports.hub.publish(events);
        }
    }

    fn let_go_of_drained(&mut self) {
        if self.drained.is_empty() || self.in_flight.is_injecting() {
            return;
        }
        if let Some(steering) = &self.ports.steering {
            let told = AssertUnwindSafe(|| steering.injected(&self.drained));
            if let Err(panic) = catch_unwind(told) {
                tracing::error!(panic = panic_text(&*panic), "the steering queue panicked");
            }
        }
        self.drained.clear();
    }

    /// The next input: a reply, the cancellation, or a time that has come.
    async fn next(&mut self) -> Input {
        // What is ready needs no timer.
        if let Some(input) = poll_fn(|cx| Poll::Ready(self.ready(cx))).await {
            return input;
        }
        loop {
            self.end_grace();
            if let Some(input) = self.wait().await {
                return input;
            }
            // The grace period is over: what has not answered is dropped and answered for.
            self.grace_until = None;
            self.in_flight.give_up();
        }
    }

    /// Waits for an input; gives none when the grace period is over.
    async fn wait(&mut self) -> Option<Input> {
        let grace = self.grace_until.is_some();
        let wake_at = self.grace_until.or_else(|| self.machine.wake_at());
        let mut timer = wake_at.map(|at| self.ports.clock.sleep_until(at));
        let cancel = self.cancel;
        let mut cancelled = std::pin::pin!(cancel.cancelled());
        poll_fn(|cx| {
            if let Some(input) = self.ready(cx) {
                return Poll::Ready(Some(input));
            }
            if !self.cancel_sent && cancelled.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Some(self.cancelled()));
            }
            let timer = timer.as_mut().map_or(Poll::Pending, |timer| Pin::new(timer).poll(cx));
            timer.map(|()| (!grace).then_some(Input::Wake))
        })
        .await
    }

    /// What is there; what the caller wants comes first: ports that always are ready would hide it.
    fn ready(&mut self, cx: &mut Context<'_>) -> Option<Input> {
        if let Some(input) = self.asked_for() {
            return Some(input);
        }
        let (id, reply) = self.in_flight.poll(cx)?;
        let Some(input) = self.asked_for() else { return Some(Input::Reply(id, reply)) };
        self.in_flight.keep(id, reply);
        Some(input)
    }

    /// Whether the caller may want something.
    fn is_asked(&self) -> bool {
        !self.cancel_sent && self.cancel.is_cancelled()
    }

    /// The cancellation, when it is new.
    fn asked_for(&mut self) -> Option<Input> {
        self.is_asked().then(|| self.cancelled())
    }

    fn cancelled(&mut self) -> Input {
        self.cancel_sent = true;
        Input::Cancel { by: Arc::from("caller") }
    }
}
