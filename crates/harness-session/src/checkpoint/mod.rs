//! The last checkpoints of runs: the [`CheckpointStore`](harness_core::port::CheckpointStore) port in memory
//! and as files.
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

pub use files::{DamagedCheckpoint, FileCheckpoints, Recovered};
pub use format::CHECKPOINT_FORMAT_VERSION;
pub use memory::MemoryCheckpoints;

/// How many checkpoints of a run are kept, unless something else is asked for.
const KEPT: usize = 4;

/// The newest version of a state that is given out, unless something else is asked for.
const SUPPORTED: u32 = harness_core::run::SNAPSHOT_VERSION;
