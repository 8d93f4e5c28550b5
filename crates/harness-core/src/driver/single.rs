//! Performs one operation on its own, away from its machine.

use super::in_flight::InFlight;
use super::perform::{OpScope, failed_reply};
use super::ports::Ports;
use super::sink::Sink;
use crate::cancel::Cancel;
use crate::ids::OpId;
use crate::machine::{Input, Op, Reply};
use crate::outcome::{Purpose, TotalUsage};
use crate::port::Ledger;

/// The reply to one operation, and what its port spent on models.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Performed {
    /// Reply for the machine.
    pub reply: Reply,
    /// Usage of models by the port, for [`Input::Spent`] before the reply; `None` when there is none.
    pub spent: Option<TotalUsage>,
}

/// Performs one operation through ports, for drivers that journal it: a durable engine performs it on any machine and
/// gives the reply to [`Machine::advance`](crate::machine::Machine::advance) later. Deltas go to [`Ports::hub`], and
/// [`Ports::redactor`] removes known secrets from the reply. A port that is missing or panics gives an error as reply.
///
/// # Cancel safety
/// When `cancel` fires the port has [`Ports::grace`] to reply; then it is dropped and the reply is
/// [`Reply::Interrupted`], with the text of an answer so far. [`Op::Store`] and [`Op::Save`] are never dropped.
///
/// ```
/// use harness_core::driver::{OpScope, Performed, Ports, perform};
/// use harness_core::machine::Op;
/// use harness_core::run::Run;
/// use harness_core::{Cancel, OpId};
///
/// async fn elsewhere(ports: &Ports, run: &Run, id: OpId, op: Op) -> Performed {
///     perform(ports, id, op, OpScope::of(run), &Cancel::never()).await
/// }
/// # let _ = elsewhere;
/// ```
pub async fn perform(ports: &Ports, id: OpId, op: Op, scope: OpScope<'_>, cancel: &Cancel) -> Performed {
    let sink = Sink::new(&ports.hub, ports.redactor.as_ref());
    let ledger = Ledger::unlimited(Purpose::Answer);
    let mut in_flight = InFlight::new(ports, &sink, &ledger, cancel, ports.grace);
    in_flight.start(scope, id, op);
    loop {
        let mut input = in_flight.next(None).await;
        if let Some(redactor) = &ports.redactor {
            input = redactor.input(input);
        }
        if let Input::Reply(_, reply) = input {
            sink.finish();
            return Performed { reply, spent: in_flight.take_spent() };
        }
        in_flight.abort(ports.clock.now());
    }
}

impl Op {
    /// The reply that says that the operation failed, as if its port had panicked with this text.
    pub fn failed(&self, why: &str) -> Reply {
        failed_reply(self)(why)
    }
}
