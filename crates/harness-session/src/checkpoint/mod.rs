//! The last checkpoints of runs: the [`CheckpointStore`](harness_core::port::CheckpointStore) port in memory,
//! as files, and in a PostgreSQL database.
//!
//! ```
//! use std::sync::Arc;
//!
//! use harness_core::port::{Checkpoint, CheckpointStore};
//! use harness_core::{Json, RunId, Time};
//! use harness_session::checkpoint::FileCheckpoints;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let checkpoints = FileCheckpoints::open(folder.path().join("checkpoints"))?;
//! let (run, state) = (RunId::from("r1"), Arc::new(Json::parse(r#"{"turn":1}"#)?));
//! let number = checkpoints.save(Checkpoint::new(run.clone(), Time(0), 1, 12, state)).await?;
//! let last = checkpoints.latest(&run).await?;
//! assert_eq!(last.map(|last| (last.number, last.messages)), Some((number, 12)));
//! # Ok(())
//! # }
//! ```

mod files;
mod format;
mod memory;
mod recover;

pub use files::FileCheckpoints;
pub use format::CHECKPOINT_FORMAT_VERSION;
#[cfg(feature = "postgres")]
pub(crate) use format::encode;
pub use memory::MemoryCheckpoints;
pub use recover::{DamagedCheckpoint, Recovered};
#[cfg(feature = "postgres")]
pub(crate) use recover::{Stored, recover};

#[cfg(feature = "postgres")]
pub use crate::postgres::PostgresCheckpoints;

/// The largest checkpoint by default, in bytes.
pub(crate) const MOST_BYTES: u64 = 16 << 20;

/// How many checkpoints of a run are kept, unless something else is asked for.
pub(crate) const KEPT: usize = 4;

/// The newest version of a state that is given out, unless something else is asked for.
pub(crate) const SUPPORTED: u32 = harness_core::run::SNAPSHOT_VERSION;
