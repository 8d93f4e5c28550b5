//! Artifacts in memory.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use harness_core::canonical::sha256_hex;
use harness_core::port::{ArtifactMeta, ArtifactPart, ArtifactStore, Sensitivity, StorageError};
use harness_core::{ArtifactId, SessionId, Time};

/// Bytes that are kept when nothing else is said.
const DEFAULT_BYTES: u64 = 256 * 1024 * 1024;

/// Keeps artifacts for as long as the program runs, in at most so many bytes.
///
/// ```
/// use harness_core::Time;
/// use harness_core::port::{ArtifactMeta, ArtifactStore};
/// use harness_memory::compact::artifacts::MemoryArtifacts;
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let store = MemoryArtifacts::default();
/// let id = store.put(b"hello", ArtifactMeta::default()).await?;
/// let part = store.read(&id, 1..3, None, Time(0)).await?.ok_or("it is gone")?;
/// assert_eq!(&*part.bytes, b"el");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct MemoryArtifacts {
    kept: Mutex<Kept>,
    bound: u64,
}

#[derive(Debug, Default)]
struct Kept {
    artifacts: HashMap<ArtifactId, (Arc<[u8]>, ArtifactMeta)>,
    bytes: u64,
}

impl Default for MemoryArtifacts {
    /// At most 256 MiB.
    fn default() -> Self {
        Self::bounded(DEFAULT_BYTES)
    }
}

impl MemoryArtifacts {
    /// A store of at most so many bytes.
    pub fn bounded(bytes: u64) -> Self {
        Self { kept: Mutex::default(), bound: bytes }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ArtifactStore for MemoryArtifacts {
    async fn put(&self, bytes: &[u8], meta: ArtifactMeta) -> Result<ArtifactId, StorageError> {
        let id = ArtifactId::from(format!("sha256:{}", sha256_hex(bytes)));
        let size = bytes.len() as u64;
        let mut kept = self.lock();
        if kept.artifacts.contains_key(&id) {
            return Ok(id);
        }
        if kept.bytes.saturating_add(size) > self.bound {
            let (used, bound) = (kept.bytes, self.bound);
            let text =
                format!("an artifact of {size} bytes does not fit: {used} of {bound} bytes are in use");
            return Err(StorageError::new("storage.full", text));
        }
        kept.bytes += size;
        let mut meta = meta;
        meta.size = size;
        kept.artifacts.insert(id.clone(), (Arc::from(bytes), meta));
        Ok(id)
    }

    async fn read(
        &self,
        id: &ArtifactId,
        range: Range<u64>,
        requester: Option<&SessionId>,
        now: Time,
    ) -> Result<Option<ArtifactPart>, StorageError> {
        let kept = self.lock();
        let Some((bytes, meta)) = kept.artifacts.get(id) else { return Ok(None) };
        let is_hidden = meta.sensitivity == Sensitivity::Restricted && meta.owner.as_ref() != requester;
        if is_hidden || meta.expires_at.is_some_and(|end| end <= now) {
            return Ok(None);
        }
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
        let part = bytes.get(place(range.start)..place(range.end)).unwrap_or_default();
        Ok(Some(ArtifactPart::new(Arc::from(part), range.start, meta.clone())))
    }

    async fn delete(&self, id: &ArtifactId) -> Result<bool, StorageError> {
        let mut kept = self.lock();
        let removed = kept.artifacts.remove(id);
        if let Some((bytes, _)) = &removed {
            kept.bytes = kept.bytes.saturating_sub(bytes.len() as u64);
        }
        Ok(removed.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_same_bytes_are_kept_once_and_the_bound_holds() {
        let store = MemoryArtifacts::bounded(6);
        let id = store.put(b"abcd", ArtifactMeta::default()).await.unwrap();
        assert_eq!(store.put(b"abcd", ArtifactMeta::default()).await.unwrap(), id);
        assert_eq!(&*store.put(b"xyz", ArtifactMeta::default()).await.unwrap_err().kind, "storage.full");
        assert!(store.delete(&id).await.unwrap());
        assert!(!store.delete(&id).await.unwrap());
        store.put(b"xyz", ArtifactMeta::default()).await.unwrap();
    }

    #[tokio::test]
    async fn what_has_expired_is_not_found() {
        let store = MemoryArtifacts::default();
        let mut meta = ArtifactMeta::default();
        meta.expires_at = Some(Time(10));
        let id = store.put(b"abcd", meta).await.unwrap();
        assert!(store.read(&id, 0..4, None, Time(9)).await.unwrap().is_some());
        assert!(store.read(&id, 0..4, None, Time(10)).await.unwrap().is_none());
    }
}
