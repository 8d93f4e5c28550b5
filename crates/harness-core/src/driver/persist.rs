//! Stores what a machine gives, and saves its state.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;

use super::ports::Ports;
use super::running::Work;
use crate::fault::{Fault, FaultSource};
use crate::ids::RunId;
use crate::json::Json;
use crate::machine::{Machine, Phase, Record, Reply};
use crate::outcome::Outcome;
use crate::port::{Checkpoint, DynCheckpointStore, Entry, EntryHead, SessionError};
use crate::run::SNAPSHOT_VERSION;
use crate::time::Time;

/// Starts to store records.
pub(super) fn store<'p, P: Phase>(ports: &'p Ports, machine: &Machine<P>, records: Vec<Record>) -> Work<'p> {
    let Some(session) = ports.session.as_deref() else { return Work::Ready(Reply::Stored(Ok(()))) };
    let head = head(machine, ports.clock.now());
    let durability = records.iter().map(Record::durability).max().unwrap_or_default();
    let tried = {
        let entries: Vec<Entry<'_>> = records.iter().flat_map(entries).collect();
        session.try_append_dyn(&head, &entries, durability)
    };
    if let Some(written) = tried {
        return Work::Ready(Reply::Stored(written.map_err(|error| error.message)));
    }
    let stored = async move {
        let entries: Vec<Entry<'_>> = records.iter().flat_map(entries).collect();
        let written = session.append_boxed(&head, &entries, durability).await;
        Reply::Stored(written.map_err(|error| error.message))
    };
    Work::Store(Box::pin(stored))
}

/// Starts to save the state of a run.
pub(super) fn save<'p, P: Phase>(
    ports: &'p Ports,
    machine: &Machine<P>,
    messages: u64,
    state: Arc<Json>,
) -> Work<'p> {
    let Some((store, run)) = place(ports, machine) else { return Work::Ready(Reply::Saved(Ok(()))) };
    let checkpoint = Checkpoint::new(run, ports.clock.now(), SNAPSHOT_VERSION, messages, state);
    let saved = async move {
        let fault = |error: SessionError| Fault::new(FaultSource::Checkpoints, &*error.kind, error.message);
        Reply::Saved(store.save_boxed(checkpoint).await.map(drop).map_err(fault))
    };
    Work::Store(Box::pin(saved))
}

/// What happened to the session that its user has to know, although nothing is lost.
pub(super) fn notice(ports: &Ports) -> Option<Fault> {
    let SessionError { kind, message } = ports.session.as_deref()?.take_notice()?;
    Some(Fault::new(FaultSource::Session, &*kind, message))
}

/// Lets go of the checkpoints of a run that ended as completed: there is nothing to resume.
pub(super) async fn clear<P: Phase>(ports: &Ports, machine: &Machine<P>) {
    let completed = machine.end().is_some_and(|end| end.outcome() == Outcome::Completed);
    let Some((store, run)) = place(ports, machine).filter(|_| completed) else { return };
    let cleared = AssertUnwindSafe(async { store.clear_boxed(&run).await }).catch_unwind().await;
    if !matches!(cleared, Ok(Ok(()))) {
        tracing::warn!(run = run.as_str(), "the checkpoints of a run that is over could not be removed");
    }
}

fn place<'p, P: Phase>(
    ports: &'p Ports,
    machine: &Machine<P>,
) -> Option<(&'p dyn DynCheckpointStore, RunId)> {
    Some((ports.checkpoints.as_deref()?, machine.origin().run.clone()?))
}

fn head<P: Phase>(machine: &Machine<P>, now: Time) -> EntryHead {
    let origin = machine.origin();
    let mut head = EntryHead::new(now, origin.run.clone(), machine.turn(), origin.turn.clone());
    head.descriptor.clone_from(&origin.descriptor_hash);
    head
}

fn entries(record: &Record) -> impl Iterator<Item = Entry<'_>> {
    let messages = if let Record::Messages { messages, .. } = record { &messages[..] } else { &[] };
    let own = match record {
        Record::Messages { .. } | Record::TurnEnd => None,
        Record::CallStarted { call, attempt, class } => {
            Some(Entry::CallStarted { call: &call.id, attempt: *attempt, class })
        }
        Record::CallFinished { call, attempt, class, result } => {
            Some(Entry::CallFinished { call: &call.id, attempt: *attempt, class, result })
        }
        Record::Compaction { note, plan, permanent, .. } => {
            Some(Entry::Compaction { note, plan, permanent: *permanent })
        }
        Record::RunEnd(end) => Some(Entry::RunEnd { stop: &end.stop, usage: &end.usage }),
    };
    messages.iter().map(Entry::Message).chain(own)
}
