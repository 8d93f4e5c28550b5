//! Records in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::record::ContinuationRecord;
use super::store::{ContinuationStore, StoreError, belongs_to, check_revision, oldest_first};

/// Records that live as long as the process. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct MemoryContinuations(Arc<Mutex<BTreeMap<String, ContinuationRecord>>>);

impl MemoryContinuations {
    /// No records yet.
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, ContinuationRecord>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ContinuationStore for MemoryContinuations {
    async fn get(&self, id: &str) -> Result<Option<ContinuationRecord>, StoreError> {
        Ok(self.lock().get(id).cloned())
    }

    async fn put(&self, record: ContinuationRecord) -> Result<(), StoreError> {
        let mut records = self.lock();
        check_revision(records.get(&record.id), &record)?;
        records.insert(record.id.clone(), record);
        Ok(())
    }

    async fn of_session(&self, session: &str) -> Result<Vec<ContinuationRecord>, StoreError> {
        let mut found: Vec<_> =
            self.lock().values().filter(|record| belongs_to(record, session)).cloned().collect();
        oldest_first(&mut found);
        Ok(found)
    }

    async fn delete(&self, id: &str) -> Result<bool, StoreError> {
        Ok(self.lock().remove(id).is_some())
    }
}
