//! Records to store, and the effects that wait for them.
//!
//! A phase gives records and effects in order. What follows a record is held back until the store has replied; records
//! that wait are stored together. A refused record is owed: it goes before whatever is stored next, so that a session
//! never has a gap, and no message twice.

use std::collections::VecDeque;

use super::{Effect, Op, Record};
use crate::ids::OpId;

#[derive(Debug)]
pub(super) enum Held {
    Record(Record),
    Effect(Effect),
    /// The state of the phase is to be saved.
    Save,
    /// The phase is at rest: it continues when all before this is stored.
    Rest,
}

/// An operation that holds back all that follows it.
#[derive(Debug)]
pub(super) enum Barrier {
    Store(Vec<Record>),
    Save,
}

/// The records of a machine, and the effects that wait for them.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    pub(super) held: VecDeque<Held>,
    pub(super) barrier: Option<(OpId, Barrier)>,
    /// Records that a store refused and that must not be missing.
    pub(super) owed: Vec<Record>,
    /// Messages at the start of the transcript that are stored.
    pub(super) stored: usize,
    /// The reason of the last failure.
    pub(super) failure: Option<String>,
    /// Whether the last attempt to store what is owed was made.
    pub(super) last_try: bool,
}

impl Outbox {
    /// Whether an effect goes out at once.
    pub(super) fn is_open(&self) -> bool {
        self.held.is_empty() && self.barrier.is_none()
    }

    /// The barrier that the reply to this operation lifts.
    pub(super) fn replied(&mut self, id: OpId) -> Option<Barrier> {
        self.barrier.take_if(|(waited, _)| *waited == id).map(|(_, barrier)| barrier)
    }

    /// Takes all that is to be stored: what is owed, `first`, and the records that wait up to the next rest.
    pub(super) fn collect(&mut self, first: Option<Record>) -> Vec<Record> {
        let mut records = std::mem::take(&mut self.owed);
        records.extend(first);
        let is_rest = |held: &Held| matches!(held, Held::Save | Held::Rest);
        let rest = self.held.iter().position(is_rest).unwrap_or(self.held.len());
        let after = self.held.split_off(rest);
        for held in std::mem::take(&mut self.held) {
            match held {
                Held::Record(record) => records.push(record),
                effect @ (Held::Effect(_) | Held::Save | Held::Rest) => self.held.push_back(effect),
            }
        }
        self.held.extend(after);
        records
    }

    pub(super) fn are_stored(&mut self, records: &[Record]) {
        for record in records {
            if let Record::Messages { from, messages } = record {
                self.stored = from + messages.len();
            } else if let Record::Compaction { permanent: true, messages, .. } = record {
                self.stored = *messages;
            }
        }
        self.failure = None;
    }

    pub(super) fn are_refused(&mut self, records: Vec<Record>, why: String) {
        self.owed = records.into_iter().filter(Record::is_owed).collect();
        self.failure = Some(why);
    }

    /// The reason why records are owed.
    pub(super) fn failure(&self) -> Option<&String> {
        self.failure.as_ref().filter(|_| !self.owed.is_empty())
    }

    /// Removes the calls whose start is among the refused records.
    pub(super) fn take_unstored(&mut self, refused: &[Record]) -> Vec<OpId> {
        let is_refused = |started: &Record, op: &Op| matches!((started, op), (Record::CallStarted { call: a, .. }, Op::Tool { call: b, .. }) if a.id == b.id);
        let mut unstored = Vec::new();
        self.held.retain(|held| {
            let Held::Effect(Effect::Perform(id, op)) = held else { return true };
            let starts = !refused.iter().any(|record| is_refused(record, op));
            if !starts {
                unstored.push(*id);
            }
            starts
        });
        unstored
    }
}
