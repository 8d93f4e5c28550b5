//! The tool that runs command lines.

mod hazards;
mod policy;
mod scripts;
mod tool;
mod words;

pub use policy::{ShellPolicy, ShellRefusal};
pub use tool::ShellTool;
