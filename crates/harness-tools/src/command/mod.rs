//! Tools that are programs of the operating system.

mod answer;
mod capture;
mod subprocess;
mod tool;

#[cfg(any(feature = "mcp", feature = "schema-validation"))]
pub(crate) use answer::INVALID_ARGUMENTS;
#[cfg(feature = "mcp")]
pub(crate) use answer::why_not_started;
#[cfg(feature = "mcp")]
pub(crate) use capture::{Capture, Shown};
pub use subprocess::MAX_PRINTED;
#[cfg(feature = "mcp")]
pub(crate) use subprocess::{Group, REAP, start};
pub use tool::{CommandSpec, CommandTool, Input};
#[cfg(feature = "mcp")]
pub(crate) use tool::{TimeLimit, kind_of};
pub(crate) use tool::{is_path, run_shell};
