//! Shared state: a bounded map that forgets what was not used for longest, and locks.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// At most `cap` entries. Adding one more drops the one that was used least recently.
#[derive(Debug, Clone)]
pub(crate) struct Recent<K, V> {
    entries: HashMap<K, (u64, V)>,
    cap: usize,
    uses: u64,
}

impl<K: Hash + Eq + Clone, V> Recent<K, V> {
    /// An empty map of at most `cap` entries, at least one.
    pub(crate) fn new(cap: usize) -> Self {
        Self { entries: HashMap::new(), cap: cap.max(1), uses: 0 }
    }

    /// The value of a key, which counts as a use.
    pub(crate) fn get_mut<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let (used, value) = self.entries.get_mut(key)?;
        self.uses += 1;
        *used = self.uses;
        Some(value)
    }

    /// The value of a key, made by `new` if it is unknown.
    pub(crate) fn or_insert(&mut self, key: K, new: impl FnOnce() -> V) -> &mut V {
        if !self.entries.contains_key(&key) && self.entries.len() >= self.cap {
            let oldest = self.entries.iter().min_by_key(|(_, (used, _))| *used).map(|(key, _)| key.clone());
            oldest.and_then(|oldest| self.entries.remove(&oldest));
        }
        self.uses += 1;
        let (used, value) = self.entries.entry(key).or_insert_with(|| (0, new()));
        *used = self.uses;
        value
    }

    /// Sets the value of a key.
    pub(crate) fn insert(&mut self, key: K, value: V) {
        self.remove(&key);
        self.or_insert(key, || value);
    }

    /// Removes an entry.
    pub(crate) fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.entries.remove(key).map(|(_, value)| value)
    }

    /// Drops the entries that `keep` refuses.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&K) -> bool) {
        self.entries.retain(|key, _| keep(key));
    }
}

impl<K: Hash + Eq + Clone, S: Clone> Recent<K, Arc<Mutex<S>>> {
    /// Copy whose states are separate.
    pub(crate) fn apart(&self) -> Self {
        let apart = |state: &Mutex<S>| Arc::new(Mutex::new(lock(state).clone()));
        let entries = self.entries.iter().map(|(key, (used, state))| (key.clone(), (*used, apart(state))));
        Self { entries: entries.collect(), cap: self.cap, uses: self.uses }
    }
}

/// Locks a mutex, even if a thread panicked while it held it: what is locked here is valid after every statement.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_used_for_longest_is_forgotten() {
        let mut recent = Recent::new(2);
        recent.insert("a", 1);
        recent.insert("b", 2);
        assert_eq!(recent.get_mut("a"), Some(&mut 1));
        recent.insert("c", 3);
        assert_eq!(recent.get_mut("a"), Some(&mut 1));
        assert_eq!(recent.entries.len(), 2);
        assert_eq!(recent.get_mut("b"), None);
    }
}
