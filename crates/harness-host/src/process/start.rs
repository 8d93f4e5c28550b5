//! Starting a program, and saying why one does not start.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::process::child::Child;
use crate::process::environment::Environment;
use crate::process::sandbox::Sandbox;
use crate::process::supervisor;

/// A program to start with [`start`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Command<'a> {
    /// The program: a path, or a name that is looked up in the `PATH` of its environment.
    pub program: &'a OsStr,
    /// Its arguments, passed as they are: there is no shell.
    pub args: &'a [OsString],
    /// The folder it runs in; `None` is the folder of this process.
    pub cwd: Option<&'a Path>,
    /// Its whole environment.
    pub env: &'a Environment,
    /// Whether its stdin is a pipe; otherwise it is empty. Default `false`.
    pub stdin: bool,
    /// How long it and what it started may take to end after SIGTERM, before SIGKILL. Default 500 ms.
    pub grace: Duration,
    /// What it may reach; `None` restricts nothing.
    pub sandbox: Option<&'a Sandbox>,
    /// Whether it runs under the supervisor of this process, if there is one. Default `true`; see
    /// [`supervise`](crate::process::supervise).
    pub supervised: bool,
}

impl<'a> Command<'a> {
    /// A program in this process's folder, with an empty stdin.
    pub fn new(program: &'a OsStr, args: &'a [OsString], env: &'a Environment) -> Self {
        let grace = Duration::from_millis(500);
        Self { program, args, cwd: None, env, stdin: false, grace, sandbox: None, supervised: true }
    }

    /// In this folder.
    #[must_use]
    pub fn cwd(mut self, folder: Option<&'a Path>) -> Self {
        self.cwd = folder;
        self
    }

    /// With a pipe as stdin.
    #[must_use]
    pub fn piped_stdin(mut self) -> Self {
        self.stdin = true;
        self
    }

    /// Killed this long after it was asked to end.
    #[must_use]
    pub fn grace(mut self, span: Duration) -> Self {
        self.grace = span;
        self
    }
}

/// Starts a program as the leader of a process group of its own, with its output in pipes. Dropping the
/// child kills it with all that it started.
///
/// # Errors
/// Those of the operating system; [`why_not_started`] says what to do about them.
pub async fn start(command: &Command<'_>) -> io::Result<Child> {
    match supervisor::executable().filter(|_| command.supervised) {
        #[cfg(target_os = "linux")]
        Some(executable) => supervisor::start(executable, command).await,
        _ => start_alone(command),
    }
}

/// Starts a program as a child of this process.
fn start_alone(command: &Command<'_>) -> io::Result<Child> {
    let mut process = process(command.program, command);
    process
        .args(command.args)
        .stdin(if command.stdin { Stdio::piped() } else { Stdio::null() })
        // Lets the runtime reap the process when the future is dropped before its end.
        .kill_on_drop(true);
    let Some(sandbox) = command.sandbox else { return process.spawn().map(Child::alone) };
    let runtime = tokio::runtime::Handle::try_current().map_err(io::Error::other)?;
    let start = || {
        let _guard = runtime.enter();
        process.spawn()
    };
    sandbox.start(command.program, command.env, start).map(Child::alone)
}

/// A process in a group of its own, with the folder, the environment and the output pipes of a program.
pub(crate) fn process(program: &OsStr, command: &Command<'_>) -> tokio::process::Command {
    #[expect(clippy::disallowed_methods, reason = "this is the module that starts processes")]
    let mut process = tokio::process::Command::new(program);
    process
        .env_clear()
        .envs(command.env.iter())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    if let Some(cwd) = command.cwd {
        process.current_dir(cwd);
    }
    process
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
