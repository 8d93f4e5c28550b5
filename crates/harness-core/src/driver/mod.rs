//! The driver that runs machines on tokio: performs their effects through [`Ports`] and feeds the results back.
//!
//! Everything runs in the caller's task: ports are polled in place, several at once. A port that panics
//! becomes an error, not a panic of the host. Dropping the driver's future is like a crash: stored records
//! are durable, and the next run repairs the rest.

mod children;
mod compact;
pub(crate) mod in_flight;
mod perform;
mod persist;
mod ports;
pub(crate) mod redact;
mod single;
pub(crate) mod sink;
mod states;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

pub use children::ChildRun;
pub use compact::compact;
pub use perform::OpScope;
pub use ports::Ports;
pub use single::{Performed, perform};
pub use states::StoredStates;

use in_flight::InFlight;
use sink::Sink;

use crate::base::panic_text;
use crate::cancel::Cancel;
use crate::event::{Event, EventKind, Hub};
use crate::ids::EntryId;
use crate::machine::{Effect, Input, Machine, Phase, Reply, Start};
use crate::origin::Origin;
use crate::outcome::{End, Purpose};
use crate::port::Ledger;
use crate::time::Millis;

/// Effects that are made room for. More than these are rare after one input.
const EFFECTS: usize = 6;

/// Runs a machine to its end.
///
/// Ordinary stops (limits, refusals, errors of ports) are in the [`End`], never errors.
///
/// # Cancel safety
/// `cancel` aborts: operations in flight are cancelled, have [`Ports::grace`] to reply, and are then dropped. Every
/// call still gets its result and the transcript stays legal (law 8).
pub async fn drive<P: Phase>(
    machine: &mut Machine<P>,
    ports: &Ports,
    cancel: &Cancel,
    start: Start,
) -> Arc<End> {
    *machine.ports_mut() = ports.set();
    let sink = Sink::new(&ports.hub, ports.redactor.as_ref()).timed(&*ports.clock);
    let ledger = Ledger::unlimited(Purpose::Answer);
    let mut abandoned = AbandonOnDrop { hub: &ports.hub, origin: Arc::clone(machine.origin()), ended: false };
    let mut driver = Driver {
        machine,
        ports,
        sink: &sink,
        in_flight: InFlight::new(ports, &sink, &ledger, cancel, ports.grace),
        effects: Vec::with_capacity(EFFECTS),
        drained: Vec::new(),
    };
    let mut input = Input::Start(Box::new(start));
    loop {
        driver.advance(input);
        if let Some(end) = driver.perform() {
            persist::clear(ports, driver.machine).await;
            ports.hub.flush();
            abandoned.ended = true;
            return end;
        }
        tokio::task::coop::consume_budget().await;
        input = driver.in_flight.next(driver.machine.wake_at()).await;
    }
}

/// Notifies folds when a driver's future is dropped before its machine's end.
struct AbandonOnDrop<'h> {
    hub: &'h Hub,
    origin: Arc<Origin>,
    ended: bool,
}

impl Drop for AbandonOnDrop<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.hub.abandon(&self.origin);
        }
    }
}

struct Driver<'p, P: Phase> {
    machine: &'p mut Machine<P>,
    ports: &'p Ports,
    sink: &'p Sink<'p>,
    in_flight: InFlight<'p>,
    effects: Vec<Effect>,
    /// Entries of the steering queue that are released once they are stored.
    drained: Vec<EntryId>,
}

impl<P: Phase> Driver<'_, P> {
    fn advance(&mut self, mut input: Input) {
        if let Input::Reply(_, Reply::Model(_)) = input {
            self.sink.finish();
        }
        if let Some(redactor) = &self.ports.redactor {
            input = redactor.input(input);
        }
        if let Input::Reply(_, Reply::Drained(entries)) = &input {
            self.drained.extend(entries.iter().map(|(id, _)| id.clone()));
        }
        let now = self.ports.clock.now();
        // Usage is charged before anything follows from the reply of the port that used it.
        if let Some(spent) = self.in_flight.take_spent() {
            self.machine.advance(Input::Spent(Box::new(spent)), now, &mut self.effects);
        }
        let is_stored = matches!(input, Input::Reply(_, Reply::Stored(_)));
        self.machine.advance(input, now, &mut self.effects);
        if is_stored && let Some(fault) = persist::notice(self.ports) {
            self.machine.advance(Input::PartFailed(fault), now, &mut self.effects);
        }
    }

    /// Publishes and removes the events, in order. Ends of model calls contain the time of the first token.
    fn publish(&mut self) {
        if self.ports.hub.is_silent() {
            return;
        }
        for effect in &mut self.effects {
            if let Effect::Event(Event { at, kind, .. }) = effect
                && let EventKind::ModelStepFinished { duration, first_token, .. } = kind
            {
                let since = self.sink.first_delta().map(|first| at.since(first));
                *first_token = since.map(|since| Millis(duration.0.saturating_sub(since.0)));
            }
        }
        let events = self.effects.iter().filter_map(Effect::as_event);
        if let Some(last) = events.clone().next_back() {
            self.sink.saw(last.seq);
            self.ports.hub.publish(events);
            self.effects.retain(|effect| effect.as_event().is_none());
        }
    }

    /// Performs the effects in order. Returns the end when it is among them.
    fn perform(&mut self) -> Option<Arc<End>> {
        self.publish();
        let mut done = None;
        for effect in self.effects.drain(..) {
            match effect {
                Effect::Event(_) => {}
                // It runs when the next input is waited for.
                Effect::Perform(id, op) => self.in_flight.start(OpScope::of(self.machine), id, op),
                Effect::AbortAll => self.in_flight.abort(self.ports.clock.now()),
                Effect::Done(end) => done = Some(end),
            }
        }
        // When the end could not be stored, drained messages are in its transcript all the same.
        if done.is_some() || self.machine.is_settled() {
            self.release_drained();
        }
        done
    }

    fn release_drained(&mut self) {
        if self.drained.is_empty() || self.in_flight.is_injecting() {
            return;
        }
        if let Some(steering) = &self.ports.steering {
            let released = catch_unwind(AssertUnwindSafe(|| steering.injected(&self.drained)));
            if let Err(panic) = released {
                tracing::error!(panic = panic_text(&*panic), "the steering queue panicked");
            }
        }
        self.drained.clear();
    }
}
