//! Tools that are programs of the operating system.

mod answer;
mod capture;
mod subprocess;
mod tool;

#[cfg(feature = "schema-validation")]
pub(crate) use answer::INVALID_ARGUMENTS;
pub use subprocess::MAX_PRINTED;
pub use tool::{CommandSpec, CommandTool, Input};
pub(crate) use tool::{is_path, run_shell};
