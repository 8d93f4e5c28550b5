//! Real ports under the scripted driver.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::{Answer, ScriptedDriver, ScriptedWorld};
use crate::cancel::Cancel;
use crate::driver::Ports;
use crate::driver::in_flight::InFlight;
use crate::driver::sink::Sink;
use crate::ids::{EntryId, OpId};
use crate::machine::{Input, Machine, Op, Phase, Reply, Start};
use crate::message::Message;
use crate::outcome::End;
use crate::transcript::Transcript;

/// Runs a machine over ports to its end, as [`drive`](crate::driver::drive) does, by a [`ScriptedDriver`]: what holds
/// under both rests on the machine, not on its driver. Gives the end, and the machine with its transcript.
///
/// The machine gets one input at a time, and between two of them each operation that runs is polled once. Aborted
/// operations are polled once more; what does not answer then is interrupted. The driver's journal stands in for the
/// session and the checkpoint store of the ports, which are not used; neither is its redactor.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::driver::Ports;
/// use harness_core::machine::Start;
/// use harness_core::message::{AssistantMessage, Message};
/// use harness_core::testing::{ScriptedModel, VirtualClock, drive_stepwise};
/// use harness_core::transcript::Transcript;
/// use harness_core::turn::{Turn, TurnSpec};
/// use harness_core::{Cancel, Origin, Time};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let model = ScriptedModel::new([AssistantMessage::text("Hello.")]);
/// let ports = Ports::new(Arc::new(model), Arc::new(VirtualClock::jumping(Time(0))));
/// let turn = Turn::new(Arc::new(TurnSpec::default()), Origin::default(), Transcript::default());
/// let (end, turn) = drive_stepwise(turn, &ports, &Cancel::never(), Start::prompt(Message::user("Hi"))).await;
/// assert_eq!(end.answer.as_deref(), Some("Hello."));
/// assert_eq!(turn.log().len(), 2);
/// # });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub async fn drive_stepwise<P: Phase>(
    machine: Machine<P>,
    ports: &Ports,
    cancel: &Cancel,
    start: Start,
) -> (Arc<End>, Machine<P>) {
    let sink = Sink::new(&ports.hub, None);
    let mut stepper = Stepper::new(machine, ports, &sink, cancel);
    let mut input = Input::Start(Box::new(start));
    loop {
        stepper.give(input);
        if let Some(end) = stepper.driver.machine().end() {
            let end = Arc::clone(end);
            ports.hub.flush();
            return (end, stepper.driver.into_machine());
        }
        stepper.start();
        input = stepper.next().await;
    }
}

/// What a machine reaches: all of it answers later.
#[derive(Default)]
struct Later {
    /// Whether operations were aborted.
    aborted: bool,
}

impl ScriptedWorld for Later {
    fn perform(&mut self, _: OpId, _: &Op, _: &Transcript) -> Answer {
        Answer::Open
    }

    fn partial(&mut self, _: OpId, _: &Op) -> Option<Arc<Message>> {
        self.aborted = true;
        None
    }
}

struct Stepper<'p, P: Phase> {
    driver: ScriptedDriver<P, Later>,
    ports: &'p Ports,
    sink: &'p Sink<'p>,
    cancel: &'p Cancel,
    cancel_sent: bool,
    flight: InFlight<'p>,
    /// Whether what runs was aborted.
    aborting: bool,
    /// The first operation that is not started.
    next: OpId,
    /// Events that are published.
    published: usize,
    /// Steering entries that are released once they are in the transcript.
    drained: Vec<EntryId>,
}

impl<'p, P: Phase> Stepper<'p, P> {
    fn new(machine: Machine<P>, ports: &'p Ports, sink: &'p Sink<'p>, cancel: &'p Cancel) -> Self {
        let machine = machine.with_ports(ports.set());
        Self {
            driver: ScriptedDriver::new(machine, Later::default(), ports.clock.now()),
            ports,
            sink,
            cancel,
            cancel_sent: false,
            flight: InFlight::new(ports, sink),
            aborting: false,
            next: OpId(0),
            published: 0,
            drained: Vec::new(),
        }
    }

