//! State of several threads: bounded maps.

use std::hash::Hash;
use std::num::NonZeroUsize;
use std::sync::Arc;

use lru::LruCache;
use parking_lot::Mutex;

/// An empty map of at most `cap` entries, at least one. Adding one more drops the one that was used least recently.
pub(crate) fn recent<K: Hash + Eq, V>(cap: usize) -> LruCache<K, V> {
    LruCache::sparse(NonZeroUsize::new(cap).unwrap_or(NonZeroUsize::MIN))
}

/// Copy of a map whose states are separate.
pub(crate) fn apart<K: Hash + Eq + Clone, S: Clone>(
    states: &LruCache<K, Arc<Mutex<S>>>,
) -> LruCache<K, Arc<Mutex<S>>> {
    let mut copy = states.clone();
    for (_, state) in &mut copy {
        let apart = state.lock().clone();
        *state = Arc::new(Mutex::new(apart));
    }
    copy
}
