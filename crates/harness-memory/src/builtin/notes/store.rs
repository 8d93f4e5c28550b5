//! The port behind long-term memory: where notes lie.

use std::sync::Arc;

use harness_core::Time;
use harness_host::StorageError;

use super::memory::WhenFull;
use super::note::{Note, NoteScope};

/// A vector and what made it. Vectors of different makers are never compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedding {
    /// The name of the embedder.
    pub by: Arc<str>,
    /// Numbers of the vector.
    pub values: Vec<f32>,
}

impl Embedding {
    /// The cosine of the angle to `other`: 1 for the same direction, 0 for nothing in common. `None` when
    /// the two cannot be compared.
    pub fn cosine(&self, other: &Self) -> Option<f64> {
        if self.by != other.by || self.values.len() != other.values.len() {
            return None;
        }
        let dot = |a: &[f32], b: &[f32]| -> f64 { a.iter().zip(b).map(|(x, y)| f64::from(x * y)).sum() };
        let lengths = (dot(&self.values, &self.values) * dot(&other.values, &other.values)).sqrt();
        (lengths > 0.0).then(|| dot(&self.values, &other.values) / lengths)
    }
}

/// Write to a store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Put {
    /// The note. One with its id is replaced.
    pub note: Note,
    /// Its vector, if there is one.
    pub vector: Option<Embedding>,
    /// Notes that its scope may have.
    pub max_notes: usize,
    /// Effect on a full scope.
    pub when_full: WhenFull,
}

/// Which notes a question is about.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Within {
    /// Only those of these scopes.
    pub scopes: Vec<NoteScope>,
    /// Only those with this tag, when there is one.
    pub tag: Option<String>,
    /// Only those that are not forgotten at this time.
    pub now: Time,
    /// At most this many, the best first.
    pub limit: usize,
}

/// A note and how well it fits; more is better. Scores of different questions say nothing to each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranked {
    /// Found note.
    pub note: Note,
    /// How well it fits.
    pub score: f64,
}

/// Keeps notes. What it gives is sorted, the best first; equal scores by time, the newest first, then by id.
pub trait NoteStore: Send + Sync {
    /// Puts a note, and whether it is new: one with its id is replaced. Forgotten notes of its scope make
    /// room first.
    ///
    /// # Errors
    /// `notes.full`, when its scope is full and nothing may be dropped; or when it cannot be written.
    fn put(&self, put: Put) -> impl Future<Output = Result<bool, StorageError>> + Send;

    /// The notes that have one of `terms` (words, lower-case) in text or tags, ranked by how rare and how
    /// frequent the words are (BM25).
    ///
    /// # Errors
    /// When the notes cannot be read.
    fn keyword(
        &self,
        terms: Vec<String>,
        within: Within,
    ) -> impl Future<Output = Result<Vec<Ranked>, StorageError>> + Send;

    /// The notes whose vectors point most nearly where `probe` points; the score is the cosine. Notes
    /// without a vector of its maker are left out.
    ///
    /// # Errors
    /// When the notes cannot be read.
    fn nearest(
        &self,
        probe: Embedding,
        within: Within,
    ) -> impl Future<Output = Result<Vec<Ranked>, StorageError>> + Send;

    /// The newest notes; each scores 0.
    ///
    /// # Errors
    /// When the notes cannot be read.
    fn newest(&self, within: Within) -> impl Future<Output = Result<Vec<Ranked>, StorageError>> + Send;

    /// Removes a note if it is of one of `scopes`; whether there was one.
    ///
    /// # Errors
    /// When it cannot be removed.
    fn remove(
        &self,
        id: Arc<str>,
        scopes: Vec<NoteScope>,
    ) -> impl Future<Output = Result<bool, StorageError>> + Send;
}

harness_core::twin! {
    DynNoteStore of NoteStore {
        async fn put_boxed = put(put: Put) -> Result<bool, StorageError>;
        async fn keyword_boxed = keyword(
            terms: Vec<String>,
            within: Within
        ) -> Result<Vec<Ranked>, StorageError>;
        async fn nearest_boxed = nearest(
            probe: Embedding,
            within: Within
        ) -> Result<Vec<Ranked>, StorageError>;
        async fn newest_boxed = newest(within: Within) -> Result<Vec<Ranked>, StorageError>;
        async fn remove_boxed = remove(id: Arc<str>, scopes: Vec<NoteScope>) -> Result<bool, StorageError>;
    }
}

/// Sorts as [`NoteStore`] promises, and keeps the best `limit`.
pub(super) fn best(mut ranked: Vec<Ranked>, limit: usize) -> Vec<Ranked> {
    ranked.sort_by(|a, b| {
        let by_time = || b.note.created_at.cmp(&a.note.created_at);
        b.score.total_cmp(&a.score).then_with(by_time).then_with(|| a.note.id.cmp(&b.note.id))
    });
    ranked.truncate(limit);
    ranked
}

/// The error of a scope that takes no more.
pub(super) fn full(scope: &NoteScope, max: usize) -> StorageError {
    StorageError::new(
        "notes.full",
        format!(
            "the {} scope `{}` has {max} notes and takes no more; remove some, or raise `max_notes`",
            scope.kind(),
            scope.owner(),
        ),
    )
}
