//! Starting a program, and saying why one does not start.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::Stdio;

use crate::process::child::Child;
use crate::process::program::ProgramSpec;
use crate::process::run::Launch;
use crate::process::supervisor;

/// Starts a program as the leader of a new process group, with its output in pipes. It gets a pipe as stdin if `stdin`
/// is set, whose content the caller writes; the time and output limits are the caller's, too. Dropping the child kills
/// it with all that it started.
///
/// # Errors
/// Those of the operating system; [`why_not_started`] says what to do about them.
pub async fn start(launch: &Launch<'_>) -> io::Result<Child> {
    match supervisor::executable().filter(|_| launch.supervised) {
        #[cfg(target_os = "linux")]
        Some(executable) => supervisor::start(executable, launch).await,
        _ => start_alone(launch),
    }
}

/// Starts a program as a child of this process.
fn start_alone(launch: &Launch<'_>) -> io::Result<Child> {
    let mut process = process(&launch.program.path, launch);
    process
        .args(&launch.program.args)
        .stdin(if launch.stdin.is_some() { Stdio::piped() } else { Stdio::null() })
        // Lets the runtime reap the process when the future is dropped before its end.
        .kill_on_drop(true);
    let Some(sandbox) = launch.sandbox else { return process.spawn().map(Child::alone) };
    let runtime = tokio::runtime::Handle::try_current().map_err(io::Error::other)?;
    let start = || {
        let _guard = runtime.enter();
        process.spawn()
    };
    sandbox.start(&launch.program.path, &launch.program.environment(), start).map(Child::alone)
}

/// A process in a new group, with the directory, environment and output pipes of the launch.
pub(crate) fn process(program: &OsStr, launch: &Launch<'_>) -> tokio::process::Command {
    #[expect(clippy::disallowed_methods, reason = "this is the module that starts processes")]
    let mut process = tokio::process::Command::new(program);
    process
        .env_clear()
        .envs(launch.program.environment().iter())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    if let Some(cwd) = &launch.program.cwd {
        process.current_dir(cwd);
    }
    process
}

/// Message for a program that did not start: the reason, and the fix.
pub fn why_not_started(program: &ProgramSpec, error: &io::Error) -> String {
    let (program, cwd) = (&*program.path, program.cwd.as_deref());
    if let Some(cwd) = cwd.filter(|cwd| !cwd.is_dir()) {
        return format!("its directory {} does not exist; correct its `cwd`", cwd.display());
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
