//! Stored responses.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use harness::core::ThreadId;
use parking_lot::Mutex;
use serde_json::Value;

use crate::options::Bounds;

/// A stored response.
#[derive(Clone, Debug)]
pub(crate) struct StoredResponse {
    /// Thread of its run.
    pub(crate) thread: ThreadId,
    /// Number of messages of the thread at its end.
    pub(crate) end: usize,
    /// Whether the thread was created for responses, and is deleted with the last of them.
    pub(crate) owns_thread: bool,
    /// JSON of the response.
    pub(crate) body: Arc<Value>,
}

/// The newest responses, within limits.
#[derive(Debug)]
pub(crate) struct ResponseStore {
    count: usize,
    bytes: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// Ids from old to new; removed ones may remain until they are the oldest.
    order: VecDeque<String>,
    entries: HashMap<String, (StoredResponse, usize)>,
    bytes: usize,
}

impl Kept {
    /// Removes a response; returns its thread if no other response needs it.
    fn remove(&mut self, id: &str) -> Option<(StoredResponse, Option<ThreadId>)> {
        let (removed, size) = self.entries.remove(id)?;
        self.bytes = self.bytes.saturating_sub(size);
        let is_needed = self.entries.values().any(|(other, _)| other.thread == removed.thread);
        let orphan = (removed.owns_thread && !is_needed).then(|| removed.thread.clone());
        Some((removed, orphan))
    }
}

impl ResponseStore {
    pub(crate) fn new(bounds: &Bounds) -> Self {
        Self { count: bounds.responses, bytes: bounds.response_bytes, kept: Mutex::default() }
    }

    /// Stores a response; returns the threads of dropped responses that no other response needs.
    pub(crate) fn insert(&self, id: String, response: StoredResponse) -> Vec<ThreadId> {
        let size = response.body.to_string().len();
        let mut kept = self.kept.lock();
        kept.bytes = kept.bytes.saturating_add(size);
        kept.order.push_back(id.clone());
        kept.entries.insert(id, (response, size));
        let mut orphans = Vec::new();
        while kept.entries.len() > self.count
            || kept.bytes > self.bytes
            || kept.order.len() > 2 * self.count + 1
        {
            let Some(oldest) = kept.order.pop_front() else { break };
            orphans.extend(kept.remove(&oldest).and_then(|(_, orphan)| orphan));
        }
        orphans
    }

    pub(crate) fn get(&self, id: &str) -> Option<StoredResponse> {
        self.kept.lock().entries.get(id).map(|(response, _)| response.clone())
    }

    /// Removes a response; returns whether it existed, and its thread if no other response needs it.
    pub(crate) fn remove(&self, id: &str) -> (bool, Option<ThreadId>) {
        let removed = self.kept.lock().remove(id);
        (removed.is_some(), removed.and_then(|(_, orphan)| orphan))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(thread: &str) -> StoredResponse {
        StoredResponse { thread: thread.into(), end: 2, owns_thread: true, body: Arc::new(Value::Null) }
    }

    #[test]
    fn the_oldest_are_dropped_with_threads_that_no_other_response_needs() {
        let bounds = Bounds { responses: 2, ..Bounds::default() };
        let store = ResponseStore::new(&bounds);
        assert!(store.insert("1".into(), response("a")).is_empty());
        assert!(store.insert("2".into(), response("a")).is_empty());
        assert!(store.insert("3".into(), response("b")).is_empty(), "2 needs its thread");
        assert!(store.get("1").is_none());
        assert_eq!(store.insert("4".into(), response("b")), ["a"]);
        assert_eq!(store.remove("4"), (true, None));
        assert_eq!(store.remove("3"), (true, Some("b".into())));
        assert_eq!(store.remove("3"), (false, None));
    }

    #[test]
    fn all_of_them_are_bounded_in_bytes() {
        let bounds = Bounds { response_bytes: 10, ..Bounds::default() };
        let store = ResponseStore::new(&bounds);
        for id in ["1", "2", "3"] {
            store.insert(id.into(), response(id));
        }
        assert!(store.get("1").is_none());
        assert!(store.get("3").is_some());
    }
}
