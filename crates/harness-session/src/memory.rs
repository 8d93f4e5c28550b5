//! A session in memory.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use harness_core::SessionId;
use harness_core::port::{Durability, Entry, EntryHead, Loaded, Session, SessionError};

use crate::fold::{CallNote, Fold, Item, Record};

/// A session that lives as long as its value, for tests and for threads that need not outlive the program.
///
/// A clone is another handle of the same session. Appending never waits and never fails; there is no bound
/// but the memory of the process, because the running turn holds the same shared messages anyway.
#[derive(Clone, Debug, Default)]
pub struct MemorySession {
    id: Option<SessionId>,
    records: Arc<Mutex<Vec<Record>>>,
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

    fn records(&self) -> MutexGuard<'_, Vec<Record>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, head: &EntryHead, entries: &[Entry<'_>]) -> Result<(), SessionError> {
        let records = entries
            .iter()
            .map(|entry| Ok(Record { in_run: head.run.is_some(), item: item(entry)? }))
            .collect::<Result<Vec<_>, SessionError>>()?;
        self.records().extend(records);
        Ok(())
    }
}

fn item(entry: &Entry<'_>) -> Result<Item, SessionError> {
    Ok(match *entry {
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
        Entry::RunState { state, .. } => Item::RunState(state.clone()),
        Entry::RunEnd { .. } => Item::RunEnd,
        Entry::Compaction { .. } | _ => {
            return Err(SessionError::new(
                "session.unstorable",
                "this store does not know this kind of entry (use a newer version of harness-session)",
            ));
        }
    })
}

impl Session for MemorySession {
    fn id(&self) -> Option<SessionId> {
        self.id.clone()
    }

    fn try_append(
        &self,
        head: &EntryHead,
        entries: &[Entry<'_>],
        _durability: Durability,
    ) -> Option<Result<(), SessionError>> {
        Some(self.write(head, entries))
    }

    async fn append(
        &self,
        head: &EntryHead,
        entries: &[Entry<'_>],
        _durability: Durability,
    ) -> Result<(), SessionError> {
        self.write(head, entries)
    }

    async fn load(&self) -> Result<Loaded, SessionError> {
        let mut fold = Fold::default();
        for record in self.records().iter() {
            fold.add(record);
        }
        Ok(fold.finish())
    }
}
