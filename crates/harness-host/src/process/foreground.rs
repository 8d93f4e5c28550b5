//! Programs that use this process's terminal.

use std::ffi::{OsStr, OsString};
use std::io;
use std::process::ExitStatus;

/// Runs an interactive program, such as an editor, until it ends: on this process's terminal, in its process group,
/// directory and environment. It has no limits. Dropping the future kills it.
///
/// # Errors
/// Those of the operating system; [`why_not_started`](super::why_not_started) says what to do about them.
pub async fn foreground(program: &OsStr, args: &[OsString]) -> io::Result<ExitStatus> {
    #[expect(clippy::disallowed_methods, reason = "this is the module that starts interactive programs")]
    let mut process = tokio::process::Command::new(program);
    process.args(args).kill_on_drop(true).status().await
}
