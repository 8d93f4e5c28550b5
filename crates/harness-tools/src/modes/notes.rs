//! Telling a model that the host has changed the mode.

use std::sync::Arc;

use harness_core::EntryId;
use harness_core::message::Message;
use harness_core::port::{DrainPoint, Steering};

use super::ThreadMode;

/// The beginning of the ids of notes.
const ID: &str = "mode-note-";

/// A steering queue that reports changes of the mode, each once and only the latest, before what waits in
/// another queue. Made by [`ThreadMode::notes`].
#[derive(Clone, derive_more::Debug)]
pub struct ModeNotes {
    mode: ThreadMode,
    #[debug(skip)]
    queue: Option<Arc<dyn Steering>>,
}

impl ModeNotes {
    pub(super) fn new(mode: ThreadMode, queue: Option<Arc<dyn Steering>>) -> Self {
        Self { mode, queue }
    }
}

impl Steering for ModeNotes {
    fn waiting(&self) -> Vec<(EntryId, Arc<Message>)> {
        self.waiting_at(DrainPoint::default())
    }

    fn waiting_at(&self, point: DrainPoint) -> Vec<(EntryId, Arc<Message>)> {
        // An answer stands; the note comes before the next request.
        let note = if point == DrainPoint::Answer { None } else { self.mode.note() };
        let note = note.map(|(change, message)| (EntryId::from(format!("{ID}{change}")), Arc::new(message)));
        let queue = self.queue.iter().flat_map(|queue| queue.waiting_at(point));
        note.into_iter().chain(queue).collect()
    }

    fn injected(&self, entries: &[EntryId]) {
        let changes = entries.iter().filter_map(|id| id.as_str().strip_prefix(ID)?.parse().ok());
        changes.for_each(|change| self.mode.noted(change));
        if let Some(queue) = &self.queue {
            let own = |id: &&EntryId| !id.as_str().starts_with(ID);
            let others: Vec<EntryId> = entries.iter().filter(own).cloned().collect();
            if !others.is_empty() {
                queue.injected(&others);
            }
        }
    }
}
