//! Makes the transcript of an idle thread shorter for good.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::{Either, select};

use super::persist::store;
use super::ports::Ports;
use super::running::{Running, store_panicked};
use crate::cancel::Cancel;
use crate::event::EventKind;
use crate::machine::{Effect, Effects, Input, Machine, Op, Phase, Reply};
use crate::outcome::{Fault, FaultSource, Purpose};
use crate::panics::panic_text;
use crate::port::{CompactAsk, CompactReason, Compaction, CompactionNote, Ledger, ViewCx};
use crate::time::Time;

/// Asks the compactor for a shorter transcript, whatever its trigger says, and makes the transcript of a
/// machine that is not at work what its plan shows. The session keeps all that it holds, and from then on
/// shows the shorter transcript, too.
///
/// Gives what was done; `None` when there was nothing to do. `instructions` say what a summary is to keep.
/// When `cancel` fires the compactor is told, given [`Ports::grace`] to answer, and then dropped; nothing has
/// changed then. What a compaction uses is in its event; no run is charged with it.
///
/// # Errors
/// Without a compactor (`no_compactor`); while calls wait for their results (`open_calls`); when it is
/// cancelled (`cancelled`); the compactor's own fault, or the last one of its attempts. When the session
/// fails (source [`FaultSource::Session`]), the machine's transcript is shorter and the session's is not:
/// load it again.
pub async fn compact<P: Phase>(
    machine: &mut Machine<P>,
    ports: &Ports,
    cancel: &Cancel,
    instructions: Option<String>,
) -> Result<Option<Arc<CompactionNote>>, Fault> {
    let fault = |code: &str, text: &str| Err(Fault::new(FaultSource::Compactor, code, text));
    let Some(compactor) = &ports.compactor else {
        return fault("no_compactor", "there is no compactor; configure one");
    };
    if machine.log().has_open_calls() {
        return fault(
            "open_calls",
            "calls wait for their results; settle them first, for example by resuming",
        );
    }
    let since = ports.clock.now();
    let ledger = Ledger::unlimited(Purpose::Compaction);
    let cx = ViewCx::new(machine.log().prefix(), Arc::clone(machine.origin()), since)
        .with_ledger(ledger.clone())
        .until(None, cancel.clone());
    let view = machine.view_state().clone();
    let ask = CompactAsk::new(machine.view(view.plan.clone()), view.plan, cx)
        .because(CompactReason::Requested { instructions })
        .with_measured(view.measured.map(|measured| *measured));
    let asked = match catch_unwind(AssertUnwindSafe(|| compactor.compact_boxed(ask))) {
        Ok(asked) => AssertUnwindSafe(asked).catch_unwind(),
        Err(panic) => return fault("panicked", &panic_text(&*panic)),
    };
    let given_up = std::pin::pin!(async {
        cancel.cancelled().await;
        ports.clock.sleep_until(ports.clock.now().after(ports.grace)).await;
    });
    let mut done = match select(asked, given_up).await {
        Either::Left((Ok(done), _)) => done?,
        Either::Left((Err(panic), _)) => return fault("panicked", &panic_text(&*panic)),
        Either::Right(_) => return fault("cancelled", "it was cancelled; the transcript was left as it is"),
    };
    if let Some(spent) = ledger.take() {
        done.usage.merge(&spent);
    }
    take(machine, ports, done, since).await
}

/// Applies a compaction, stores it, and tells of it.
async fn take<P: Phase>(
    machine: &mut Machine<P>,
    ports: &Ports,
    done: Compaction,
    since: Time,
) -> Result<Option<Arc<CompactionNote>>, Fault> {
    machine.set_ports(ports.set());
    let mut effects = Effects::new();
    let note = machine.shorten(done, since, ports.clock.now(), &mut effects);
    let mut events = Vec::new();
    loop {
        let mut due = None;
        for effect in effects.drain() {
            match effect {
                Effect::Perform(id, Op::Store { records }) => due = Some((id, records)),
                Effect::Event(event) => events.push(event),
                Effect::Perform(..) | Effect::AbortAll | Effect::Done(_) => {}
            }
        }
        let Some((id, records)) = due else { break };
        let mut storing = Running::start(store_panicked, || Some(store(ports, machine, records)));
        let reply = poll_fn(|cx| storing.poll(cx)).await;
        if let Reply::Stored(Err(message)) = reply {
            return Err(Fault::new(FaultSource::Session, "persist_failed", message));
        }
        machine.advance(Input::Reply(id, reply), ports.clock.now(), &mut effects);
    }
    ports.hub.publish(events.iter());
    ports.hub.flush();
    let failed = events.iter().rev().find_map(|event| {
        if let EventKind::CompactionFailed { fault } = &event.kind { Some(fault.clone()) } else { None }
    });
    match (note, failed) {
        (None, Some(fault)) => Err(fault),
        (note, _) => Ok(note),
    }
}