    fn publish(&mut self) {
        let new = self.driver.events().get(self.published..).unwrap_or_default();
        if let Some(last) = new.last() {
            self.sink.saw(last.seq);
            self.ports.hub.publish(new.iter());
        }
        self.published = self.driver.events().len();
        if !self.drained.is_empty() && !self.flight.is_injecting() {
            if let Some(steering) = &self.ports.steering {
                steering.injected(&self.drained);
            }
            self.drained.clear();
        }
    }

    /// Starts the operations that the machine asked for since the last time, and tells others that they are aborted.
    fn start(&mut self) {
        // What is started when all that was aborted has answered is no part of it.
        self.aborting &= !self.flight.is_idle();
        if std::mem::take(&mut self.driver.outside_mut().aborted) {
            self.flight.abort();
            self.aborting = true;
        }
        for (id, op) in self.driver.open().iter().filter(|(id, _)| *id >= self.next) {
            self.flight.start(self.driver.machine(), *id, &mut op.clone());
        }
        if let Some((last, _)) = self.driver.open().last() {
            self.next = self.next.max(OpId(last.0 + 1));
        }
    }

    async fn next(&mut self) -> Input {
        // What is ready needs no timer.
        if let Some(input) = poll_fn(|cx| Poll::Ready(self.ready(cx))).await {
            return input;
        }
        if std::mem::take(&mut self.aborting) {
            self.flight.give_up();
        }
        let mut timer = self.driver.machine().wake_at().map(|at| self.ports.clock.sleep_until(at));
        let cancel = self.cancel;
        let mut cancelled = std::pin::pin!(cancel.cancelled());
        poll_fn(|cx| {
            if let Some(input) = self.ready(cx) {
                return Poll::Ready(input);
            }
            if !self.cancel_sent && cancelled.as_mut().poll(cx).is_ready() {
                return Poll::Ready(self.cancellation());
            }
            let timer = timer.as_mut().map_or(Poll::Pending, |timer| timer.as_mut().poll(cx));
            timer.map(|()| Input::Wake)
        })
        .await
    }

    /// What is there; a cancellation comes first.
    fn ready(&mut self, cx: &mut Context<'_>) -> Option<Input> {
        let is_new = |stepper: &Self| !stepper.cancel_sent && stepper.cancel.is_cancelled();
        if is_new(self) {
            return Some(self.cancellation());
        }
        let (id, reply) = self.flight.poll(cx)?;
        if !is_new(self) {
            return Some(Input::Reply(id, reply));
        }
        self.flight.keep(id, reply);
        Some(self.cancellation())
    }

    fn cancellation(&mut self) -> Input {
        self.cancel_sent = true;
        Input::Cancel { by: Arc::from("caller") }
    }

    /// Gives the machine an input, and what parts have spent on models until then.
    fn give(&mut self, input: Input) {
        if let Input::Reply(id, reply) = &input {
            self.flight.answered(*id);
            if let Reply::Drained(entries) = reply {
                self.drained.extend(entries.iter().map(|(id, _)| id.clone()));
            }
        }
        let now = self.ports.clock.now();
        if let Some(spent) = self.flight.take_spent() {
            self.driver.give(Input::Spent(Box::new(spent)), now);
        }
        self.driver.give(input, now);
        self.publish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Message;
    use crate::origin::Origin;
    use crate::port::DeltaPart;
    use crate::testing::{ModelStep, ScriptedModel, VirtualClock};
    use crate::time::Time;
    use crate::turn::{Turn, TurnSpec};

    #[tokio::test]
    async fn an_aborted_model_that_hangs_is_interrupted_and_its_words_are_kept() {
        let model =
            ScriptedModel::new([ModelStep::hang().with_deltas([DeltaPart::Text("It is".to_owned())])]);
        let ports = Ports::new(Arc::new(model), Arc::new(VirtualClock::still(Time(0))));
        let turn = Turn::new(Arc::new(TurnSpec::default()), Origin::default(), Transcript::default());
        let cancel = Cancel::new();
        let driven = drive_stepwise(turn, &ports, &cancel, Start::prompt(Message::user("2 + 2?")));
        let later = async {
            tokio::task::yield_now().await;
            cancel.cancel();
        };
        let ((end, turn), ()) = tokio::join!(driven, later);
        assert_eq!(end.reason(), crate::StopReason::Cancelled);
        let last = turn.log().iter().last().and_then(|message| message.as_assistant()).unwrap();
        assert_eq!(last.joined_text(), "It is");
    }
}
