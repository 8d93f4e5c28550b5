//! Files that a model may look at and, where that is allowed, change.

mod change;
mod edit;
mod folder;
mod preview;
mod seen;
mod show;
mod tools;

pub use edit::FileEdits;
pub use folder::{FolderWorkspace, ProtectedFiles};
pub use preview::FilePreview;
pub use seen::SeenFiles;
pub use tools::{WorkspaceOptions, WorkspaceTools};
