//! Writes a machine's records into its session.

use std::sync::Arc;

use crate::json::Json;
use crate::machine::{Boundary, Machine, Phase, Record, SNAPSHOT_VERSION};
use crate::message::Message;
use crate::outcome::End;
use crate::port::{DynSession, Entry, EntryHead};
use crate::time::Time;

/// The journal of one drive.
pub(super) struct Journal<'p> {
    session: Option<&'p dyn DynSession>,
    /// The first message of the transcript that is not stored.
    unsaved_from: Option<usize>,
    failure: Option<String>,
}

/// What of a record has to be looked up before it is written.
struct Resolved {
    messages: Vec<Arc<Message>>,
    state: Option<Json>,
}

impl<'p> Journal<'p> {
    pub(super) fn new(session: Option<&'p dyn DynSession>) -> Self {
        Self { session, unsaved_from: None, failure: None }
    }

    /// The first message that is not stored, after a failure.
    pub(super) fn unsaved_from(&self) -> Option<usize> {
        self.unsaved_from
    }

    /// Writes one record, as safely as it asks.
    pub(super) async fn write<P: Phase>(
        &mut self,
        machine: &Machine<P>,
        now: Time,
        record: &Record,
    ) -> Result<(), String> {
        let Some(session) = self.session else { return Ok(()) };
        let resolved = resolve(machine, record);
        let entries = entries(record, &resolved);
        if entries.is_empty() {
            return Ok(());
        }
        let origin = machine.origin();
        let head = EntryHead::new(now, origin.run.clone(), machine.turn(), origin.turn.clone());
        let durability = record.durability();
        let written = match session.try_append_dyn(&head, &entries, durability) {
            Some(written) => written,
            None => session.append_boxed(&head, &entries, durability).await,
        };
        match written {
            Ok(()) => {
                if let Record::Messages(range) = record
                    && self.unsaved_from.is_some_and(|from| from >= range.start)
                {
                    self.unsaved_from = None;
                }
                self.failure = None;
                Ok(())
            }
            Err(error) => {
                if let Record::Messages(range) = record {
                    let from = self.unsaved_from.unwrap_or(range.start);
                    self.unsaved_from = Some(from.min(range.start));
                }
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
        if self.failure.is_none() && self.unsaved_from.is_none() {
            return end;
        }
        let mut failure = None;
        if let Some(from) = self.unsaved_from {
            failure = self.write(machine, now, &Record::Messages(from..machine.log().len())).await.err();
        }
        if failure.is_none() {
            failure = self.write(machine, now, &Record::RunEnd(Arc::clone(&end))).await.err();
        }
        let Some(message) = failure else { return end };
        Arc::new(End { persist_failed: Some(message), ..Arc::unwrap_or_clone(end) })
    }
}

fn resolve<P: Phase>(machine: &Machine<P>, record: &Record) -> Resolved {
    let messages = match record {
        Record::Messages(range) => machine.log().range(range.clone()).cloned().collect(),
        Record::CallStarted { .. }
        | Record::CallFinished { .. }
        | Record::Boundary { .. }
        | Record::RunEnd(_) => Vec::new(),
    };
    let state = match record {
        Record::Boundary { phase: Boundary::Turn, .. } => machine.snapshot().ok(),
        Record::Boundary { .. }
        | Record::Messages(_)
        | Record::CallStarted { .. }
        | Record::CallFinished { .. }
        | Record::RunEnd(_) => None,
    };
    Resolved { messages, state }
}

fn entries<'a>(record: &'a Record, resolved: &'a Resolved) -> Vec<Entry<'a>> {
    match record {
        Record::Messages(_) => resolved.messages.iter().map(Entry::Message).collect(),
        Record::CallStarted { call, attempt, class } => {
            vec![Entry::CallStarted { call: &call.id, attempt: *attempt, class }]
        }
        Record::CallFinished { call, attempt, class, result } => {
            vec![Entry::CallFinished { call: &call.id, attempt: *attempt, class, result }]
        }
        Record::Boundary { .. } => resolved
            .state
            .iter()
            .map(|state| Entry::RunState { schema_version: SNAPSHOT_VERSION, state })
            .collect(),
        Record::RunEnd(end) => vec![Entry::RunEnd { stop: &end.stop, usage: &end.usage }],
    }
}
