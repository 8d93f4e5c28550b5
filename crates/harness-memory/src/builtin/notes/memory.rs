//! Remembering and finding again.

use std::sync::Arc;

use harness_core::{Fault, FaultSource, Time};
use harness_host::{DynEmbedder, StorageError};

use super::note::{Note, NoteDraft, NoteScope};
use super::store::{DynNoteStore, Embedding, Put, Ranked, Within};
use super::words;

/// The constant of reciprocal rank fusion: how little the very first places count more than the next.
const FUSION: f64 = 60.0;

/// Effect of a new note on a full scope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// The note is rejected with the error `notes.full`; nothing is forgotten implicitly.
    #[default]
    Refuse,
    /// The oldest note of the scope is dropped.
    DropOldest,
}

/// The bounds of a [`LongTermMemory`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MemoryBounds {
    /// Bytes of one text, in UTF-8. Default 8,192; a longer one is refused with `notes.too_long`.
    pub max_text: usize,
    /// Tags of one note. Default 10; more are refused with `notes.too_many_tags`.
    pub max_tags: usize,
    /// Characters of one tag. Default 64; a longer one is refused with `notes.too_many_tags`.
    pub max_tag: usize,
    /// Notes of one scope. Default 10,000.
    pub max_notes: usize,
    /// Effect of further notes. Default: reject.
    pub when_full: WhenFull,
    /// Notes whose vectors have a smaller cosine are not alike. Default 0.2.
    pub min_cosine: f64,
    /// Candidates of each way of searching, before they are joined. Default 50.
    pub candidates: usize,
}

impl Default for MemoryBounds {
    fn default() -> Self {
        Self {
            max_text: 8_192,
            max_tags: 10,
            max_tag: 64,
            max_notes: 10_000,
            when_full: WhenFull::Refuse,
            min_cosine: 0.2,
            candidates: 50,
        }
    }
}

/// Result of a draft.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Added {
    /// Stored note.
    pub note: Note,
    /// Whether nothing of the kind was there: else its time, tags and expiry are now those of the draft.
    pub fresh: bool,
    /// Error of the embedder: the note has no vector and is found by its words only.
    pub unembedded: Option<Fault>,
}

/// Search for notes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NoteQuery {
    /// In these words.
    pub text: String,
    /// In these scopes; see [`NoteScope::visible_to`].
    pub scopes: Vec<NoteScope>,
    /// Only with this tag, when there is one.
    pub tag: Option<String>,
    /// At most this many. Default 5.
    pub limit: usize,
}

impl NoteQuery {
    /// The best five for `text` in `scopes`.
    pub fn new(text: impl Into<String>, scopes: Vec<NoteScope>) -> Self {
        Self { text: text.into(), scopes, tag: None, limit: 5 }
    }

    /// Sets the maximum.
    #[must_use]
    pub fn at_most(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// Restricts the search to a tag.
    #[must_use]
    pub fn tagged(self, tag: impl Into<String>) -> Self {
        Self { tag: Some(tag.into().to_lowercase()), ..self }
    }
}

/// A note that was found.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Recalled {
    /// Found note.
    pub note: Note,
    /// How well it fits: 1 when it is first in every way of searching, near 0 when it is last in one.
    pub score: f64,
    /// Its place by words, from 1.
    pub by_words: Option<usize>,
    /// Its cosine to the query, when it was found by vector.
    pub cosine: Option<f64>,
}

/// Result of a search.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Found {
    /// The notes, the best first; of notes of several scopes that say the same, the best.
    pub hits: Vec<Recalled>,
    /// Error of the embedder: only words were searched.
    pub degraded: Option<Fault>,
}

/// Notes that outlive runs.
///
/// Found by words (BM25) and, with an embedder, by vectors (cosine); the two rankings are joined by
/// reciprocal rank fusion.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::Time;
/// use harness_memory::builtin::notes::{LocalNotes, LongTermMemory, NoteDraft, NoteQuery, NoteScope};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), harness_host::StorageError> {
/// let memory = LongTermMemory::new(Arc::new(LocalNotes::default()));
/// let ada = NoteScope::Resource("ada".into());
/// memory.add(NoteDraft::new("Ada drinks tea without milk.", ada.clone()), Time(0)).await?;
///
/// let found = memory.search(&NoteQuery::new("does she take milk in her tea?", vec![ada]), Time(1)).await?;
/// assert_eq!(&*found.hits[0].note.text, "Ada drinks tea without milk.");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, derive_more::Debug)]
pub struct LongTermMemory {
    #[debug(skip)]
    store: Arc<dyn DynNoteStore>,
    #[debug(skip)]
    embedder: Option<Arc<dyn DynEmbedder>>,
    bounds: MemoryBounds,
}

impl LongTermMemory {
    /// Notes in `store`, found by their words.
    pub fn new(store: Arc<dyn DynNoteStore>) -> Self {
        Self { store, embedder: None, bounds: MemoryBounds::default() }
    }

    /// Adds a search by vectors. Notes written without this embedder are found by their words until they are written
    /// again.
    #[must_use]
    pub fn with_embedder(self, embedder: Arc<dyn DynEmbedder>) -> Self {
        Self { embedder: Some(embedder), ..self }
    }

    /// Sets the bounds.
    #[must_use]
    pub fn with_bounds(self, bounds: MemoryBounds) -> Self {
        Self { bounds, ..self }
    }

