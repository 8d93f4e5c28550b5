//! Writes a machine's records into its session.

use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures_util::FutureExt as _;

use crate::json::Json;
use crate::machine::{Boundary, Machine, Phase, Record, SNAPSHOT_VERSION};
use crate::message::Message;
use crate::outcome::End;
use crate::panics::panic_text;
use crate::port::{Durability, DynSession, Entry, EntryHead, SessionError};
use crate::time::Time;

/// The journal of one drive.
pub(super) struct Journal<'p> {
    session: Option<&'p dyn DynSession>,
    /// Messages of the transcript that are stored.
    stored: usize,
    /// Messages of the transcript that were to be stored. What is missing goes before whatever is stored
    /// next, so that a session never has a gap and never a message twice.
    wanted: usize,
    failure: Option<String>,
}

/// What of a record has to be looked up before it is written.
struct Resolved {
    messages: Vec<Arc<Message>>,
    state: Option<Json>,
}

impl<'p> Journal<'p> {
    /// The journal of a machine whose transcript so far, `stored` messages, is in the session.
    pub(super) fn new(session: Option<&'p dyn DynSession>, stored: usize) -> Self {
        Self { session, stored, wanted: stored, failure: None }
    }

    /// The first message that is not stored, after a failure.
    pub(super) fn unsaved_from(&self) -> Option<usize> {
        (self.stored < self.wanted).then_some(self.stored)
    }

    /// Writes one record, as safely as it asks.
    pub(super) async fn write<P: Phase>(
        &mut self,
        machine: &Machine<P>,
        now: Time,
        record: &Record,
    ) -> Result<(), String> {
        let Some(session) = self.session else { return Ok(()) };
        if let Record::Messages(range) = record {
            self.wanted = self.wanted.max(range.end);
        }
        let resolved = resolve(machine, record, self.stored..self.wanted);
        let entries = entries(record, &resolved);
        if entries.is_empty() {
            return Ok(());
        }
        let origin = machine.origin();
        let head = EntryHead::new(now, origin.run.clone(), machine.turn(), origin.turn.clone());
        let durability = record.durability();
        match append(session, &head, &entries, durability).await {
            Ok(()) => {
                self.stored = self.wanted;
                self.failure = None;
                Ok(())
            }
            Err(error) => {
                self.failure = Some(error.message.clone());
                Err(error.message)
            }
        }
    }

    /// The machine is over: what could not be stored is tried once more. An end whose session does not hold
    /// all that happened says so.
    pub(super) async fn finish<P: Phase>(
        &mut self,
        machine: &Machine<P>,
        now: Time,
        end: Arc<End>,
    ) -> Arc<End> {
        if self.failure.is_none() && self.unsaved_from().is_none() {
            return end;
        }
        let mut failure = None;
        if let Some(from) = self.unsaved_from() {
            failure = self.write(machine, now, &Record::Messages(from..machine.log().len())).await.err();
        }
        if failure.is_none() {
            failure = self.write(machine, now, &Record::RunEnd(Arc::clone(&end))).await.err();
        }
        let Some(message) = failure else { return end };
        Arc::new(End { persist_failed: Some(message), ..Arc::unwrap_or_clone(end) })
    }
}

/// Appends; a store that panics has failed.
async fn append(
    session: &dyn DynSession,
    head: &EntryHead,
    entries: &[Entry<'_>],
    durability: Durability,
) -> Result<(), SessionError> {
    let failed = |panic: Box<dyn Any + Send>| {
        let message = format!("the session panicked: {}", panic_text(&*panic));
        SessionError::new("session.panicked", message)
    };
    let tried = AssertUnwindSafe(|| session.try_append_dyn(head, entries, durability));
    if let Some(written) = catch_unwind(tried).map_err(failed)? {
        return written;
    }
    let appended = AssertUnwindSafe(async { session.append_boxed(head, entries, durability).await });
    appended.catch_unwind().await.map_err(failed)?
}

fn resolve<P: Phase>(machine: &Machine<P>, record: &Record, messages: Range<usize>) -> Resolved {
    let messages = machine.log().range(messages).cloned().collect();
    let state = match record {
        Record::Boundary { phase: Boundary::Turn, .. } => machine.snapshot().ok(),
        Record::Boundary { .. }
        | Record::Messages(_)
        | Record::CallStarted { .. }
        | Record::CallFinished { .. }
        | Record::Compaction { .. }
        | Record::RunEnd(_) => None,
    };
    Resolved { messages, state }
}

fn entries<'a>(record: &'a Record, resolved: &'a Resolved) -> Vec<Entry<'a>> {
    let own = match record {
        Record::Messages(_) => None,
        Record::CallStarted { call, attempt, class } => {
            Some(Entry::CallStarted { call: &call.id, attempt: *attempt, class })
        }
        Record::CallFinished { call, attempt, class, result } => {
            Some(Entry::CallFinished { call: &call.id, attempt: *attempt, class, result })
        }
        Record::Compaction { note, plan, permanent } => {
            Some(Entry::Compaction { note, plan, permanent: *permanent })
        }
        Record::Boundary { .. } => {
            resolved.state.as_ref().map(|state| Entry::RunState { schema_version: SNAPSHOT_VERSION, state })
        }
        Record::RunEnd(end) => Some(Entry::RunEnd { stop: &end.stop, usage: &end.usage }),
    };
    resolved.messages.iter().map(Entry::Message).chain(own).collect()
}
