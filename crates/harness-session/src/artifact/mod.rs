//! Content-addressed artifacts: the [`ArtifactStore`](harness_host::ArtifactStore) port in memory,
//! as files, and in a PostgreSQL database.
//!
//! Equal bytes are stored once for any number of sessions. Each session that stores them is a
//! holder with its own label, sensitivity and expiry, and they are kept until the last holder
//! releases them.
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
#[cfg(feature = "postgres")]
pub(crate) use holders::{Holders, MOST_BYTES, digits, name, part};
pub use memory::MemoryArtifacts;

#[cfg(feature = "postgres")]
pub use crate::postgres::PostgresArtifacts;
