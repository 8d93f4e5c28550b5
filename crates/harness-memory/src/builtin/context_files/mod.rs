//! Context files: instructions that a project has for its agents, `AGENTS.md` and the like.

mod layer;
mod reader;

pub use layer::ContextFiles;
pub use reader::{ContextFile, ContextFileLimits, ContextFileSet, directories_down_to};
