//! Replies of concurrent requests, and counts of ignored ones.

use std::collections::{HashSet, VecDeque};

use parking_lot::Mutex;

use super::message::Key;

/// Turns given up, and events judged, that are remembered at most.
const REMEMBERED: usize = 256;

/// Replies that an adapter received and ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RelayCounts {
    /// Of a turn or thread that this adapter has not asked about, from another sender than the worker, or
    /// for a different one.
    pub foreign: u64,
    /// Of a turn that had ended here already: by its timeout, say.
    pub late: u64,
    /// Of a turn that is waited for, but with nothing in it that can be read as a result.
    pub unreadable: u64,
}

/// Reason why a reply was ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ignored {
    /// Another execution of this adapter waits for it.
    Elsewhere,
    Foreign,
    Late,
    Unreadable,
}

#[derive(Debug, Default)]
pub(super) struct Ledger(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    counts: RelayCounts,
    waiting: HashSet<Key>,
    ended: VecDeque<Key>,
    judged: VecDeque<String>,
}

impl Ledger {
    pub(super) fn counts(&self) -> RelayCounts {
        self.with(|state| state.counts)
    }

    /// A turn that is waited for until the value is dropped.
    pub(super) fn wait(&self, key: &Key) -> Waiting<'_> {
        self.with(|state| state.waiting.insert(key.clone()));
        Waiting { ledger: self, key: key.clone() }
    }

    /// Classifies an ignored reply. Each event counts once, however many executions receive it.
    pub(super) fn judge(&self, key: &Key, mine: bool, event_id: &str) -> Ignored {
        self.with(|state| {
            let ignored = if state.is_judged(event_id) {
                return Ignored::Elsewhere;
            } else if mine {
                Ignored::Unreadable
            } else if state.waiting.contains(key) {
                return Ignored::Elsewhere;
            } else if state.ended.contains(key) {
                Ignored::Late
            } else {
                Ignored::Foreign
            };
            state.count(ignored, event_id);
            ignored
        })
    }

    /// Notes an accepted reply, which later readers ignore.
    pub(super) fn taken(&self, event_id: &str) {
        self.with(|state| state.is_new(event_id));
    }

    /// A reply to a turn that is waited for, but of another sender or for a different one.
    pub(super) fn foreign(&self, event_id: &str) -> Ignored {
        self.with(|state| state.count(Ignored::Foreign, event_id));
        Ignored::Foreign
    }

    fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.0.lock())
    }
}

impl State {
    fn is_judged(&self, event_id: &str) -> bool {
        !event_id.is_empty() && self.judged.iter().any(|known| known == event_id)
    }

    /// Whether the event was not judged before; from now on it was.
    fn is_new(&mut self, event_id: &str) -> bool {
        let new = !self.is_judged(event_id);
        if new && !event_id.is_empty() {
            remember(&mut self.judged, event_id.to_owned());
        }
        new
    }

    fn count(&mut self, ignored: Ignored, event_id: &str) {
        if !self.is_new(event_id) {
            return;
        }
        match ignored {
            Ignored::Elsewhere => {}
            Ignored::Foreign => self.counts.foreign += 1,
            Ignored::Late => self.counts.late += 1,
            Ignored::Unreadable => self.counts.unreadable += 1,
        }
    }
}

fn remember<T>(all: &mut VecDeque<T>, new: T) {
    if all.len() == REMEMBERED {
        all.pop_front();
    }
    all.push_back(new);
}

/// A turn that is waited for.
#[derive(Debug)]
pub(super) struct Waiting<'a> {
    ledger: &'a Ledger,
    key: Key,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.ledger.with(|state| {
            state.waiting.remove(&self.key);
            remember(&mut state.ended, self.key.clone());
        });
    }
}
