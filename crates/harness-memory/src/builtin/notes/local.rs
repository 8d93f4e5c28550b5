//! Notes in memory.

use std::collections::HashMap;
use std::sync::Arc;

use harness_host::StorageError;
use parking_lot::Mutex;

use super::memory::WhenFull;
use super::note::{Note, NoteScope};
use super::store::{Embedding, NoteStore, Put, Ranked, Within, best, full};
use super::words;

/// How soon a word that occurs again counts less, and how much a long text counts less: the usual
/// constants of BM25.
const K1: f64 = 1.2;
const B: f64 = 0.75;

/// Keeps notes in memory: for tests, and for memory that need not outlive the program.
#[derive(Debug, Default)]
pub struct LocalNotes {
    kept: Mutex<HashMap<Arc<str>, Kept>>,
}

#[derive(Debug)]
struct Kept {
    note: Note,
    vector: Option<Embedding>,
    /// How often each word occurs in text and tags.
    words: HashMap<String, u32>,
    length: u32,
}

impl Kept {
    fn new(note: Note, vector: Option<Embedding>) -> Self {
        let mut counts = HashMap::new();
        let mut length = 0_u32;
        for word in words::of(&note.text).chain(note.tags.iter().flat_map(|tag| words::of(tag))) {
            *counts.entry(word).or_insert(0) += 1;
            length = length.saturating_add(1);
        }
        Self { note, vector, words: counts, length }
    }

    fn is_within(&self, within: &Within) -> bool {
        within.scopes.contains(&self.note.scope)
            && !self.note.is_expired(within.now)
            && within.tag.as_ref().is_none_or(|tag| self.note.tags.contains(tag))
    }

    fn ranked(&self, score: f64) -> Ranked {
        Ranked { note: self.note.clone(), score }
    }
}

/// Makes room for a new note of its scope.
fn make_room(kept: &mut HashMap<Arc<str>, Kept>, put: &Put) -> Result<(), StorageError> {
    let scope = &put.note.scope;
    kept.retain(|_, k| k.note.scope != *scope || !k.note.is_expired(put.note.created_at));
    let mut of_scope: Vec<_> = kept
        .values()
        .filter(|k| k.note.scope == *scope)
        .map(|k| (k.note.created_at, Arc::clone(&k.note.id)))
        .collect();
    if of_scope.len() < put.max_notes {
        return Ok(());
    }
    if put.when_full == WhenFull::Refuse || put.max_notes == 0 {
        return Err(full(scope, put.max_notes));
    }
    of_scope.sort();
    for (_, id) in of_scope.iter().take(of_scope.len() + 1 - put.max_notes) {
        kept.remove(id);
    }
    Ok(())
}

impl NoteStore for LocalNotes {
    async fn put(&self, put: Put) -> Result<bool, StorageError> {
        let mut kept = self.kept.lock();
        let fresh = !kept.contains_key(&put.note.id);
        if fresh {
            make_room(&mut kept, &put)?;
        }
        kept.insert(Arc::clone(&put.note.id), Kept::new(put.note, put.vector));
        Ok(fresh)
    }

    async fn keyword(&self, terms: Vec<String>, within: Within) -> Result<Vec<Ranked>, StorageError> {
        let kept = self.kept.lock();
        let notes: Vec<&Kept> = kept.values().filter(|k| k.is_within(&within)).collect();
        let count = f64::from(u32::try_from(notes.len()).unwrap_or(u32::MAX));
        let mean = notes.iter().map(|k| f64::from(k.length)).sum::<f64>() / count.max(1.0);
        let weights: Vec<(String, f64)> = terms
            .into_iter()
            .map(|term| {
                let having = notes.iter().filter(|k| k.words.contains_key(&term)).count();
                let having = f64::from(u32::try_from(having).unwrap_or(u32::MAX));
                (term, (1.0 + (count - having + 0.5) / (having + 0.5)).ln())
            })
            .collect();
        let score = |k: &Kept| -> f64 {
            let damping = K1 * (1.0 - B + B * f64::from(k.length) / mean.max(1.0));
            let of_term = |(term, weight): &(String, f64)| {
                let times = f64::from(*k.words.get(term)?);
                Some(weight * times * (K1 + 1.0) / (times + damping))
            };
            weights.iter().filter_map(of_term).sum()
        };
        let ranked = notes.iter().map(|k| k.ranked(score(k))).filter(|r| r.score > 0.0).collect();
        Ok(best(ranked, within.limit))
    }

    async fn nearest(&self, probe: Embedding, within: Within) -> Result<Vec<Ranked>, StorageError> {
        let kept = self.kept.lock();
        let alike = |k: &Kept| Some(k.ranked(k.vector.as_ref()?.cosine(&probe)?));
        let ranked = kept.values().filter(|k| k.is_within(&within)).filter_map(alike).collect();
        Ok(best(ranked, within.limit))
    }

    async fn newest(&self, within: Within) -> Result<Vec<Ranked>, StorageError> {
        let kept = self.kept.lock();
        let ranked = kept.values().filter(|k| k.is_within(&within)).map(|k| k.ranked(0.0)).collect();
        Ok(best(ranked, within.limit))
    }

    async fn remove(&self, id: Arc<str>, scopes: Vec<NoteScope>) -> Result<bool, StorageError> {
        let mut kept = self.kept.lock();
        let theirs = kept.get(&id).is_some_and(|k| scopes.contains(&k.note.scope));
        Ok(theirs && kept.remove(&id).is_some())
    }
}
