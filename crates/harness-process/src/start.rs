//! Starting a program, and saying why one does not start.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::Stdio;

use tokio::process::Child;

use crate::environment::Environment;
use crate::sandbox::{Sandbox, spawn};

/// Starts a program as the leader of a process group of its own, with its output in pipes. Dropping the
/// child kills it, but not its group: see [`Group`](crate::Group).
///
/// `sandbox` says what it may reach, if it is restricted; `env` is its whole environment; a program that is no path is looked up in the `PATH` of it.
///
/// # Errors
/// Those of the operating system; [`why_not_started`] says what to do about them.
pub fn start(
    program: &OsStr,
    args: &[OsString],
    cwd: Option<&Path>,
    env: &Environment,
    stdin: Stdio,
    sandbox: Option<&Sandbox>,
) -> io::Result<Child> {
    #[expect(clippy::disallowed_methods, reason = "this is the one module that starts processes")]
    let mut command = tokio::process::Command::new(program);
    command
        .args(args)
        .env_clear()
        .envs(env.iter())
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        // Lets the runtime reap the process when the future is dropped before its end.
        .kill_on_drop(true);
    if let Some(cwd) = cwd {
        command.current_dir(cwd);
    }
    spawn(&mut command, sandbox)
}

/// What to tell of a program that could not be started, and what to do about it.
pub fn why_not_started(program: &OsStr, cwd: Option<&Path>, error: &io::Error) -> String {
    if let Some(cwd) = cwd.filter(|cwd| !cwd.is_dir()) {
        return format!("its folder {} does not exist; correct its `cwd`", cwd.display());
    }
    let exists = is_path(program) && Path::new(program).exists();
    let kind = error.kind();
    let why = if kind == io::ErrorKind::NotFound && exists {
        "the interpreter that its first line names does not exist; correct its `#!` line"
    } else if kind == io::ErrorKind::NotFound && is_path(program) {
        "there is no such file; correct its `command`"
    } else if kind == io::ErrorKind::NotFound {
        "no program of that name is in PATH; install it, or write its path in `command`"
    } else if kind == io::ErrorKind::PermissionDenied {
        "it is not executable; make it so with `chmod +x`"
    } else if kind == io::ErrorKind::ArgumentListTooLong {
        "its arguments and environment are too long for this system; pass long values on stdin"
    } else if kind == io::ErrorKind::InvalidInput {
        "an argument or a variable of it holds a zero byte, which no program can be given"
    } else if error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) {
        "it is neither a program of this machine nor a script with a `#!` line"
    } else {
        return error.to_string();
    };
    why.to_owned()
}

/// Whether a program is named by a path, and so not looked up in `PATH`.
pub fn is_path(program: &OsStr) -> bool {
    program.as_encoded_bytes().contains(&b'/')
}
