//! What is to be stored, and what is held back until it is.
//!
//! A phase gives records and effects in the order in which they are to take place. What follows a record is held
//! back until the store has answered; records that wait are stored together. What a store refused is owed: it goes
//! before whatever is stored next, so that a session never has a gap and never a message twice.

use std::collections::VecDeque;

use super::{Effect, Record};
use crate::ids::OpId;

/// One thing that waits for its turn.
#[derive(Debug)]
pub(crate) enum Held {
    /// To be stored.
    Record(Record),
    /// For the driver.
    Effect(Effect),
    /// The phase is at rest; it goes on when all before this is stored.
    Rest {
        /// Whether its state is saved, or need not be.
        saved: bool,
    },
}

/// What a machine waits for before it lets more out.
#[derive(Debug)]
pub(crate) enum Barrier {
    /// These records, that are being stored.
    Store(Vec<Record>),
    /// The state, that is being saved.
    Save,
}

/// The records of a machine, and what waits for them.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    held: VecDeque<Held>,
    barrier: Option<(OpId, Barrier)>,
    /// Records that a store refused and that must not be missing.
    owed: Vec<Record>,
    /// Messages at the beginning of the transcript that are stored.
    stored: usize,
    /// Why the last store failed, while something is owed.
    failure: Option<String>,
    /// Whether what is owed was tried for the last time.
    last_try: bool,
}

impl Outbox {
    /// Nothing is to be stored of a transcript of which that many messages are stored.
    pub(crate) fn stored(stored: usize) -> Self {
        Self { stored, ..Self::default() }
    }

    /// Messages at the beginning of the transcript that are stored, as far as is known.
    pub(crate) fn messages(&self) -> usize {
        self.stored
    }

    /// Its driver, or its session, knows how many are.
    pub(crate) fn set_messages(&mut self, stored: usize) {
        self.stored = stored;
    }

    /// Whether whatever is given goes out at once.
    pub(crate) fn is_open(&self) -> bool {
        self.held.is_empty() && self.barrier.is_none()
    }

    /// Whether nothing waits for a store, and none has refused anything.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_open() && self.owed.is_empty()
    }

    /// Whether a store or a save has not answered.
    pub(crate) fn is_waiting(&self) -> bool {
        self.barrier.is_some()
    }

    /// Has something wait for its turn.
    pub(crate) fn hold(&mut self, held: Held) {
        self.held.push_back(held);
    }

    /// What is held back, from a place on.
    pub(crate) fn held_from(&mut self, from: usize) -> impl Iterator<Item = &mut Effect> {
        self.held.iter_mut().skip(from).filter_map(|held| match held {
            Held::Effect(effect) => Some(effect),
            Held::Record(_) | Held::Rest { .. } => None,
        })
    }

    /// How much is held back.
    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    /// What has its turn.
    pub(crate) fn next(&mut self) -> Option<Held> {
        self.held.pop_front()
    }

    /// What has its turn again.
    pub(crate) fn put_first(&mut self, held: Held) {
        self.held.push_front(held);
    }

    /// Waits for an operation.
    pub(crate) fn wait_for(&mut self, id: OpId, barrier: Barrier) {
        self.barrier = Some((id, barrier));
    }

    /// What was waited for, when it is this operation.
    pub(crate) fn answered(&mut self, id: OpId) -> Option<Barrier> {
        self.barrier.take_if(|(waited, _)| *waited == id).map(|(_, barrier)| barrier)
    }

    /// All that is to be stored: what is owed, `first`, and the records that wait up to the next rest.
    pub(crate) fn collect(&mut self, first: Option<Record>) -> Vec<Record> {
        let mut records = std::mem::take(&mut self.owed);
        records.extend(first);
        let mut kept = VecDeque::with_capacity(self.held.len());
        let mut held = std::mem::take(&mut self.held).into_iter();
        for next in held.by_ref() {
            match next {
                Held::Record(record) => records.push(record),
                rest @ Held::Rest { .. } => {
                    kept.push_back(rest);
                    break;
                }
                effect @ Held::Effect(_) => kept.push_back(effect),
            }
        }
        kept.extend(held);
        self.held = kept;
        records
    }

    /// These are stored.
    pub(crate) fn are_stored(&mut self, records: &[Record]) {
        for record in records {
            match record {
                Record::Messages { from, messages } => self.stored = from + messages.len(),
                Record::Compaction { permanent: true, messages, .. } => self.stored = *messages,
                Record::Compaction { permanent: false, .. }
                | Record::CallStarted { .. }
                | Record::CallFinished { .. }
                | Record::TurnEnd
                | Record::RunEnd(_) => {}
            }
        }
        self.failure = None;
    }

    /// These were refused: what must not be missing is owed.
    pub(crate) fn are_refused(&mut self, records: Vec<Record>, why: String) {
        self.owed = records.into_iter().filter(Record::is_owed).collect();
        self.failure = Some(why);
    }

    /// Why something is owed after the last try.
    pub(crate) fn failure(&self) -> Option<&String> {
        self.failure.as_ref().filter(|_| !self.owed.is_empty())
    }

    /// Whether anything was refused.
    pub(crate) fn owes(&self) -> bool {
        !self.owed.is_empty()
    }

    /// What is owed is tried for the last time.
    pub(crate) fn try_last(&mut self) {
        self.last_try = true;
    }

    /// Whether it was.
    pub(crate) fn was_last_try(&self) -> bool {
        self.last_try
    }

    /// Takes the operations out that wait for the store that failed and must not begin unstored.
    pub(crate) fn take_unstored(&mut self, must_be_stored: impl Fn(OpId) -> bool) -> Vec<OpId> {
        let mut unstored = Vec::new();
        let until = self.held.iter().position(|held| !matches!(held, Held::Effect(_)));
        let mut at = 0;
        self.held.retain(|held| {
            let waited = until.is_none_or(|until| at < until);
            at += 1;
            match held {
                Held::Effect(Effect::Perform(id, _)) if waited && must_be_stored(*id) => {
                    unstored.push(*id);
                    false
                }
                Held::Effect(_) | Held::Record(_) | Held::Rest { .. } => true,
            }
        });
        unstored
    }
}
