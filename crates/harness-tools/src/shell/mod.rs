//! The tool that runs command lines.

mod policy;
mod tool;
mod words;

pub use policy::{ShellPolicy, ShellRefusal};
pub use tool::ShellTool;
