//! Contents under the hash of their bytes: the [`ArtifactStore`](harness_host::ArtifactStore) port in
//! memory and as files.
//!
//! The same bytes are kept once, for however many sessions: each that stores them holds them, with a label, a
//! sensitivity and an end of its own, and they are there until the last one has let go of them.
//!
//! ```
//! use harness_core::Time;
//! use harness_host::{ArtifactMeta, ArtifactStore};
//! use harness_session::artifact::FolderArtifacts;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let now = Time(1_767_225_600_000);
//! let artifacts = FolderArtifacts::open(folder.path().join("artifacts"))?;
//! let mut meta = ArtifactMeta::default();
//! (meta.media_type, meta.created_at) = ("text/plain".to_owned(), now);
//! let id = artifacts.put(b"a very long listing", meta).await?;
//! let part = artifacts.read(&id, 2..6, None, now).await?;
//! assert_eq!(part.map(|part| part.bytes.to_vec()), Some(b"very".to_vec()));
//! # Ok(())
//! # }
//! ```

mod files;
mod holders;
mod memory;

pub use files::FolderArtifacts;
pub use holders::Purged;
pub use memory::MemoryArtifacts;
