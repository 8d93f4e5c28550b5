//! A session in memory.

use std::sync::Arc;

use harness_core::message::Message;
use harness_core::port::{Durability, Entry, EntryHead, Loaded, Session, SessionError};
use harness_core::{EntryId, SessionId};
use parking_lot::Mutex;

use crate::chain::{Chain, End};
use crate::fold::{CallNote, Fold, Folded, Item, Record};
use crate::jsonl::{calls, places};
use crate::spine::{Spine, advance};

/// A session that lives as long as its value, for tests and for threads that need not outlive the program.
///
/// A clone is another handle of the same session. Appending never waits and never fails; there is no bound
/// but the memory of the process, because the running turn holds the same shared messages anyway.
#[derive(Clone, Debug, Default)]
pub struct MemorySession {
    id: Option<SessionId>,
    kept: Arc<Mutex<Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    chain: Chain,
    records: Vec<Record>,
    spine: Spine,
    /// The hash of the descriptor of the first entry.
    descriptor: Option<Arc<str>>,
    /// Where the next entry goes in the tree.
    end: End,
}

impl MemorySession {
    /// An empty session without a name.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty session named `id`.
    pub fn named(id: impl Into<SessionId>) -> Self {
        Self { id: Some(id.into()), ..Self::default() }
    }

    /// The entry after which the next one goes.
    pub fn leaf(&self) -> Option<EntryId> {
        let kept = self.kept.lock();
        kept.chain.id(kept.chain.at(kept.end)?)
    }

    /// Continues after the entry `at`, or before all entries: later appends follow it, and a load
    /// shows its branch. Other branches are kept.
    ///
    /// # Errors
    /// The entry is unknown.
    pub fn branch(&self, at: Option<&EntryId>) -> Result<(), SessionError> {
        let kept = &mut *self.kept.lock();
        let place = match at {
            Some(id) => Some(kept.chain.find(id.as_str()).ok_or_else(|| unknown(id))?),
            None => None,
        };
        kept.end = End::At(place);
        kept.spine = kept.fold().spine;
        Ok(())
    }

    /// Appends entries in order, as [`Session::append`] does.
    ///
    /// # Errors
    /// `session.unstorable` for an entry of a newer version.
    pub fn append_blocking(&self, head: &EntryHead, entries: &[Entry<'_>]) -> Result<(), SessionError> {
        if !entries.iter().all(is_known) {
            return Err(SessionError::new(
                "session.unstorable",
                "this store does not know this kind of entry (use a newer version of harness-session)",
            ));
        }
        let kept = &mut *self.kept.lock();
        if kept.records.is_empty() && !entries.is_empty() {
            kept.descriptor.clone_from(&head.descriptor);
        }
        for entry in entries {
            let item = item(entry, &kept.spine);
            kept.records.push(Record { line: 0, in_run: head.run.is_some(), item });
            let place = kept.grow();
            advance(&mut kept.spine, place, entry);
        }
        Ok(())
    }
}

fn unknown(id: &EntryId) -> SessionError {
    SessionError::new("session.unknown_entry", format!("the session has no entry `{id}`"))
}

impl Kept {
    fn grow(&mut self) -> u32 {
        let parent = self.chain.at(std::mem::take(&mut self.end));
        self.chain.grow(parent)
    }

    /// Keeps these messages, as [`Session::replace`] says.
    fn replace(&mut self, messages: &[Arc<Message>]) {
        let old = std::mem::take(&mut self.records);
        let held = old.iter().map(|record| match &record.item {
            Item::Message(message) => Some(message),
            Item::Call(_) | Item::RunEnd(_) | Item::State(_) | Item::Compaction(_) | Item::Other => None,
        });
        let (places, calls) = (places(held, messages), calls(messages));
        (self.chain, self.spine, self.end) = (Chain::default(), Spine::default(), End::Last);
        let mut next = 0;
        for (place, record) in old.into_iter().enumerate() {
            match &record.item {
                Item::Message(_) => {
                    let Some(to) = places.get(&place).copied() else { continue };
                    self.add_new(messages.get(next..to).unwrap_or_default());
                    next = to.saturating_add(1);
                    self.add(record);
                }
                Item::Call(note) if !calls.contains(&note.call) => {}
                Item::Compaction(_) => {}
                Item::Call(_) | Item::RunEnd(_) | Item::State(_) | Item::Other => self.add(record),
            }
        }
        self.add_new(messages.get(next..).unwrap_or_default());
    }

    fn add_new(&mut self, messages: &[Arc<Message>]) {
        for message in messages {
            let item = Item::Message(Arc::clone(message));
            self.add(Record { line: 0, in_run: false, item });
        }
    }

    fn add(&mut self, record: Record) {
        let is_message = record.item.is_message();
        self.records.push(record);
        let place = self.grow();
        if is_message {
            self.spine.push(place);
        }
    }

    fn fold(&self) -> Folded {
        let path = self.chain.path(self.end);
        let mut fold = Fold::along(&path);
        fold.add_all(&self.records);
        fold.finish()
    }
}

fn is_known(entry: &Entry<'_>) -> bool {
    matches!(
        entry,
        Entry::Message(_)
            | Entry::CallStarted { .. }
            | Entry::CallFinished { .. }
            | Entry::Compaction { .. }
            | Entry::State { .. }
            | Entry::RunEnd { .. }
    )
}

fn item(entry: &Entry<'_>, spine: &Spine) -> Item {
    match *entry {
        Entry::Message(message) => Item::Message(Arc::clone(message)),
        Entry::CallStarted { call, attempt, class } => {
            Item::Call(Box::new(CallNote { call: call.clone(), attempt, class: *class, result: None }))
        }
        Entry::CallFinished { call, attempt, class, result } => Item::Call(Box::new(CallNote {
            call: call.clone(),
            attempt,
            class: *class,
            result: Some(Arc::clone(result)),
        })),
        Entry::Compaction { plan, permanent, .. } => Item::Compaction(Box::new(spine.name(plan, permanent))),
        Entry::State { name, state } => Item::State(Box::new((name.to_owned(), state.clone()))),
        Entry::RunEnd { stop, .. } => Item::RunEnd(Some(stop.reason)),
        _ => Item::Other,
    }
}

impl Session for MemorySession {
    fn id(&self) -> Option<SessionId> {
        self.id.clone()
    }

    async fn append(
        &self,
        head: &EntryHead,
        entries: &[Entry<'_>],
        _durability: Durability,
    ) -> Result<(), SessionError> {
        self.append_blocking(head, entries)
    }

    async fn replace(&self, _head: &EntryHead, messages: &[Arc<Message>]) -> Result<bool, SessionError> {
        self.kept.lock().replace(messages);
        Ok(true)
    }

    async fn load(&self) -> Result<Loaded, SessionError> {
        let kept = self.kept.lock();
        let mut loaded = kept.fold().loaded;
        loaded.descriptor.clone_from(&kept.descriptor);
        Ok(loaded)
    }
}
