//! From stored entries to what a session holds. Shared by all stores, so they cannot differ.

use std::collections::HashSet;
use std::sync::Arc;

use harness_core::message::Message;
use harness_core::port::{Loaded, OpenCall, TranscriptRepair};
use harness_core::tool::RetryClass;
use harness_core::transcript::{self, Provenance, Repaired};
use harness_core::{CallId, Json, StopReason};

use crate::spine::{Path, Shortening, Spine, Spot, shown};

/// One stored entry, as far as loading needs it.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    /// The line, from 1; 0 when the store has none.
    pub(crate) line: u32,
    /// Whether it belongs to a run.
    pub(crate) in_run: bool,
    pub(crate) item: Item,
}

#[derive(Clone, Debug)]
pub(crate) enum Item {
    Message(Arc<Message>),
    Call(Box<CallNote>),
    RunEnd(Option<StopReason>),
    State(Box<(String, Json)>),
    Compaction(Box<Shortening<Spot>>),
    /// An entry that loading passes over.
    Other,
}

impl Item {
    pub(crate) fn is_message(&self) -> bool {
        matches!(self, Self::Message(_))
    }
}

/// That a call has started or finished.
#[derive(Clone, Debug)]
pub(crate) struct CallNote {
    pub(crate) call: CallId,
    pub(crate) attempt: u32,
    pub(crate) class: RetryClass,
    /// Present when it has finished.
    pub(crate) result: Option<Arc<Message>>,
}

/// Collects the records of one path in their order.
#[derive(Debug)]
pub(crate) struct Fold<'p> {
    path: &'p Path,
    loaded: Loaded,
    spine: Spine,
    planned_at: Option<u32>,
    /// Places of messages with their lines.
    lines: Vec<(u32, u32)>,
    /// Calls of the last batch that have their result among the messages. Ids may repeat in later batches,
    /// so they count only until the next assistant message.
    answered: HashSet<CallId>,
}

impl<'p> Fold<'p> {
    /// Collects along `path`, which all records given are on.
    pub(crate) fn along(path: &'p Path) -> Self {
        Self {
            path,
            loaded: Loaded::default(),
            spine: Spine::default(),
            planned_at: None,
            lines: Vec::new(),
            answered: HashSet::new(),
        }
    }

    /// Adds those of `records` that are on the path, at their places.
    pub(crate) fn add_all(&mut self, records: &[Record]) {
        match self.path {
            Path::Whole => {
                for (place, record) in (0..).zip(records) {
                    self.add(place, record);
                }
            }
            Path::Of(places) => {
                for place in places {
                    if let Some(record) = records.get(*place as usize) {
                        self.add(*place, record);
                    }
                }
            }
        }
    }

    /// Adds the record of the entry at `place` of the store.
    fn add(&mut self, place: u32, record: &Record) {
        match &record.item {
            Item::Message(message) => {
                self.see(message);
                self.loaded.messages.push(Arc::clone(message));
                self.spine.push(place);
                if record.line > 0 {
                    self.lines.push((place, record.line));
                }
            }
            Item::Call(note) => self.note(note),
            Item::Compaction(shortening) => self.shorten(place, shortening),
            Item::State(state) => {
                let (name, state) = &**state;
                self.loaded.states.insert(name.clone(), state.clone());
            }
            Item::RunEnd(_) | Item::Other => {}
        }
        match record.item {
            Item::RunEnd(reason) => (self.loaded.ended, self.loaded.stop) = (true, reason),
            Item::Message(_) | Item::Call(_) if record.in_run => {
                (self.loaded.ended, self.loaded.stop) = (false, None);
            }
            Item::Message(_) | Item::Call(_) | Item::State(_) | Item::Compaction(_) | Item::Other => {}
        }
    }

    fn see(&mut self, message: &Message) {
        if message.as_assistant().is_some() {
            self.answered.clear();
            self.loaded.open_calls.clear();
        } else if let Some(result) = message.as_tool_result() {
            self.answered.insert(result.tool_call_id.clone());
            self.loaded.open_calls.retain(|open| open.call != result.tool_call_id);
        }
    }

    fn note(&mut self, note: &CallNote) {
        if self.answered.contains(&note.call) {
            return;
        }
        let open = OpenCall::new(note.call.clone(), note.attempt, note.class, note.result.clone());
        match self.loaded.open_calls.iter_mut().find(|known| known.call == note.call) {
            Some(known) => *known = open,
            None => self.loaded.open_calls.push(open),
        }
    }

    /// Applies a compaction. One that names missing messages has no effect: then everything is
    /// shown.
    fn shorten(&mut self, place: u32, shortening: &Shortening<Spot>) {
        self.mend();
        let Some(plan) = self.spine.plan(shortening, self.path) else { return };
        if shortening.permanent {
            self.loaded.messages = shown(&self.loaded.messages, &plan);
            self.loaded.plan = None;
            self.spine.apply(place, &plan);
        } else {
            self.loaded.plan = Some(plan);
            self.planned_at = Some(place);
        }
    }

    /// Makes the transcript so far legal. Added messages have their own places, the same with each
    /// load.
    fn mend(&mut self) {
        if transcript::check(&self.loaded.messages).is_empty() {
            return;
        }
        let Repaired { messages, defects, .. } = transcript::repair(&self.loaded.messages);
        for defect in defects {
            let line = self.spine.spot(defect.at).and_then(|spot| self.line(spot));
            self.loaded.repairs.push(TranscriptRepair { line, defect });
        }
        let (mut whole, mut spots) = (Vec::with_capacity(messages.len()), Vec::with_capacity(messages.len()));
        for (message, from) in messages {
            let (spot, message) = match from {
                Provenance::Kept(at) => (self.spine.spot(at), message),
                Provenance::Made { answer, call } => {
                    (self.spine.spot(answer).map(|spot| spot.result(call)), self.settled(message))
                }
                _ => (None, message),
            };
            if let Some(spot) = spot {
                spots.push(spot);
                whole.push(message);
            }
        }
        self.loaded.messages = whole;
        self.spine = Spine::of(spots);
    }

    /// Result stored outside the transcript for a call without one, or else the result that was
    /// made for it. Marks the call as answered.
    fn settled(&mut self, made: Arc<Message>) -> Arc<Message> {
        let Some(call) = made.as_tool_result().map(|result| result.tool_call_id.clone()) else { return made };
        let open = self.loaded.open_calls.iter().position(|open| open.call == call);
        let stored = open.map(|open| self.loaded.open_calls.remove(open));
        self.answered.insert(call);
        stored.and_then(|open| open.result).unwrap_or(made)
    }

    fn line(&self, spot: Spot) -> Option<u64> {
        let at = self.lines.binary_search_by_key(&spot.entry, |(place, _)| *place).ok()?;
        self.lines.get(at).map(|(_, line)| u64::from(*line))
    }

    pub(crate) fn finish(mut self) -> Folded {
        self.mend();
        Folded { loaded: self.loaded, spine: self.spine, planned_at: self.planned_at }
    }
}

/// Result of folding the entries of a path.
#[derive(Debug)]
pub(crate) struct Folded {
    pub(crate) loaded: Loaded,
    /// Where the messages came from.
    pub(crate) spine: Spine,
    /// The place of the compaction that gave the plan, when there is one.
    pub(crate) planned_at: Option<u32>,
}
