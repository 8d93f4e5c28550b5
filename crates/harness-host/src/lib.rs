//! Ports and services of a host: files, programs, storage, artifacts, API keys, a working directory, and processes of the
//! operating system.
//!
//! | part | here |
//! |---|---|
//! | files that tools may see | [`Workspace`] |
//! | values under keys | [`Storage`] |
//! | large contents under their hashes | [`ArtifactStore`] |
//! | API keys of providers | [`Secrets`] |
//! | texts as vectors | [`Embedder`] |
//! | programs, as code of a host runs them | [`Shell`], [`Subprocess`], [`Process`] |
//! | places in which code of a host works | [`Workplace`], [`RootCwd`], [`Params`] |
//! | processes: started without a shell, bounded, ended with all that they started | `process` (feature `process`, Unix) |
//!
//! The traits are ports: other crates use them, and a program implements them. The crate knows the types of core, not its
//! loop.
//!
//! ```
//! use std::sync::Arc;
//!
//! use harness_host::{MemoryWorkspace, RootCwd, Workplace, WorkspaceFile};
//!
//! let files = MemoryWorkspace::new([WorkspaceFile::text("/docs/plan.md", "Berth 4.")]);
//! let place = Workplace::in_memory().with_fs(Arc::new(files));
//! let cwd = RootCwd::new("/docs");
//! # let _ = (place, cwd);
//! ```

mod artifact;
mod embedder;
#[cfg(feature = "process")]
pub mod process;
mod program;
mod secrets;
mod storage;
#[cfg(feature = "testing")]
pub mod testing;
mod workplace;
mod workspace;

pub use artifact::{ArtifactMeta, ArtifactPart, ArtifactStore, DynArtifactStore, Sensitivity};
pub use embedder::{DynEmbedder, Embedder};
pub use program::{
    DynShell, DynSubprocess, Process, ProcessFault, ProcessOptions, ProcessOutput, Shell, Subprocess,
};
pub use secrets::{DynSecrets, Secrets};
pub use storage::{DynStorage, Storage, StorageError};
pub use workplace::{NoShell, NoSubprocess, Params, ParamsFault, RootCwd, WorkingFolder, Workplace};
pub use workspace::{
    DynWorkspace, EntryKind, MemoryWorkspace, Precondition, Snippet, Workspace, WorkspaceEntry,
    WorkspaceFault, WorkspaceFaultCode, WorkspaceFile, WorkspaceHit, first_units, normal_path,
};
