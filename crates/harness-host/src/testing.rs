//! Artifacts for tests of what stores them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use harness_core::canonical::sha256_hex;
use harness_core::{ArtifactId, SessionId, Time};
use parking_lot::Mutex;

use crate::{ArtifactMeta, ArtifactPart, ArtifactStore, Sensitivity, StorageError};

type Kept = BTreeMap<ArtifactId, (Arc<[u8]>, ArtifactMeta)>;

/// Artifacts of one owner each, in at most so many bytes: for tests of what stores artifacts. Products have the stores
/// of `harness-session`.
#[derive(Debug)]
pub struct ArtifactShelf {
    kept: Mutex<Kept>,
    bound: usize,
}

impl Default for ArtifactShelf {
    /// As many bytes as come.
    fn default() -> Self {
        Self::bounded(usize::MAX)
    }
}

impl ArtifactShelf {
    /// At most so many bytes together: what does not fit fails with `storage.full`.
    pub fn bounded(bytes: usize) -> Self {
        Self { kept: Mutex::default(), bound: bytes }
    }
}

impl ArtifactStore for ArtifactShelf {
    async fn put(&self, bytes: &[u8], mut meta: ArtifactMeta) -> Result<ArtifactId, StorageError> {
        let id = ArtifactId::from(format!("sha256:{}", sha256_hex(bytes)));
        let mut kept = self.kept.lock();
        let used: usize = kept.values().map(|(bytes, _)| bytes.len()).sum();
        if used.saturating_add(bytes.len()) > self.bound {
            return Err(StorageError::new(
                "storage.full",
                format!("{used} of {} bytes are in use", self.bound),
            ));
        }
        meta.size = bytes.len() as u64;
        kept.insert(id.clone(), (Arc::from(bytes), meta));
        Ok(id)
    }

    async fn read(
        &self,
        id: &ArtifactId,
        range: Range<u64>,
        requester: Option<&SessionId>,
        _now: Time,
    ) -> Result<Option<ArtifactPart>, StorageError> {
        let kept = self.kept.lock();
        let is_visible = |meta: &ArtifactMeta| {
            meta.sensitivity != Sensitivity::Restricted || meta.owner.as_ref() == requester
        };
        let Some((bytes, meta)) = kept.get(id).filter(|(_, meta)| is_visible(meta)) else { return Ok(None) };
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
        let part = bytes.get(place(range.start)..place(range.end)).unwrap_or_default();
        Ok(Some(ArtifactPart::new(Arc::from(part), range.start, meta.clone())))
    }

    async fn delete(&self, id: &ArtifactId) -> Result<bool, StorageError> {
        Ok(self.kept.lock().remove(id).is_some())
    }
}
