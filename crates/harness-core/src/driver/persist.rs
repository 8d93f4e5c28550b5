//! Writes a machine's records into its session.

use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures_util::FutureExt as _;

use crate::fault::{Fault, FaultSource};
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
    /// A compaction of the transcript that is not stored: it goes before all that follows.
    shortened: Option<Record>,
    /// A compaction of the view that is not stored: it goes behind the messages that it was made over.
    view: Option<Record>,
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
        Self { session, stored, wanted: stored, shortened: None, view: None, failure: None }
    }

    /// Messages of the transcript that are in the session, when there is one.
    pub(super) fn stored(&self) -> Option<usize> {
        self.session.map(|_| self.stored)
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
        match record {
            Record::Messages(range) => self.wanted = self.wanted.max(range.end),
            Record::Compaction { permanent: true, messages, .. } => {
                // Made only over a transcript that is stored; the messages of the new one stand in the record.
                (self.stored, self.wanted) = (*messages, *messages);
                (self.shortened, self.view) = (Some(record.clone()), None);
            }
            Record::Compaction { permanent: false, .. } => self.view = Some(record.clone()),
            Record::CallStarted { .. }
            | Record::CallFinished { .. }
            | Record::Boundary { .. }
            | Record::RunEnd(_) => {}
        }
        let resolved = resolve(machine, record, self.stored..self.wanted);
        let (before, behind) = (self.shortened.as_ref(), self.view.as_ref());
        let messages = resolved.messages.iter().map(Entry::Message);
        let own = own_entry(record, &resolved);
        let entries: Vec<Entry<'_>> = before
            .and_then(compaction_entry)
            .into_iter()
            .chain(messages)
            .chain(behind.and_then(compaction_entry))
            .chain(own)
            .collect();
        if entries.is_empty() {
            return Ok(());
        }
        let origin = machine.origin();
        let mut head = EntryHead::new(now, origin.run.clone(), machine.turn(), origin.turn.clone());
        head.descriptor.clone_from(&origin.descriptor_hash);
        let durability = record.durability();
        match append(session, &head, &entries, durability).await {
            Ok(()) => {
                self.stored = self.wanted;
                (self.shortened, self.view, self.failure) = (None, None, None);
                Ok(())
            }
            Err(error) => {
                self.failure = Some(error.message.clone());
                Err(error.message)
            }
        }
    }

    /// What happened to the session that its user has to know, although nothing is lost.
    pub(super) fn notice(&self) -> Option<Fault> {
        let SessionError { kind, message } = self.session?.take_notice()?;
        Some(Fault::new(FaultSource::Session, &*kind, message))
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

fn compaction_entry(record: &Record) -> Option<Entry<'_>> {
    if let Record::Compaction { note, plan, permanent, .. } = record {
        return Some(Entry::Compaction { note, plan, permanent: *permanent });
    }
    None
}

fn own_entry<'a>(record: &'a Record, resolved: &'a Resolved) -> Option<Entry<'a>> {
    match record {
        Record::Messages(_) | Record::Compaction { .. } => None,
        Record::CallStarted { call, attempt, class } => {
            Some(Entry::CallStarted { call: &call.id, attempt: *attempt, class })
        }
        Record::CallFinished { call, attempt, class, result } => {
            Some(Entry::CallFinished { call: &call.id, attempt: *attempt, class, result })
        }
        Record::Boundary { .. } => {
            resolved.state.as_ref().map(|state| Entry::RunState { schema_version: SNAPSHOT_VERSION, state })
        }
        Record::RunEnd(end) => Some(Entry::RunEnd { stop: &end.stop, usage: &end.usage }),
    }
}
