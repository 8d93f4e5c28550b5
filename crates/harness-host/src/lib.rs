//! What a host gives: files, programs, storage, artifacts, keys, a working folder, and processes of the operating
//! system.
//!
//! | part | here |
//! |---|---|
//! | values under keys | [`Storage`] |
//! | large contents under their hashes | [`ArtifactStore`] |
//! | keys of providers | [`Secrets`] |
//! | programs, as code of a host runs them | [`Shell`], [`Subprocess`], [`Process`] |
//! | where code of a host works | [`Workplace`], [`RootCwd`], [`Params`] |
//! | processes: started without a shell, bounded, ended with all that they started | `process` (feature `process`, Unix) |
//!
//! The traits are ports: other crates are written against them, and a program gives what implements them. The crate
//! knows core's words, not its loop.
//!
//! ```
//! use std::sync::Arc;
//!
//! use harness_core::port::{MemoryWorkspace, WorkspaceFile};
//! use harness_host::{RootCwd, Workplace};
//!
//! let files = MemoryWorkspace::new([WorkspaceFile::text("/docs/plan.md", "Berth 4.")]);
//! let place = Workplace::in_memory().with_fs(Arc::new(files));
//! let cwd = RootCwd::new("/docs");
//! # let _ = (place, cwd);
//! ```

mod artifact;
#[cfg(feature = "process")]
pub mod process;
mod program;
mod secrets;
mod storage;
#[cfg(feature = "testing")]
pub mod testing;
mod workplace;

pub use artifact::{ArtifactMeta, ArtifactPart, ArtifactStore, DynArtifactStore, Sensitivity};
pub use program::{
    DynShell, DynSubprocess, Process, ProcessFault, ProcessOptions, ProcessOutput, Shell, Subprocess,
};
pub use secrets::{DynSecrets, Secrets};
pub use storage::{DynStorage, Storage, StorageError};
pub use workplace::{NoShell, NoSubprocess, Params, ParamsFault, RootCwd, WorkingFolder, Workplace};
