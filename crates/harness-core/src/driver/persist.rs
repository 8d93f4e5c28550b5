//! Stores what a machine gives, and saves its state.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;

use super::perform::Performer;
use super::ports::Ports;
use crate::fault::{Fault, FaultSource};
use crate::json::Json;
use crate::machine::{Machine, Phase, Record, Reply};
use crate::outcome::Outcome;
use crate::port::{Checkpoint, Entry, EntryHead, SessionError};
use crate::run::SNAPSHOT_VERSION;

/// Stores records in the session; `None` when there is none.
pub(super) async fn store(performer: &Performer<'_>, records: &[Record]) -> Option<Reply> {
    let Performer { ports, origin, turn, .. } = performer;
    let session = ports.session.as_deref()?;
    let mut head = EntryHead::new(ports.clock.now(), origin.run.clone(), *turn, origin.turn.clone());
    head.descriptor.clone_from(&origin.descriptor_hash);
    let durability = records.iter().map(Record::durability).max().unwrap_or_default();
    // States come first: a transcript with the result of a call has the state that the call left.
    let states = ports.stored_states.changed(ports, origin);
    let changed = states.iter().map(|(name, state)| Entry::State { name, state });
    let entries: Vec<Entry<'_>> = changed.chain(records.iter().flat_map(entries)).collect();
    let written = session.append_boxed(&head, &entries, durability).await;
    if written.is_ok() {
        ports.stored_states.store(states);
    }
    Some(Reply::Stored(written.map_err(|error| error.message)))
}

/// Saves the state of a run; `None` without a checkpoint store, or when the run has no name.
pub(super) async fn save(performer: &Performer<'_>, messages: u64, state: Arc<Json>) -> Option<Reply> {
    let Performer { ports, origin, .. } = performer;
    let (store, run) = (ports.checkpoints.as_deref()?, origin.run.clone()?);
    let checkpoint = Checkpoint::new(run, ports.clock.now(), SNAPSHOT_VERSION, messages, state);
    let fault = |error: SessionError| Fault::new(FaultSource::Checkpoints, &*error.kind, error.message);
    Some(Reply::Saved(store.save_boxed(checkpoint).await.map(drop).map_err(fault)))
}

/// Takes a notice of the session that its user has to know of.
pub(super) fn notice(ports: &Ports) -> Option<Fault> {
    if let Some(SessionError { kind, message }) = ports.session.as_deref()?.take_notice() {
        return Some(Fault::new(FaultSource::Session, &*kind, message));
    }
    ports.stored_states.take_notice()
}

/// Removes the checkpoints of a run that ended as completed: there is nothing to resume.
pub(super) async fn clear<P: Phase>(ports: &Ports, machine: &Machine<P>) {
    let completed = machine.end().is_some_and(|end| end.outcome() == Outcome::Completed);
    let (Some(store), Some(run), true) = (&ports.checkpoints, &machine.origin().run, completed) else {
        return;
    };
    let cleared = AssertUnwindSafe(async { store.clear_boxed(run).await }).catch_unwind().await;
    if !matches!(cleared, Ok(Ok(()))) {
        tracing::warn!(run = run.as_str(), "the checkpoints of a completed run could not be removed");
    }
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
