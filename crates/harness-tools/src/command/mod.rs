//! Tools that are programs of the operating system.

mod answer;
mod tool;

#[cfg(any(feature = "mcp", feature = "schema-validation"))]
pub(crate) use answer::INVALID_ARGUMENTS;
pub(crate) use tool::run_shell;
pub use tool::{CommandSpec, CommandTool, Input};
#[cfg(feature = "mcp")]
pub(crate) use tool::{TimeLimit, kind_of};
