//! Real ports under the scripted driver.

use std::sync::Arc;

use super::{Answer, ScriptedDriver, ScriptedWorld};
use crate::cancel::Cancel;
use crate::driver::in_flight::InFlight;
use crate::driver::sink::Sink;
use crate::driver::{OpScope, Ports};
use crate::ids::OpId;
use crate::machine::{Input, Machine, Op, Phase, Reply, Start};
use crate::message::Message;
use crate::outcome::{End, Purpose};
use crate::port::Ledger;
use crate::time::Millis;
use crate::transcript::Transcript;

/// Runs a machine over ports to its end, as [`drive`](crate::driver::drive) does, by a [`ScriptedDriver`]: what holds
/// under both depends on the machine, not on its driver. Returns the end, and the machine with its transcript.
///
/// The machine receives one input at a time. Aborted operations are polled once more and then interrupted. The journal
/// of the driver replaces the session and the checkpoint store of the ports; their redactor is not used.
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
    let ledger = Ledger::unlimited(Purpose::Answer);
    let mut in_flight = InFlight::new(ports, &sink, &ledger, cancel, Millis(0));
    let mut driver =
        ScriptedDriver::new(machine.with_ports(ports.set()), Later::default(), ports.clock.now());
    let (mut started, mut published, mut drained) = (0, 0, Vec::new());
    let mut input = Input::Start(Box::new(start));
    loop {
        if let Input::Reply(_, Reply::Drained(entries)) = &input {
            drained.extend(entries.iter().map(|(id, _)| id.clone()));
        }
        let now = ports.clock.now();
        if let Some(spent) = in_flight.take_spent() {
            driver.give(Input::Spent(Box::new(spent)), now);
        }
        driver.give(input, now);
        let events = driver.events().get(published..).unwrap_or_default();
        if let Some(last) = events.last() {
            sink.saw(last.seq);
            ports.hub.publish(events);
        }
        published = driver.events().len();
        if let Some(steering) =
            ports.steering.as_ref().filter(|_| !drained.is_empty() && !in_flight.is_injecting())
        {
            steering.injected(&drained);
            drained.clear();
        }
        if let Some(end) = driver.machine().end() {
            let end = Arc::clone(end);
            ports.hub.flush();
            return (end, driver.into_machine());
        }
        if std::mem::take(&mut driver.outside_mut().aborted) {
            in_flight.abort(now);
        }
        for (id, op) in driver.open().iter().filter(|(id, _)| id.0 >= started) {
            in_flight.start(OpScope::of(driver.machine()), *id, op.clone());
        }
        started = driver.open().last().map_or(started, |(id, _)| started.max(id.0 + 1));
        input = in_flight.next(driver.machine().wake_at()).await;
    }
}

/// A world that replies later. It only notes that operations were aborted.
#[derive(Default)]
struct Later {
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