    /// Remembers a draft. What its scope knows already is not remembered twice: see [`Added::fresh`].
    ///
    /// # Errors
    /// `notes.empty`, `notes.too_long`, `notes.too_many_tags` or `notes.full`; or when it cannot be
    /// written.
    pub async fn add(&self, draft: NoteDraft, now: Time) -> Result<Added, StorageError> {
        self.check(&draft)?;
        let note = Note::of(draft, now);
        let (vector, unembedded) = self.embedded(&note.text).await;
        let MemoryBounds { max_notes, when_full, .. } = self.bounds;
        let put = Put { note: note.clone(), vector, max_notes, when_full };
        let fresh = self.store.put_boxed(put).await?;
        Ok(Added { note, fresh, unembedded })
    }

    /// Finds notes. A query without a word gives the newest ones.
    ///
    /// # Errors
    /// When the notes cannot be read.
    pub async fn search(&self, query: &NoteQuery, now: Time) -> Result<Found, StorageError> {
        let within = |limit| Within { scopes: query.scopes.clone(), tag: query.tag.clone(), now, limit };
        let terms = words::terms(&query.text);
        if terms.is_empty() {
            let newest = self.store.newest_boxed(within(query.limit)).await?;
            return Ok(Found { hits: fused(newest, None, query.limit), degraded: None });
        }
        let by_words = self.store.keyword_boxed(terms, within(self.bounds.candidates)).await?;
        let (probe, degraded) = self.embedded(&query.text).await;
        let alike = match probe {
            Some(probe) => {
                let mut alike = self.store.nearest_boxed(probe, within(self.bounds.candidates)).await?;
                alike.retain(|ranked| ranked.score >= self.bounds.min_cosine);
                Some(alike)
            }
            None => None,
        };
        Ok(Found { hits: fused(by_words, alike, query.limit), degraded })
    }

    /// The newest notes of `scopes`, of one tag if one is named.
    ///
    /// # Errors
    /// When the notes cannot be read.
    pub async fn newest(
        &self,
        scopes: Vec<NoteScope>,
        tag: Option<&str>,
        now: Time,
        limit: usize,
    ) -> Result<Vec<Note>, StorageError> {
        let within = Within { scopes, tag: tag.map(str::to_lowercase), now, limit };
        Ok(self.store.newest_boxed(within).await?.into_iter().map(|ranked| ranked.note).collect())
    }

    /// Forgets a note if it is of one of `scopes`; whether there was one.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub async fn forget(&self, id: &str, scopes: Vec<NoteScope>) -> Result<bool, StorageError> {
        self.store.remove_boxed(id.into(), scopes).await
    }

    fn check(&self, draft: &NoteDraft) -> Result<(), StorageError> {
        let MemoryBounds { max_text, max_tags, max_tag, .. } = self.bounds;
        if draft.text.trim().is_empty() {
            return Err(StorageError::new("notes.empty", "a note needs a text; this one is empty"));
        }
        let length = draft.text.len();
        if length > max_text {
            let message =
                format!("the note has {length} bytes, and {max_text} is the most; say it in fewer words");
            return Err(StorageError::new("notes.too_long", message));
        }
        let longest = draft.tags.iter().map(|tag| tag.chars().count()).max().unwrap_or(0);
        if draft.tags.len() > max_tags || longest > max_tag {
            let message = format!(
                "the note has {} tags of up to {longest} characters; {max_tags} tags of {max_tag} are the most",
                draft.tags.len(),
            );
            return Err(StorageError::new("notes.too_many_tags", message));
        }
        Ok(())
    }

    /// The vector of a text, or why there is none; neither without an embedder.
    async fn embedded(&self, text: &str) -> (Option<Embedding>, Option<Fault>) {
        let Some(embedder) = &self.embedder else { return (None, None) };
        let by: Arc<str> = embedder.embedder_name().into();
        let values = match embedder.embed_boxed(&[text]).await {
            Ok(vectors) => vectors.into_iter().next().unwrap_or_default(),
            Err(fault) => return (None, Some(fault)),
        };
        let (expected, got) = (embedder.embedder_dimensions(), values.len());
        if got != expected || values.iter().any(|x| !x.is_finite()) {
            let message = format!(
                "embedder `{by}` gave {got} numbers where {expected} finite ones are due; check its model"
            );
            return (None, Some(Fault::new(FaultSource::Layer, "notes.bad_vector", message)));
        }
        (Some(Embedding { by, values }), None)
    }
}

/// Joins two rankings by reciprocal rank fusion, scaled so that first in all of them is 1.
fn fused(by_words: Vec<Ranked>, alike: Option<Vec<Ranked>>, limit: usize) -> Vec<Recalled> {
    let lists = if alike.is_some() { 2.0 } else { 1.0 };
    let share = |place: usize| {
        let place = u32::try_from(place).unwrap_or(u32::MAX);
        (FUSION + 1.0) / (FUSION + f64::from(place)) / lists
    };
    let mut hits: Vec<Recalled> = Vec::new();
    for (at, Ranked { note, .. }) in by_words.into_iter().enumerate() {
        hits.push(Recalled { note, score: share(at + 1), by_words: Some(at + 1), cosine: None });
    }
    for (at, Ranked { note, score: cosine }) in alike.into_iter().flatten().enumerate() {
        if let Some(hit) = hits.iter_mut().find(|hit| hit.note.id == note.id) {
            hit.score += share(at + 1);
            hit.cosine = Some(cosine);
        } else {
            hits.push(Recalled { note, score: share(at + 1), by_words: None, cosine: Some(cosine) });
        }
    }
    hits.sort_by(|a, b| {
        let by_time = || b.note.created_at.cmp(&a.note.created_at);
        b.score.total_cmp(&a.score).then_with(by_time).then_with(|| a.note.id.cmp(&b.note.id))
    });
    let mut seen = std::collections::HashSet::new();
    hits.retain(|hit| seen.insert(words::normal(&hit.note.text)));
    hits.truncate(limit);
    hits
}
