//! Files that a model may look at and, where that is allowed, change.

mod edit;
mod folder;
mod memory;
mod seen;
mod show;
mod snippet;
mod tools;

use harness_core::port::{Precondition, WorkspaceFault, WorkspaceFaultCode};

pub use edit::FileEdits;
pub use folder::FolderWorkspace;
pub use memory::MemoryWorkspace;
pub use seen::SeenFiles;
pub(crate) use snippet::first_units;
pub use tools::{Oversize, WorkspaceOptions, WorkspaceTools};

/// Whether a precondition holds for a file with this content (`None`: there is no file).
///
/// # Errors
/// What has changed.
pub(crate) fn holds(wanted: &Precondition, now: Option<&[u8]>, path: &str) -> Result<(), WorkspaceFault> {
    match (wanted, now) {
        (Precondition::Absent, Some(_)) => {
            let problem = format!("`{path}` exists already");
            Err(WorkspaceFault::new(WorkspaceFaultCode::Changed, problem))
        }
        (Precondition::Content(wanted), now) if now != Some(wanted.as_bytes()) => Err(changed(path)),
        _ => Ok(()),
    }
}

/// The fault of a file that is not as it was.
pub(crate) fn changed(path: &str) -> WorkspaceFault {
    let problem = format!("`{path}` has changed since it was read; read it again");
    WorkspaceFault::new(WorkspaceFaultCode::Changed, problem)
}
