//! Notes and their owners.

use std::sync::Arc;

use harness_core::canonical::sha256_hex;
use harness_core::{Json, Origin, RunId, ThreadId, Time};
use serde::{Deserialize, Serialize};

use super::words;

/// Owner of a note: decides who can find, change and remove it.
#[derive(
    Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum NoteScope {
    /// One conversation's. The memory tools call it `session`.
    Thread(Arc<str>),
    /// One user's, in all conversations. The memory tools call it `user`.
    Resource(Arc<str>),
    /// One workspace with all its users.
    Workspace(Arc<str>),
    /// All users.
    Global,
}

impl NoteScope {
    /// The word for the kind: `thread`, `resource`, `workspace` or `global`.
    pub fn kind(&self) -> &'static str {
        self.into()
    }

    /// Id of the thread, user or workspace; empty for `Global`.
    pub fn owner(&self) -> &str {
        match self {
            Self::Thread(id) | Self::Resource(id) | Self::Workspace(id) => id,
            Self::Global => "",
        }
    }

    /// The scopes that work of `origin` may see, the narrowest first. What `origin` does not name is left
    /// out.
    pub fn visible_to(origin: &Origin) -> Vec<Self> {
        let thread = origin.thread.as_ref().map(|id| Self::Thread(id.as_str().into()));
        let user = origin.user.clone().map(Self::Resource);
        let workspace = origin.workspace.clone().map(Self::Workspace);
        [thread, user, workspace, Some(Self::Global)].into_iter().flatten().collect()
    }
}

/// Where a note comes from. It is shown beside the note, so that a model can weigh it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct NoteSource {
    /// Author: `tool`, `episode`, or a name of the application. Empty when unknown.
    pub by: Arc<str>,
    /// The conversation in which it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<ThreadId>,
    /// The run in which it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
}

impl NoteSource {
    /// A note that `by` wrote in work of `origin`.
    pub fn new(by: impl Into<Arc<str>>, origin: &Origin) -> Self {
        Self { by: by.into(), thread: origin.thread.clone(), run: origin.run.clone() }
    }
}

/// A note to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NoteDraft {
    /// Text of the note.
    pub text: String,
    /// Owner of the note.
    pub scope: NoteScope,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// Where it comes from.
    pub source: NoteSource,
    /// The caller's own data.
    pub metadata: Option<Json>,
    /// When it is forgotten; `None` is never.
    pub expires_at: Option<Time>,
}

impl NoteDraft {
    /// A text for `scope`, for ever, from nowhere in particular.
    pub fn new(text: impl Into<String>, scope: NoteScope) -> Self {
        Self {
            text: text.into(),
            scope,
            tags: Vec::new(),
            source: NoteSource::default(),
            metadata: None,
            expires_at: None,
        }
    }

    /// Adds tags.
    #[must_use]
    pub fn tagged(mut self, tags: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tags = tags.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the origin.
    #[must_use]
    pub fn from_source(mut self, source: NoteSource) -> Self {
        self.source = source;
        self
    }
}

/// Something remembered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Note {
    /// Its name: made of its scope and what it says, so that the same is remembered once.
    pub id: Arc<str>,
    /// Owner of the note.
    pub scope: NoteScope,
    /// Text of the note.
    pub text: Arc<str>,
    /// Words to find it by, lower-case.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Where it comes from.
    #[serde(default)]
    pub source: NoteSource,
    /// The caller's own data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
    /// When it was remembered, or said again.
    pub created_at: Time,
    /// When it is forgotten; `None` is never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
}

impl Note {
    /// The note that `draft` becomes at `now`. Two drafts of one scope that differ only in case, white
    /// space or a closing full stop become notes of one id.
    pub fn of(draft: NoteDraft, now: Time) -> Self {
        let said = [draft.scope.kind(), draft.scope.owner(), &words::normal(&draft.text)].join("\u{1f}");
        let hash = sha256_hex(said);
        Self {
            id: format!("note-{}", hash.get(..24).unwrap_or(&hash)).into(),
            scope: draft.scope,
            text: draft.text.trim().into(),
            tags: draft.tags.iter().map(|tag| tag.trim().to_lowercase()).filter(|t| !t.is_empty()).collect(),
            source: draft.source,
            metadata: draft.metadata,
            created_at: now,
            expires_at: draft.expires_at,
        }
    }

    /// Whether it is forgotten at `now`.
    pub fn is_expired(&self, now: Time) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }
}
