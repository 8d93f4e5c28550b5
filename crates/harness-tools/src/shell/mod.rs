//! The tool that runs command lines.

mod command;
mod hazards;
mod policy;
mod scripts;
mod tool;
mod words;

pub use command::ShellCommand;
pub use policy::{ShellPolicy, ShellRefusal};
pub use tool::ShellTool;
