//! Artifacts in memory.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use harness_core::{ArtifactId, SessionId, Time};
use harness_host::{ArtifactMeta, ArtifactPart, ArtifactStore, StorageError};
use parking_lot::Mutex;

use super::holders::{Holders, MOST_BYTES, Purged, name, part};
use crate::error::Error;
use crate::error::Store;

/// Artifacts that live as long as the process. Clones share them.
#[derive(Clone, Debug)]
pub struct MemoryArtifacts {
    kept: Arc<Mutex<BTreeMap<ArtifactId, Held>>>,
    most_bytes: u64,
    total_bytes: u64,
}

/// Bytes of all artifacts together when nothing else is said.
const TOTAL_BYTES: u64 = 256 << 20;

#[derive(Debug)]
struct Held {
    bytes: Arc<[u8]>,
    holders: Holders,
}

impl Default for MemoryArtifacts {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryArtifacts {
    /// No artifacts yet.
    pub fn new() -> Self {
        Self { kept: Arc::default(), most_bytes: MOST_BYTES, total_bytes: TOTAL_BYTES }
    }

    /// The largest artifact, in bytes. Default 64 MiB.
    #[must_use]
    pub fn most_bytes(mut self, most: u64) -> Self {
        self.most_bytes = most;
        self
    }

    /// The bytes of all artifacts together. What does not fit is refused with `artifact.full`. Default 256 MiB.
    #[must_use]
    pub fn total_bytes(mut self, total: u64) -> Self {
        self.total_bytes = total;
        self
    }

    /// Removes what has expired at `now`.
    pub fn purge(&self, now: Time) -> Purged {
        let mut purged = Purged::default();
        self.kept.lock().retain(|_, held| {
            held.holders.expire(now);
            let stays = !held.holders.is_empty();
            if !stays {
                purged.add(held.bytes.len() as u64);
            }
            stays
        });
        purged
    }
}

impl ArtifactStore for MemoryArtifacts {
    async fn put(&self, bytes: &[u8], meta: ArtifactMeta) -> Result<ArtifactId, StorageError> {
        let (id, size, limit) = (name(bytes), bytes.len() as u64, self.most_bytes);
        if size > limit {
            let name = id.as_str().to_owned();
            return Err(Error::Oversize { store: Store::Artifacts, name, bytes: size, limit }.into());
        }
        let mut kept = self.kept.lock();
        let used: u64 = kept.values().map(|held| held.bytes.len() as u64).sum();
        if !kept.contains_key(&id) && used.saturating_add(size) > self.total_bytes {
            return Err(Error::FullArtifacts { bytes: size, used, limit: self.total_bytes }.into());
        }
        let held = kept
            .entry(id.clone())
            .or_insert_with(|| Held { bytes: Arc::from(bytes), holders: Holders::default() });
        held.holders.add(&id, size, meta)?;
        Ok(id)
    }

    async fn read(
        &self,
        id: &ArtifactId,
        range: Range<u64>,
        requester: Option<&SessionId>,
        now: Time,
    ) -> Result<Option<ArtifactPart>, StorageError> {
        let kept = self.kept.lock();
        let Some(held) = kept.get(id) else { return Ok(None) };
        Ok(held.holders.seen_by(requester, now).map(|meta| part(&held.bytes, range, meta)))
    }

    async fn delete(&self, id: &ArtifactId) -> Result<bool, StorageError> {
        Ok(self.kept.lock().remove(id).is_some())
    }
}
