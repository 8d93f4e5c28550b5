//! Contents that are too large for a transcript, kept beside it and named by their hash.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::storage::StorageError;
use harness_core::{ArtifactId, SessionId, Time};

/// How freely a content may be shown again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sensitivity {
    /// To every caller.
    Public,
    /// To the agents of the owner, also unasked.
    #[default]
    Internal,
    /// Only when it is asked for.
    Confidential,
    /// Only when it is asked for, by the session that owns it.
    Restricted,
}

/// Description of an artifact.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ArtifactMeta {
    /// The session that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<SessionId>,
    /// Its media type, for example `text/plain`.
    pub media_type: String,
    /// Short description, such as the tool and the call that made it.
    pub label: String,
    /// How freely it may be shown again.
    pub sensitivity: Sensitivity,
    /// Bytes. Set by the store.
    pub size: u64,
    /// When it was stored.
    pub created_at: Time,
    /// When it may be removed; `None` is never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
}

/// A part of an artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArtifactPart {
    /// Content of the part.
    pub bytes: Arc<[u8]>,
    /// Range within the artifact.
    pub range: Range<u64>,
    /// Description of the artifact.
    pub meta: ArtifactMeta,
}

impl ArtifactPart {
    /// A part at `from`.
    pub fn new(bytes: Arc<[u8]>, from: u64, meta: ArtifactMeta) -> Self {
        let end = from.saturating_add(bytes.len() as u64);
        Self { bytes, range: from..end, meta }
    }
}

/// Keeps contents under the hash of their bytes: the same bytes are kept once.
pub trait ArtifactStore: Send + Sync {
    /// Stores bytes, exactly, and gives their name (`sha256:` and 64 hex digits).
    ///
    /// # Errors
    /// When they cannot be stored, or are too many.
    fn put(
        &self,
        bytes: &[u8],
        meta: ArtifactMeta,
    ) -> impl Future<Output = Result<ArtifactId, StorageError>> + Send;

    /// Bytes of an artifact; a range past its end is cut. `None` when there is no such artifact, it has
    /// expired at `now`, or it is restricted to another session than `requester`.
    ///
    /// # Errors
    /// When it cannot be read, or its bytes do not have the hash that names them.
    fn read(
        &self,
        id: &ArtifactId,
        range: Range<u64>,
        requester: Option<&SessionId>,
        now: Time,
    ) -> impl Future<Output = Result<Option<ArtifactPart>, StorageError>> + Send;

    /// Removes an artifact. Returns whether it existed.
    ///
    /// # Errors
    /// When it cannot be removed.
    fn delete(&self, id: &ArtifactId) -> impl Future<Output = Result<bool, StorageError>> + Send;
}

harness_core::twin! {
    DynArtifactStore of ArtifactStore {
        async fn put_boxed = put(bytes: &'a [u8], meta: ArtifactMeta) -> Result<ArtifactId, StorageError>;
        async fn read_boxed = read(
            id: &'a ArtifactId,
            range: Range<u64>,
            requester: Option<&'a SessionId>,
            now: Time
        ) -> Result<Option<ArtifactPart>, StorageError>;
        async fn delete_boxed = delete(id: &'a ArtifactId) -> Result<bool, StorageError>;
    }
}
