//! Compacts the transcript of an idle thread permanently.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::future::{Either, select};

use super::perform::{OpScope, Starter, Work};
use super::ports::Ports;
use super::sink::Sink;
use crate::cancel::Cancel;
use crate::ids::OpId;
use crate::machine::{Effect, Input, Machine, Op, Phase, Reply};
use crate::outcome::{Fault, FaultSource, Purpose};
use crate::port::{Compaction, CompactionNote, Ledger};
use crate::time::Time;

/// Compacts the transcript of a machine that is not running, whatever the compactor's trigger. The transcript becomes
/// what the compactor's plan shows. The session keeps all its entries, and shows the shorter transcript from then on.
///
/// Returns `None` when there was nothing to do. `instructions` name what a summary must keep. The usage of a compaction
/// is in its event; no run is charged with it.
///
/// # Errors
/// `no_compactor` without a compactor; `open_calls` while calls have no result; `cancelled`; the compactor's own error,
/// or the last one of its attempts. When the session fails (source [`FaultSource::Session`]), the machine's transcript
/// is shorter than the session's: load it again.
///
/// # Cancel safety
/// When `cancel` fires the compactor has [`Ports::grace`] to reply, and is then dropped; nothing has changed.
pub async fn compact<P: Phase>(
    machine: &mut Machine<P>,
    ports: &Ports,
    cancel: &Cancel,
    instructions: Option<String>,
) -> Result<Option<Arc<CompactionNote>>, Fault> {
    *machine.ports_mut() = ports.set();
    let op = machine.compaction(instructions)?;
    let since = ports.clock.now();
    let sink = Sink::new(&ports.hub, None);
    let ledger = Ledger::unlimited(Purpose::Compaction);
    let compacting = start(machine, ports, &sink, (cancel, &ledger), op);
    let given_up = std::pin::pin!(async {
        cancel.cancelled().await;
        ports.clock.sleep_until(ports.clock.now().after(ports.grace)).await;
    });
    let reply = match select(compacting, given_up).await {
        Either::Left((reply, _)) => reply,
        Either::Right(_) => Reply::Interrupted { partial: None },
    };
    let done = reply.into_compaction(ledger.take().as_ref())?;
    apply(machine, ports, done, since).await
}

fn start<'p, P: Phase>(
    machine: &Machine<P>,
    ports: &'p Ports,
    sink: &'p Sink<'p>,
    (cancel, ledger): (&Cancel, &'p Ledger),
    op: Op,
) -> Work<'p> {
    let scope = OpScope { deadline: None, ..OpScope::of(machine) };
    Starter { ports, sink, ledger, scope, cancel }.start(OpId(u64::MAX), op)
}

/// Applies a compaction, stores it and publishes its events.
async fn apply<P: Phase>(
    machine: &mut Machine<P>,
    ports: &Ports,
    done: Compaction,
    since: Time,
) -> Result<Option<Arc<CompactionNote>>, Fault> {
    let sink = Sink::new(&ports.hub, None);
    let (ledger, cancel) = (Ledger::unlimited(Purpose::Compaction), Cancel::never());
    let mut effects = Vec::new();
    let note = machine.shorten(done, since, ports.clock.now(), &mut effects);
    let (mut events, mut effects) = (Vec::new(), VecDeque::from(effects));
    while let Some(effect) = effects.pop_front() {
        match effect {
            Effect::Event(event) => events.push(event),
            Effect::Perform(id, op) => {
                let reply = start(machine, ports, &sink, (&cancel, &ledger), op).await;
                if let Reply::Stored(Err(message)) = reply {
                    return Err(Fault::new(FaultSource::Session, "persist_failed", message));
                }
                let mut next = Vec::new();
                machine.advance(Input::Reply(id, reply), ports.clock.now(), &mut next);
                effects.extend(next);
            }
            Effect::AbortAll | Effect::Done(_) => {}
        }
    }
    ports.hub.publish(events.iter());
    ports.hub.flush();
    note
}
